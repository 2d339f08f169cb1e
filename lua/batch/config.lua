-- SPDX-License-Identifier: MIT

--- Configuration files: TOML in, the whole table with every default out, or a sentence with file,
-- line and key. What may be configured stands in batch.sections, how it is checked in batch.fields.

local fields = require "batch.fields"
local toml = require "batch.toml"
local units = require "batch.units"

-- The line of a value; of the table that should hold it where it is missing.
local function line_of(lines, holder, key)
    if lines[holder] and lines[holder][key] then
        return lines[holder][key]
    end
    for parent, keys in pairs(lines) do
        for name, line in pairs(keys) do
            if rawequal(parent[name], holder) then
                return line
            end
        end
    end
    return 1
end

local function check_tls(server, given)
    if (server.tls_certificate == "") == (server.tls_key == "") then
        return true
    end
    local key = server.tls_key == "" and "tls_certificate" or "tls_key"
    local message = "server.tls_certificate and server.tls_key must be given both or neither"
    return nil, { message = message, holder = given.server, key = key }
end

-- The configuration, its warnings and what the file itself says; or nil and the fault. Warnings and
-- fault with their line.
local function read(text)
    local given, lines, arrays_or_fault = toml.parse(text)
    if not given then
        return nil, arrays_or_fault
    end
    local full, warnings_or_fault = fields.check_file(given, arrays_or_fault)
    local is_complete, fault = full ~= nil, warnings_or_fault
    if full then
        is_complete, fault = check_tls(full.server, given)
    end
    if not is_complete then
        fault.line = line_of(lines, fault.holder, fault.key)
        return nil, fault
    end
    for _, warning in ipairs(warnings_or_fault) do
        warning.line = line_of(lines, warning.holder, warning.key)
    end
    return full, warnings_or_fault, given
end

local function worded(word, full, warnings_or_fault, given)
    if not full then
        return nil, word(warnings_or_fault)
    end
    local sentences = {}
    for i, warning in ipairs(warnings_or_fault) do
        sentences[i] = word(warning)
    end
    return full, sentences, given
end

--- Reads a configuration from a file.
-- @tparam string path
-- @treturn[1] table sections of fields, all filled in; durations in seconds, sizes in bytes
-- @treturn[1] {string,...} warnings: each names file, line, key and value
-- @treturn[1] table what the file itself says, without defaults
-- @treturn[2] nil
-- @treturn[2] string file, line, key and what is wrong
-- @function load
local function load_file(path)
    local file, message = io.open(path, "rb")
    local text
    if file then
        text, message = file:read("*a")
        file:close()
    end
    if not text then
        message = tostring(message):gsub("^" .. path:gsub("%p", "%%%0") .. ": ", "")
        return nil, ("%s: %s"):format(path, message)
    end
    return worded(function(fault)
        local column = fault.column and fault.column .. ":" or ""
        return ("%s:%d:%s %s"):format(path, fault.line, column, fault.message)
    end, read(text))
end

--- Reads a configuration from text.
-- @tparam string text
-- @treturn[1] table as `load`
-- @treturn[1] {string,...} warnings: each names line, key and value
-- @treturn[1] table what the text itself says, without defaults
-- @treturn[2] nil
-- @treturn[2] string line, key and what is wrong
local function parse(text)
    return worded(function(fault)
        local column = fault.column and (", column %d"):format(fault.column) or ""
        return ("line %d%s: %s"):format(fault.line, column, fault.message)
    end, read(text))
end

local function positive(parse_unit, text, default)
    local amount = type(text) == "string" and parse_unit(text)
    if amount and amount > 0 then
        return amount
    end
    return default
end

--- Reads a duration: Go's syntax, and `d` for days.
-- @tparam string s such as `300ms`, `1h30m`, `1.5h`
-- @param default for what is no duration above zero
-- @return seconds, or the default
local function parse_duration(s, default)
    return positive(units.duration, s, default)
end

--- Reads a size: a whole number, or one with exactly `KiB`, `MiB` or `GiB`.
-- @tparam string s such as `64MiB`
-- @param default for what is no size above zero, or one beyond 2^53
-- @return bytes, or the default
local function parse_size(s, default)
    return positive(units.size, s, default)
end

--- @export
return {
    load = load_file,
    parse = parse,
    parse_duration = parse_duration,
    parse_size = parse_size,
}
