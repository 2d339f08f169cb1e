-- SPDX-License-Identifier: MIT

--- The options that a target of the built-in pipeline may have. Looks at names and values only:
-- what they do, and whether the URL can be fetched, is found out by fetching.

local http = require("batch.core").http
local nearest = require("batch.nearest").nearest

local MODES = { "auto", "raw", "text" }
local LATER_MODES = { "markdown", "html", "links", "meta" }
local OPTIONS = { "mode", "headers" }
local LATER_OPTIONS = { "question", "pages", "grep", "jq", "context", "recover" }

local function is_among(name, names)
    for _, known in ipairs(names) do
        if known == name then
            return true
        end
    end
    return false
end

local function all(names, more_names)
    local both = {}
    for _, list in ipairs { names, more_names } do
        for _, name in ipairs(list) do
            both[#both + 1] = name
        end
    end
    return both
end

-- The canonical form of a target leaves these out, so they mean nothing here either. A null of
-- cjson's is a light userdata.
local function is_absent(value)
    return value == nil or value == "" or value == false or type(value) == "userdata"
end

-- Names that this version does not have yet are proposed, but not among those that there are.
local function refuse_name(what, name, names, later_names)
    local meant = nearest(name, all(names, later_names))
    local proposal = meant and (", did you mean '%s'?"):format(meant)
        or ", known are " .. table.concat(names, ", ")
    return nil, ("unknown %s '%s'%s"):format(what, name:sub(1, 80), proposal)
end

local function check_mode(mode)
    if type(mode) ~= "string" then
        return nil, "mode must be a string, got a " .. type(mode)
    elseif is_among(mode, MODES) then
        return true
    elseif is_among(mode, LATER_MODES) then
        return nil, ("this version does not have mode '%s', only %s"):format(
            mode, table.concat(MODES, ", "))
    end
    return refuse_name("mode", mode, MODES, LATER_MODES)
end

local function check_headers(headers)
    if type(headers) ~= "table" then
        return nil, "headers must be an object, got a " .. type(headers)
    end
    for name, value in pairs(headers) do
        if type(name) ~= "string" then
            return nil, "headers must be an object, got a list"
        elseif type(value) ~= "string" then
            return nil, ("header '%s' must be a string, got a %s"):format(name, type(value))
        end
        local is_fine, message = http.check_header(name, value)
        if not is_fine then
            return nil, message
        end
    end
    return true
end

local checks = { mode = check_mode, headers = check_headers }

local function check_option(name, value)
    if type(name) ~= "string" then
        return nil, "options must be an object, got a list"
    elseif not is_among(name, OPTIONS) and not is_among(name, LATER_OPTIONS) then
        return refuse_name("option", name, OPTIONS, LATER_OPTIONS)
    elseif is_absent(value) then
        return true
    elseif checks[name] then
        return checks[name](value)
    end
    return nil, ("this version does not have option '%s'"):format(name)
end

--- Checks the options of a target before it is submitted.
-- @tparam table target `options` may be nil
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string which option is wrong, and the nearest known name
local function check(target)
    local names = {}
    for name in pairs(target.options or {}) do
        names[#names + 1] = name
    end
    -- Sorted, so that of several faults the same one is always named.
    table.sort(names, function(a, b)
        return tostring(a) < tostring(b)
    end)
    for _, name in ipairs(names) do
        local is_fine, message = check_option(name, target.options[name])
        if not is_fine then
            return nil, message
        end
    end
    return true
end

--- @export
return { check = check, is_absent = is_absent, modes = MODES }
