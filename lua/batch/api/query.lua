-- SPDX-License-Identifier: MIT

--- What stands behind the question mark of an address, and ids in paths: decoded and checked. Knows
-- no parameter by name.

local answers = require "batch.api.answers"

-- Larger counts mean "all": no store holds as many, and doubles count exactly up to here.
local MAX_COUNT = 2 ^ 53
local ID_LENGTH = 36

local function decode_byte(digits)
    return string.char(tonumber(digits, 16))
end

--- Decodes what is percent-encoded; a percent sign that begins nothing stays one.
-- @tparam string text
-- @tparam[opt] boolean is_query whether + is a space
-- @treturn string
local function decode(text, is_query)
    if is_query then
        text = text:gsub("+", " ")
    end
    return text:find("%", 1, true) and text:gsub("%%(%x%x)", decode_byte) or text
end

local NOTHING = {}

local function parse(text)
    if not text then
        return NOTHING
    end
    local given = {}
    for pair in text:gmatch "[^&]+" do
        local name, value = pair:match "^([^=]*)=?(.*)$"
        name = decode(name, true)
        if given[name] == nil then
            given[name] = decode(value, true)
        end
    end
    return given
end

local readers = {}

function readers.count(text)
    local digits = text:match "^%d+$"
    if not digits then
        return nil, "an integer from 0"
    end
    local number = math.min(tonumber(digits), MAX_COUNT)
    return math.tointeger and math.tointeger(number) or number
end

function readers.flag(text)
    if text == "true" or text == "false" then
        return text == "true"
    end
    return nil, "true or false"
end

function readers.choice(text, parameter)
    for _, value in ipairs(parameter.values) do
        if text == value then
            return value
        end
    end
    return nil, "one of " .. table.concat(parameter.values, ", ")
end

function readers.id(text)
    if text:find("^%x+%-%x+%-%x+%-%x+%-%x+$") and #text == ID_LENGTH and text == text:lower() then
        return text
    end
    return nil, "a job's id"
end

--- Reads a query.
-- @tparam ?string text
-- @tparam table parameters list of `{name, type: count, flag, choice (with values) or id,
-- default}`; what else is in the query is passed over
-- @treturn[1] table name → value
-- @treturn[2] nil
-- @treturn[2] string what is wrong
local function read(text, parameters)
    local given, values = parse(text), {}
    for _, parameter in ipairs(parameters) do
        local name = parameter.name
        local value, rule = parameter.default, nil
        if given[name] then
            value, rule = readers[parameter.type](given[name], parameter)
        end
        if rule then
            return nil, ("%s must be %s, got %s"):format(name, rule, answers.quote(given[name]))
        end
        values[name] = value
    end
    return values
end

--- @export
return { read = read, decode = decode }
