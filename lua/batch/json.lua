-- SPDX-License-Identifier: MIT

--- JSON as this project prints it: on one line, objects with sorted keys, numbers exactly, slashes
-- as they are, so that two outputs can be compared byte by byte.

local cjson = require("cjson").new()

-- Up to this length a look whether there is anything to escape is cheaper than cjson.
local SHORT = 100
local SLASH = { ["\\/"] = "/" }

-- cjson escapes slashes, which hides URLs from whoever searches the output for them. Matching pairs
-- keeps an escaped backslash before a slash apart from an escaped slash.
local function encode_string(text)
    if #text <= SHORT and not text:find('[%c"\\]') then
        return '"' .. text .. '"'
    end
    local json = cjson.encode(text)
    if json:find("\\/", 1, true) then
        json = json:gsub("\\[\\/]", SLASH)
    end
    return json
end

local function encode_number(number)
    if number ~= number or number - number ~= 0 then
        return "null"
    end
    if number == math.floor(number) and math.abs(number) <= 2 ^ 53 then
        return ("%d"):format(number)
    end
    local text
    for digits = 15, 17 do
        text = ("%." .. digits .. "g"):format(number)
        if tonumber(text) == number then
            break
        end
    end
    return text
end

local encode

local list_metatable = { __name = "list" }

--- Marks a table as a list, so that it is one even when it is empty.
-- @tparam table elements
-- @treturn table the same
local function list(elements)
    return setmetatable(elements, list_metatable)
end

local function encode_table(value)
    local is_list = #value > 0 or getmetatable(value) == list_metatable
    if next(value) == nil then
        return is_list and "[]" or "{}"
    end
    local parts = {}
    if is_list then
        for i, element in ipairs(value) do
            parts[i] = encode(element)
        end
        return "[" .. table.concat(parts, ",") .. "]"
    end
    local keys = {}
    for key in pairs(value) do
        keys[#keys + 1] = tostring(key)
    end
    table.sort(keys)
    for i, key in ipairs(keys) do
        parts[i] = encode_string(key) .. ":" .. encode(value[key])
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

--- Encodes a value as JSON on one line; objects sort their keys, an empty table is `{}`,
-- unless `list` marked it.
-- @param value of data: tables, strings in UTF-8, numbers, booleans; anything else becomes null
-- @treturn string
function encode(value)
    local kind = type(value)
    if kind == "table" then
        return encode_table(value)
    elseif kind == "string" then
        return encode_string(value)
    elseif kind == "number" then
        return encode_number(value)
    elseif kind == "boolean" then
        return tostring(value)
    end
    return "null"
end

-- The second that was named last: outcomes come in the order of time, thousands in a second.
local named_second, name_of_second

--- Encodes a moment as RFC 3339 in UTC, to the millisecond.
-- @tparam number seconds since the epoch
-- @treturn string in quotes
local function encode_time(seconds)
    local ms = math.floor(seconds * 1000 + 0.5)
    local whole = math.floor(ms / 1000)
    if whole ~= named_second then
        named_second, name_of_second = whole, os.date("!%Y-%m-%dT%H:%M:%S", whole)
    end
    return ('"%s.%03dZ"'):format(name_of_second, ms - whole * 1000)
end

--- @export
return {
    encode = encode,
    encode_string = encode_string,
    encode_number = encode_number,
    encode_time = encode_time,
    list = list,
}
