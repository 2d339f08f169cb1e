-- SPDX-License-Identifier: MIT

--- Durations and sizes as people write them. Both are read from text alone, which says nil to what
-- is none.
-- Whether zero is allowed is for the caller to say.

-- The largest duration that Go's syntax holds is 2^63 - 1 nanoseconds.
local MAX_SECONDS, MAX_NANOSECONDS = 9223372036, 854775807

local SECONDS = { s = 1, m = 60, h = 3600, d = 86400 }
local DECIMAL_PLACES = { ms = 3, us = 6, ["\194\181s"] = 6, ["\206\188s"] = 6, ns = 9 }

local MAX_BYTES = 2 ^ 53 -- every whole number up to here is exact on each VM
local MAX_BYTES_DIGITS = ("%.0f"):format(MAX_BYTES)
local BYTES = { [""] = 1, KiB = 1024 ^ 1, MiB = 1024 ^ 2, GiB = 1024 ^ 3 }

-- The whole seconds and the nanoseconds of one component such as "1.5h", or nil. Digits below a
-- nanosecond are cut off. Kept apart, the two parts stay exact in doubles.
local function component(whole, fraction, unit)
    local places = DECIMAL_PLACES[unit]
    if places then
        whole = ("0"):rep(places) .. whole
        whole, fraction = whole:sub(1, -places - 1), whole:sub(-places) .. fraction
    end
    local unit_seconds = places and 1 or SECONDS[unit]
    whole = whole:gsub("^0+", "")
    if not unit_seconds or #whole > #("%d"):format(MAX_SECONDS) then
        return nil
    end
    local seconds = (tonumber(whole) or 0) * unit_seconds
    if unit_seconds == 1 then
        return seconds, tonumber((fraction .. "000000000"):sub(1, 9))
    end
    local nanoseconds = math.floor(tonumber("0." .. fraction .. "0") * unit_seconds * 1e9)
    return seconds + math.floor(nanoseconds / 1e9), nanoseconds % 1e9
end

local function whole_number(number)
    return math.tointeger and math.tointeger(number) or number
end

--- Reads a duration: numbers with units, such as `1h30m` or `1.5s`; a bare `0` is one too.
-- @tparam string text
-- @treturn ?number seconds, 0 or more
local function duration(text)
    local rest = text:match("^%s*%+?(.-)%s*$")
    if rest == "0" then
        return 0
    elseif rest == "" then
        return nil
    end
    local seconds, nanoseconds = 0, 0
    while rest ~= "" do
        local whole, point, fraction, unit, after = rest:match("^(%d*)(%.?)(%d*)([^%d.]+)(.*)$")
        if not whole or whole .. fraction == "" or point == "" and fraction ~= "" then
            return nil
        end
        local more_seconds, more_nanoseconds = component(whole, fraction, unit)
        if not more_seconds then
            return nil
        end
        nanoseconds = nanoseconds + more_nanoseconds
        local carried = math.floor(nanoseconds / 1e9)
        seconds, nanoseconds = seconds + more_seconds + carried, nanoseconds - carried * 1e9
        if seconds > MAX_SECONDS or seconds == MAX_SECONDS and nanoseconds > MAX_NANOSECONDS then
            return nil
        end
        rest = after
    end
    return nanoseconds == 0 and whole_number(seconds) or seconds + nanoseconds / 1e9
end

--- Reads a size: a whole number, or one with exactly `KiB`, `MiB` or `GiB`.
-- @tparam string text
-- @treturn ?number bytes, 0 or more
local function size(text)
    local digits, suffix = text:match("^%s*(%d+)%s*(%a*)%s*$")
    local unit_bytes = BYTES[suffix]
    digits = digits and digits:gsub("^0+", "")
    -- Compared as text, because doubles cannot tell 2^53 + 1 from 2^53.
    if not unit_bytes or #digits > #MAX_BYTES_DIGITS
        or #digits == #MAX_BYTES_DIGITS and digits > MAX_BYTES_DIGITS then
        return nil
    end
    local bytes = (tonumber(digits) or 0) * unit_bytes
    return bytes <= MAX_BYTES and whole_number(bytes) or nil
end

local LARGER = { "KiB", "MiB", "GiB", "TiB" }

--- Writes a size for people.
-- @tparam number bytes
-- @treturn string with one decimal place, such as "1.5 MiB"
local function format_size(bytes)
    local unit = "bytes"
    for _, larger in ipairs(LARGER) do
        if bytes < 1024 then
            break
        end
        bytes, unit = bytes / 1024, larger
    end
    return (unit == "bytes" and "%d %s" or "%.1f %s"):format(bytes, unit)
end

--- @export
return { duration = duration, size = size, format_size = format_size }
