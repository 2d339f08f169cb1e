-- SPDX-License-Identifier: MIT

--- The types that a field of the configuration may have: how a given value is read, and the words
-- for what is allowed. Which fields there are is not known here.

local http = require("batch.core").http
local units = require "batch.units"

-- Longer spans than this are mistakes, and stay far from where milliseconds overflow.
local MAX_DURATION = "3650d"
local MAX_SECONDS = units.duration(MAX_DURATION)
local MAX_BYTES, MAX_BYTES_SHOWN = 2 ^ 53, "2^53"
local MAX_PORT = 65535
local MAX_SHOWN = 80 -- bytes of a wrong string that a message quotes

local function is_whole(number)
    return number % 1 == 0 and number - number == 0 -- neither NaN nor infinite
end

local function whole_number(number)
    return math.tointeger and math.tointeger(number) or number
end

local function within(number, low, high)
    if number and number >= low and number <= high then
        return number
    end
    return nil
end

local function alternatives(values)
    local first = table.concat(values, '", "', 1, #values - 1)
    return ('"%s" or "%s"'):format(first, values[#values])
end

local function read_integer(value, field)
    if type(value) == "number" and is_whole(value) then
        return within(whole_number(value), field.min, field.max)
    end
    return nil
end

local function read_duration(value, field)
    if type(value) == "string" then
        value = units.duration(value)
    end
    local max = field.max and units.duration(field.max) or MAX_SECONDS
    return type(value) == "number" and within(value, 0, max) or nil
end

local function read_size(value, field)
    if type(value) == "string" then
        value = units.size(value)
    end
    local max = field.max and units.size(field.max) or MAX_BYTES
    if type(value) == "number" and is_whole(value) then
        return within(whole_number(value), 1, max)
    end
    return nil
end

local function read_choice(value, field)
    for _, allowed in ipairs(field.values) do
        if value == allowed then
            return value
        end
    end
    return nil
end

-- What stands behind a NUL no system call would see.
local function read_string(value)
    return type(value) == "string" and not value:find("\0", 1, true) and value or nil
end

local function read_name(value)
    return value ~= "" and read_string(value) or nil
end

local function read_line(value, field)
    local line = read_name(value)
    return line and #line <= field.max and not line:find("%c") and line or nil
end

local function read_url(value)
    local is_url = value == "" or (read_string(value) or ""):find("^https?://[^/]")
    return is_url and value or nil
end

local function read_sha256(value)
    local digits = (read_string(value) or ""):match("^%x+$")
    return digits and #digits == 64 and digits:lower() or nil
end

local function read_listen(value)
    local text = read_string(value) or ""
    local port = text:match("^[^:%s]+:(%d+)$") or text:match("^%[[%x:.]+%]:(%d+)$")
    local is_address = text:find("^unix:.") or within(tonumber(port), 0, MAX_PORT)
    return is_address and text or nil
end

local function read_networks(value)
    if type(value) ~= "table" then
        return nil
    end
    local networks = {}
    for key in pairs(value) do
        local network = value[#networks + 1]
        local is_network, message = http.check_network(network)
        if type(key) ~= "number" or not is_network then
            return nil, network, message and message:match("is no network: (.+)$")
        end
        networks[#networks + 1] = network
    end
    return networks
end

local function is_store(value)
    local metatable = type(value) == "userdata" and getmetatable(value)
    return type(metatable) == "table" and metatable.__name == "batch.store"
end

local function read_store(value)
    return is_store(value) and value or read_name(value)
end

local function read_fetch(value)
    local kind = type(value)
    return (kind == "function" or kind == "table") and value or read_name(value)
end

local function read_function(value)
    return type(value) == "function" and value or nil
end

local function words(text)
    return function()
        return text
    end
end

-- type → {read: the value as it is used, or nil if it is wrong; rule: what is allowed; brief: the
-- same where it is explained elsewhere how such a value is written}
local types = {
    integer = { read = read_integer, rule = function(field)
        return ("an integer from %d to %d"):format(field.min, field.max)
    end },
    choice = { read = read_choice, rule = function(field)
        return alternatives(field.values)
    end },
    duration = {
        read = read_duration,
        rule = function(field)
            return ('a duration such as "1h30m", or a number of seconds, up to %s')
                :format(field.max or MAX_DURATION)
        end,
        brief = function(field)
            return "a duration up to " .. (field.max or MAX_DURATION)
        end,
    },
    size = { read = read_size, rule = function(field)
        return ('a size such as "64MiB", or a whole number of bytes, up to %s')
            :format(field.max or MAX_BYTES_SHOWN)
    end, brief = function(field)
        return "a size up to " .. (field.max or MAX_BYTES_SHOWN)
    end },
    boolean = {
        read = function(value)
            if type(value) == "boolean" then
                return value
            end
            return nil
        end,
        rule = words "true or false",
    },
    string = { read = read_string, rule = words "a string" },
    name = { read = read_name, rule = words "a non-empty string" },
    line = { read = read_line, rule = function(field)
        return ("a line of text of 1 to %d bytes"):format(field.max)
    end },
    url = { read = read_url, rule = words 'an address that begins with "http://" or "https://"' },
    sha256 = { read = read_sha256, rule = words "the 64 hexadecimal digits of a SHA-256" },
    listen = { read = read_listen, rule = words 'an address like "127.0.0.1:8080" or "unix:PATH"' },
    networks = { read = read_networks, rule = words 'a list of networks such as "10.0.0.0/8"' },
    store = { read = read_store, rule = words "a path or an object from batch.store.open" },
    fetch = { read = read_fetch, rule = words "a module's name, a function or a table of them" },
    ["function"] = { read = read_function, rule = words "a function" },
}

-- Each digit of a whole number, and the same on every VM: 9007199254740994 and 2, never
-- 9.007199254741e+15 and 2.0.
local function shown_number(number)
    local text = tostring(number)
    if text:find "[.e]" and number % 1 == 0 and math.abs(number) < 2 ^ 63 then
        return ("%.0f"):format(number)
    end
    return number == number and text or "nan"
end

-- A value as messages show it.
local function shown(value)
    local kind = type(value)
    if kind == "string" then
        local text = value
        if #value > MAX_SHOWN then
            text = value:sub(1, MAX_SHOWN):gsub("[\192-\255][\128-\191]*$", "") .. "…"
        end
        return '"' .. text:gsub('[%c"\\]', function(c)
            return (c == '"' or c == "\\") and "\\" .. c or ("\\%03d"):format(c:byte())
        end) .. '"'
    elseif kind == "number" then
        return shown_number(value)
    elseif kind == "function" or kind == "table" and not getmetatable(value) then
        return "a " .. kind
    end
    return tostring(value)
end

-- A key as messages show it between quotes of their own.
local function shown_key(key)
    return type(key) == "string" and shown(key):sub(2, -2) or tostring(key)
end

-- Words that a value is none of what is allowed.
local function refusal(field, value, name, type_name)
    local rule = types[type_name or field.type].rule(field)
    return ("%s must be %s, got %s"):format(name, rule, shown(value))
end

--- Reads a value as it is given for a field.
-- @tparam table field its type, and what that type needs: min, max, values
-- @param value
-- @tparam string name what a refusal calls the field
-- @tparam[opt=field.type] string type_name
-- @return[1] the value as it is used: durations in seconds, sizes in bytes
-- @treturn[2] nil
-- @treturn[2] string name, rule and value
local function read(field, value, name, type_name)
    local result, culprit, reason = types[type_name or field.type].read(value, field)
    if result == nil then
        local got = culprit == nil and value or culprit -- of a list, the item that is wrong
        local message = refusal(field, got, name, type_name)
        return nil, reason and ("%s (%s)"):format(message, reason) or message
    end
    return result
end

--- Says what a file may give for a field, to readers who know how durations and sizes are written.
-- @tparam table field
-- @treturn string such as `an integer from 1 to 256`
local function allowed_in_file(field)
    local kind = types[field.file_type or field.type]
    return (kind.brief or kind.rule)(field)
end

-- Whether the value is text that should be a duration or a size and is none.
local function is_unreadable(field, value)
    local parse = units[field.type]
    return parse ~= nil and type(value) == "string" and parse(value) == nil
end

-- Whether the value is 0, as a number or in a unit: it stands for the default.
local function is_zero(field, value)
    local parse = units[field.type]
    return value == 0 or parse ~= nil and type(value) == "string" and parse(value) == 0
end

--- @export
return {
    read = read,
    refusal = refusal,
    allowed_in_file = allowed_in_file,
    is_unreadable = is_unreadable,
    is_zero = is_zero,
    shown = shown,
    shown_key = shown_key,
}
