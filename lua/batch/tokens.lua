-- SPDX-License-Identifier: MIT

--- The tokens that a carried function is written in: a letter, the length of the payload, a colon,
-- the payload. Any byte may stand in a payload, so nothing is escaped. Knows the scalars n nil,
-- t true, f false, i integer, d float, s string, z null; what other letters mean is the user's.

local cjson = require "cjson"

local ODD_NUMBERS = { inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0 }

local function token(letter, payload)
    return letter .. #payload .. ":" .. payload
end

local function number_token(number)
    if math.type and math.type(number) == "integer" then
        return token("i", ("%d"):format(number))
    elseif number ~= number then
        return token("d", "nan")
    end
    -- Hexadecimal is exact, and keeps the sign of -0.0 and 1.0 a float.
    return token("d", ("%a"):format(number))
end

-- The token of a scalar; nil for anything else.
local function scalar(value)
    local kind = type(value)
    if kind == "string" then
        return token("s", value)
    elseif kind == "number" then
        return number_token(value)
    elseif kind == "boolean" then
        return token(value and "t" or "f", "")
    elseif kind == "nil" then
        return token("n", "")
    elseif rawequal(value, cjson.null) then
        return token("z", "")
    end
end

local function scalar_value(letter, payload)
    if letter == "s" then
        return payload
    elseif letter == "i" or letter == "d" then
        return ODD_NUMBERS[payload] or tonumber(payload)
    elseif letter == "z" then
        return cjson.null
    elseif letter == "t" or letter == "f" then
        return letter == "t"
    end
    return nil
end

-- A function that returns the next token's letter and payload at each call.
local function reader(stream)
    local at = 1
    return function()
        local letter, len, start = stream:match("^(%a)(%d+):()", at)
        at = start + len
        return letter, stream:sub(start, at - 1)
    end
end

return { token = token, scalar = scalar, scalar_value = scalar_value, reader = reader }
