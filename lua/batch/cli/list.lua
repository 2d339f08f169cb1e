-- SPDX-License-Identifier: MIT

--- Lists of targets as users write them: one URL a line or JSON Lines, out of files, standard input
-- and the command line itself, read as one input whose lines are numbered through. Knows the syntax
-- of a line only: what an option means is for the fetch module to say, jobs are for `deal`.

local cjson = require("cjson").new()

cjson.decode_invalid_numbers(false)

local BYTE_ORDER_MARK = "^\239\187\191"
local FIELDS = { url = true, options = true }

local function is_object(value)
    return type(value) == "table" and #value == 0
end

local function decode(line)
    local is_json, target = pcall(cjson.decode, line)
    if not is_json then
        return nil, "not JSON: " .. tostring(target):gsub("^%u", string.lower)
    end
    if not is_object(target) then
        return nil, "a target must be an object with a url"
    end
    for field in pairs(target) do
        if not FIELDS[field] then
            return nil, ("unknown field '%s' of a target, known are url and options"):format(field)
        end
    end
    if type(target.url) ~= "string" or target.url == "" then
        return nil, "url must be a non-empty string"
    end
    if target.options == cjson.null then
        target.options = nil
    end
    if target.options ~= nil and not is_object(target.options) then
        return nil, "options must be an object"
    end
    return target
end

--- Makes a target of one line. A line that begins with a bracket or a quote is JSON, any other is a
-- URL.
-- @tparam string line without its end
-- @tparam[opt] table defaults options that a target gets which does not name them
-- @treturn[1] table the target: `url` and perhaps `options`
-- @treturn[2] nil
-- @treturn[2] string what is wrong with the line
local function parse(line, defaults)
    local target, message = { url = line }, nil
    if line:find('^[{%["]') then
        target, message = decode(line)
    end
    if target and defaults and next(defaults) ~= nil then
        local options = target.options or {}
        for name, value in pairs(defaults) do
            if options[name] == nil or options[name] == cjson.null or options[name] == "" then
                options[name] = value
            end
        end
        target.options = options
    end
    return target, message
end

local function visit_line(line, number, visit, ...)
    line = line:match("^%s*(.-)%s*$")
    if line == "" or line:find("^#") then
        return true
    end
    return visit(line, number, ...)
end

-- Returns how many lines the file has.
local function visit_file(name, file, before, visit)
    local n_lines = 0
    while true do
        local line, message = file:read("*l")
        if not line then
            if message then
                return nil, ("cannot read %s: %s"):format(name, message)
            end
            return n_lines
        end
        n_lines = n_lines + 1
        if n_lines == 1 then
            line = line:gsub(BYTE_ORDER_MARK, "")
        end
        local is_fine, why = visit_line(line, before + n_lines, visit, name, n_lines)
        if not is_fine then
            return nil, ("%s:%d: %s"):format(name, n_lines, why)
        end
    end
end

-- Whether a name is one that users may have meant as a URL: example.com, www.example.com/a.
local function looks_like_url(name)
    return name:find("^[%w-]+%.[%w.-]*%a%a") and not name:find("%.txt$")
        and not name:find("%.jsonl?$")
end

local function visit_argument(argument, before, visit)
    if argument == "-" then
        return visit_file("stdin", io.stdin, before, visit)
    end
    if argument:find("://", 1, true) then
        local is_fine, why = false, "a URL must be one line"
        if not argument:find("[\r\n]") then
            is_fine, why = visit_line(argument, before + 1, visit, argument)
        end
        if not is_fine then
            return nil, ("%s: %s"):format(argument, why)
        end
        return 1
    end
    local file, message = io.open(argument, "rb")
    if not file then
        local hint = looks_like_url(argument) and "; a URL begins with http:// or https://" or ""
        return nil, "cannot read " .. message .. hint
    end
    local n_lines, why = visit_file(argument, file, before, visit)
    file:close()
    return n_lines, why
end

--- Visits every line that holds a target, in order; blank lines and lines that begin with `#` are
-- passed over. Blocks on standard input.
-- @tparam {string,...} arguments files, `-` for standard input, and URLs (what has `://`), each of
-- which counts as a line
-- @tparam function visit called with the line's text, ends and outer blanks cut off, and its number
-- in the whole input, from 1, then where it stands: the file and the number there, or the URL;
-- returns true, or nil and what is wrong, which ends the visit
-- @treturn[1] true
-- @treturn[2] nil
-- @treturn[2] string what could not be read, or `file:line: …` for a line that visit refused
local function each(arguments, visit)
    local before = 0
    for _, argument in ipairs(arguments) do
        local n_lines, message = visit_argument(argument, before, visit)
        if not n_lines then
            return nil, message
        end
        before = before + n_lines
    end
    return true
end

--- @export
return {
    each = each,
    parse = parse,
}
