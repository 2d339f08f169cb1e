-- SPDX-License-Identifier: MIT

--- The methods of a runner whose program does the work itself (executor "manual"). They raise on
-- any other runner: self:_hands sees to that.

local jit = rawget(_G, "jit")  -- LuaJIT's, nil elsewhere

local methods = {}

--- Takes a target to work on.
-- @treturn[1] table task: `url`, `options`, `job`, `idx`, `caller`, `class`, `attempt`, `deadline`
-- @treturn[2] nil
-- @treturn[2] number seconds until one may be there
function methods:take()
    return self:_hands("take"):take()
end

--- Ends a task with what a fetch would return.
-- @tparam table task
-- @param ... the return values
function methods:finish(task, ...)
    return self:_hands("finish"):finish(task, ...)
end

--- Ends a task as failed.
-- @tparam table task
-- @tparam string message
-- @tparam[opt] string hint
function methods:fail(task, message, hint)
    return self:_hands("fail"):fail(task, message, hint)
end

--- Puts a task off because its target is busy.
-- @tparam table task
-- @tparam string message stored if it stays busy for too long
-- @tparam[opt] number seconds
function methods:later(task, message, seconds)
    return self:_hands("later"):later(task, message, seconds)
end

--- Puts a task back, as if it had not been taken: no attempt is counted. So does dropping it, when
-- its memory is collected.
-- @tparam table task
function methods:give_back(task)
    return self:_hands("give_back"):give_back(task)
end

--- Tells whether the work on a task may be broken off.
-- @tparam table task
-- @treturn boolean its job was cancelled, or the runner closes
function methods:is_cancelled(task)
    return self:_hands("is_cancelled"):is_cancelled(task)
end

local function drain(self, handle, fetch)
    local count = 0
    repeat
        local is_taken, has_outcome = handle:drain_one(fetch)
        count = count + (has_outcome and 1 or 0)
        local has_work = is_taken or self:_wait_for_work(handle)
        -- The last events come after the last target, and a hook may submit.
        local has_events = self:poll() > 0
    until self._is_closed or not has_work and not has_events
    return count
end

-- Calls f with LuaJIT's compiler off and what it has compiled forgotten: a time-out cannot stop a
-- loop of machine code. For the whole state, because fetch may call anything.
local function without_compiler(f, ...)
    if not jit or not jit.status() then
        return f(...)
    end
    jit.off()
    jit.flush()
    local is_fine, result = pcall(f, ...)
    jit.on()
    return is_fine and result or error(result, 0)
end

--- Runs fetch in this state until no live job is left; calls the hooks. While it does, LuaJIT's
-- compiler is off: else a loop in fetch could not be stopped when its time is up.
-- @tparam function fetch as for `batch.new`; closures are welcome
-- @treturn integer number of targets that got their outcome
function methods:drain(fetch)
    local handle = self:_hands("drain")
    if type(fetch) ~= "function" then
        error("fetch must be a function, got " .. type(fetch), 2)
    end
    return without_compiler(drain, self, handle, fetch)
end

-- Waits a little until something may be taken; returns whether any live job is left.
function methods._wait_for_work(_, handle)
    local has_work = handle:wait_for_work(0.05)
    -- A task that was dropped is what drain may be waiting for: it is found within a second or so,
    -- however large the heap, in any VM.
    collectgarbage("step", math.ceil(collectgarbage "count" / 10))
    return has_work
end

--- @export
return methods
