-- SPDX-License-Identifier: MIT

--- What a fetch in a light thread gets as its second argument: the fields and methods of surface
-- and README, as worker threads have them.

local core = require "batch.core"

local LOOK_SECONDS = 0.1 -- between two looks of a sleeper whether its job was cancelled

local methods = {}
local metatable = { __name = "context", __index = methods }

--- Makes the context of a task.
-- @tparam batch.runner runner
-- @tparam table task
-- @treturn context
local function new(runner, task)
    return setmetatable({
        caller = task.caller, class = task.class, job = task.job, idx = task.idx,
        attempt = task.attempt, deadline = task.deadline, _runner = runner, _task = task,
        _end_at = core.monotime() + task.deadline - core.now(), -- it was taken just now
    }, metatable)
end

--- Whether nobody wants the result any more: the job was cancelled, the time is up, or the runner
-- closes.
-- @treturn boolean
function methods:cancelled()
    return self._is_over or self._runner:is_cancelled(self._task)
end

--- How much of its time is left, whatever becomes of the wall clock.
-- @treturn number seconds, below 0 when it is over
function methods:left()
    return self._end_at - core.monotime()
end

--- Sleeps, while other light threads run.
-- @tparam number seconds
-- @treturn boolean true after the whole time; false, early, when the fetch is cancelled
function methods:sleep(seconds)
    local end_at = core.monotime() + seconds
    local left = seconds
    while left > 0 and not self:cancelled() do
        ngx.sleep(math.min(left, LOOK_SECONDS))
        left = end_at - core.monotime()
    end
    return left <= 0
end

--- Tells a fetch that outlived its time that it is over.
function methods:give_up()
    self._is_over = true
end

--- @export
return { new = new }
