-- SPDX-License-Identifier: MIT

--- The scalars of TOML 1.0 that are no strings: booleans, integers, floats, dates and times. Reads
-- one whole word at a time; where a word begins and ends, and at which line, is toml.lua's matter.

local lpeg = require "lpeg"

local P, R, S, C, Cc, Cg, Ct = lpeg.P, lpeg.R, lpeg.S, lpeg.C, lpeg.Cc, lpeg.Cg, lpeg.Ct

-- The digits of 2^63 - 1 by base, without the sign.
local MAX_DIGITS = {
    [10] = "9223372036854775807",
    [16] = "7fffffffffffffff",
    [8] = "777777777777777777777",
    [2] = ("1"):rep(63),
}
local MIN_DECIMAL = "9223372036854775808"
local DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local DateTime = { __name = "toml.datetime" }

-- RFC 3339, or the part of it that is there.
function DateTime.__tostring(self)
    local parts = {}
    if self.year then
        parts[1] = ("%04d-%02d-%02d"):format(self.year, self.month, self.day)
    end
    if self.hour then
        local time = ("%02d:%02d:%02d"):format(self.hour, self.min, self.sec)
        parts[#parts + 1] = time .. (self.fraction and "." .. self.fraction or "")
    end
    return table.concat(parts, "T") .. (self.offset or "")
end

local function is_leap(year)
    return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

local function is_date(year, month, day)
    local days = DAYS[month]
    if month == 2 and is_leap(year) then
        days = 29
    end
    return days ~= nil and day >= 1 and day <= days
end

local function is_offset(offset)
    local hours, minutes = offset:match("(%d+):(%d+)")
    return not hours or tonumber(hours) <= 23 and tonumber(minutes) <= 59
end

local function to_datetime(parts)
    if parts.year and not is_date(parts.year, parts.month, parts.day) then
        return nil, "no such date"
    elseif parts.hour and (parts.hour > 23 or parts.min > 59 or parts.sec > 60) then
        return nil, "no such time"
    elseif parts.offset and not is_offset(parts.offset) then
        return nil, "no such offset"
    end
    return setmetatable(parts, DateTime)
end

-- Compared as text: not every VM has integers of 64 bits.
local function to_integer(sign, digits, base)
    digits = digits:gsub("_", ""):gsub("^0+(.)", "%1"):lower()
    local limit = sign == "-" and MIN_DECIMAL or MAX_DIGITS[base]
    if #digits > #limit or #digits == #limit and digits > limit then
        return nil, "an integer must fit into 64 bits"
    elseif base == 10 then
        return tonumber(sign .. digits)
    end
    return tonumber(digits, base)
end

local function to_float(text)
    return tonumber((text:gsub("[_+]", "")))
end

local digit = R "09"

local function underscored(digits)
    return digits * (P "_" ^ -1 * digits) ^ 0
end

local function number_of(n_digits, name)
    local digits = P(true)
    for _ = 1, n_digits do
        digits = digits * digit
    end
    return Cg(digits / function(text) return tonumber(text) end, name)
end

local date = number_of(4, "year") * "-" * number_of(2, "month") * "-" * number_of(2, "day")
local time = number_of(2, "hour") * ":" * number_of(2, "min") * ":" * number_of(2, "sec")
    * ("." * Cg(digit ^ 1, "fraction")) ^ -1
local offset = Cg(S "Zz" / "Z" + C(S "+-" * digit * digit * ":" * digit * digit), "offset")
local datetime = Ct(date * (S "Tt " * time * offset ^ -1) ^ -1 + time) / to_datetime

local sign = C(S "+-" ^ -1)
local decimal = R "19" * (P "_" ^ -1 * digit) ^ 0 + P "0"

local function prefixed(prefix, digits, base)
    return P(prefix) * Cc "" * C(underscored(digits)) * Cc(base)
end

local integer = (prefixed("0x", R("09", "af", "AF"), 16)
    + prefixed("0o", R "07", 8)
    + prefixed("0b", S "01", 2)
    + sign * C(decimal) * Cc(10)) / to_integer

local exponent = S "eE" * S "+-" ^ -1 * underscored(digit)
local fraction = "." * underscored(digit)
local float = C(S "+-" ^ -1 * decimal * (fraction * exponent ^ -1 + exponent)) / to_float
    + S "+" ^ -1 * P "inf" * Cc(math.huge) + P "-inf" * Cc(-math.huge)
    + S "+-" ^ -1 * P "nan" * Cc(0 / 0)
local boolean = P "true" * Cc(true) + P "false" * Cc(false)

local last = -P(1)
local scalar = datetime * last + float * last + integer * last + boolean * last

--- Reads one word.
-- @tparam string word
-- @return[1] boolean, number, or a table with some of `year`, `month`, `day`, `hour`, `min`, `sec`,
-- `fraction` (digits), `offset` (`Z` or `+HH:MM`) that tostring writes as RFC 3339
-- @treturn[2] nil
-- @treturn[2] string what is wrong with it
local function read(word)
    local value, message = scalar:match(word)
    if value == nil then
        return nil, message or "not a value"
    end
    return value
end

-- How long the word at the beginning of a value is: a space may part a date from its time.
local word = (digit ^ 4 * "-" * digit ^ 2 * "-" * digit ^ 2 * " " * #digit) ^ -1
    * R("09", "az", "AZ", "++", "--", "..", "::", "__") ^ 1

--- @export
return { read = read, word = word }
