-- SPDX-License-Identifier: MIT

--- The answer of a fetch function that wants its target tried again later. Alone in a file, so that
-- worker states need not load the whole of `batch` for it.

local METATABLE = {
    __name = "batch.retry",
    __tostring = function(retry)
        return "retry later: " .. retry.message
    end,
}

local function check_seconds(seconds)
    local is_span = type(seconds) == "number" and seconds >= 0 and seconds < math.huge
    if seconds ~= nil and not is_span then
        error("seconds must be a number from 0, got " .. tostring(seconds), 3)
    end
end

--- Says that a target is busy: `return nil, retry.later("the host is busy", 30)`.
-- @tparam string message stored with the target if it keeps coming back busy for too long
-- @tparam[opt] number seconds to wait; the runner's `retry_wait` if left out
-- @tparam[opt] table options `patient = true`: the wait does not count towards `retry_for`
-- @treturn table a marked table, for the runner alone
-- @raise if an argument has a wrong type
local function later(message, seconds, options)
    if type(message) ~= "string" then
        error("message must be a string, got " .. type(message), 2)
    end
    check_seconds(seconds)
    if options ~= nil and type(options) ~= "table" then
        error("options must be a table, got " .. type(options), 2)
    end
    local is_patient = options ~= nil and options.patient == true
    return setmetatable({ message = message, seconds = seconds, patient = is_patient }, METATABLE)
end

--- Whether a value came from `later`.
local function is(value)
    return type(value) == "table" and getmetatable(value) == METATABLE
end

--- @export
return { later = later, is = is }
