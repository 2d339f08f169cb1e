-- SPDX-License-Identifier: MIT

--- What light threads wait for, after the model of cqueues: any number of them wait, a signal
-- resumes all that do.

local semaphore = require "ngx.semaphore"

local FOR_LONG_SECONDS = 86400 -- whoever waits without a limit asks again after it

local methods = {}
local metatable = { __name = "condition", __index = methods }

--- Makes a condition.
-- @treturn condition
local function new()
    return setmetatable({ _semaphore = semaphore.new() }, metatable)
end

--- Suspends the light thread until the next signal.
-- @tparam[opt] number seconds at most
function methods:wait(seconds)
    self._semaphore:wait(seconds or FOR_LONG_SECONDS)
end

--- Resumes all that wait.
function methods:signal()
    local n_waiting = -self._semaphore:count()
    if n_waiting > 0 then
        self._semaphore:post(n_waiting)
    end
end

--- Resumes one of those that wait.
function methods:signal_one()
    if self._semaphore:count() < 0 then
        self._semaphore:post(1)
    end
end

--- Tells whether a light thread waits that nothing has resumed yet.
-- @treturn boolean
function methods:is_awaited()
    return self._semaphore:count() < 0
end

--- @export
return { new = new }
