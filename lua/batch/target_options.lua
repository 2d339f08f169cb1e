-- SPDX-License-Identifier: MIT

--- The options that a target of the built-in pipeline may have. Looks at names and types before a
-- submit; whether a value makes sense is found out by fetching.

local field_types = require "batch.field_types"
local http = require("batch.core").http
local nearest = require("batch.nearest").nearest

local MODES = { "auto", "raw", "text", "markdown", "html", "links", "meta" }
local OPTIONS = { "mode", "question", "pages", "grep", "jq", "context", "recover", "headers" }
local FLAGS = { context = true, recover = true } -- booleans; the rest but headers are text

local function is_among(name, names)
    for _, known in ipairs(names) do
        if known == name then
            return true
        end
    end
    return false
end

-- The canonical form of a target leaves these out, so they mean nothing here either. A null of
-- cjson's is a light userdata.
local function is_absent(value)
    return value == nil or value == "" or value == false or type(value) == "userdata"
end

local function refuse_name(name)
    local meant = nearest(name, OPTIONS)
    local proposal = meant and (", did you mean '%s'?"):format(meant)
        or ", known are " .. table.concat(OPTIONS, ", ")
    return nil, ("unknown option '%s'%s"):format(field_types.shown_key(name), proposal)
end

local function kind_of(value)
    return type(value) == "userdata" and "null" or "a " .. type(value)
end

local function check_headers(headers)
    if type(headers) ~= "table" then
        return nil, "headers must be an object, got " .. kind_of(headers)
    end
    for name, value in pairs(headers) do
        if type(name) ~= "string" then
            return nil, "headers must be an object, got a list"
        elseif type(value) ~= "string" then
            return nil, ("header '%s' must be a string, got %s"):format(
                field_types.shown_key(name), kind_of(value))
        end
        local is_fine, message = http.check_header(name, value)
        if not is_fine then
            return nil, message
        end
    end
    return true
end

local function check_option(name, value)
    if type(name) ~= "string" then
        return nil, "options must be an object, got a list"
    elseif not is_among(name, OPTIONS) then
        return refuse_name(name)
    elseif is_absent(value) then
        return true
    elseif name == "headers" then
        return check_headers(value)
    end
    local wanted = FLAGS[name] and "boolean" or "string"
    if type(value) ~= wanted then
        return nil, ("%s must be a %s, got %s"):format(name, wanted, kind_of(value))
    end
    return true
end

--- Checks the options of a target before it is submitted, and again before it is fetched, for this
-- module may be called without a runner, whose canonical form sees to types too.
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

--- An option of a target, or nil where it says nothing.
-- @tparam table target
-- @tparam string name
local function read(target, name)
    local value = (target.options or {})[name]
    if is_absent(value) then
        return nil
    end
    return value
end

--- @export
return { check = check, read = read, is_absent = is_absent, names = OPTIONS, modes = MODES }
