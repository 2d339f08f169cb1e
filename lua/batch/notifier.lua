-- SPDX-License-Identifier: MIT

--- Lets coroutines of one process wait for a runner: for the end of a call that writes, or for a
-- job to change. All are woken from the runner's one descriptor; the store is asked once for all
-- that wait, not once for each. Knows no event loop: its host gives it conditions, and calls
-- `dispatch`.

local core = require "batch.core"

local pack = table.pack or function(...)
    return { n = select("#", ...), ... }
end
local unpack = unpack or table.unpack

-- Looks at the jobs that are waited for take at most this share of the time, and come no more often
-- than this: a busy store changes thousands of times a second.
local MAX_SHARE = 0.1
local MIN_PAUSE_SECONDS = 0.005

local waiter_methods = {}
local waiter_metatable = { __name = "waiter", __index = waiter_methods }

local methods = {}
local metatable = { __name = "notifier", __index = methods }

function metatable.__tostring(self)
    return ("notifier (%d waiting)"):format(self._n_waiters)
end

-- A condition for programs without coroutines: it waits by blocking the thread.
local function blocking_condition(self)
    local condition = { is_signalled = false }
    function condition.signal()
        condition.is_signalled = true
    end
    function condition.wait(_, seconds)
        local deadline = core.monotime() + (seconds or 3600)
        condition.is_signalled = false
        repeat
            local pause = self:dispatch()
            local left = math.max(deadline - core.monotime(), 0)
            if not condition.is_signalled and left > 0 then
                core.poll_fd(self._runner:fd(), math.min(left, pause or left))
            end
        until condition.is_signalled or left == 0 or core.caught()
    end
    return condition
end

--- Makes the notifier of a runner; there may be one.
-- @tparam batch.runner runner
-- @tparam[opt] function new_condition gives an object with `wait(self, seconds)`, which suspends
-- the coroutine, and `signal(self)`, which resumes all that wait; left out: waiting blocks the
-- thread
-- @treturn notifier
local function new(runner, new_condition)
    local self = setmetatable({
        _runner = runner,
        _watched = {}, -- id → the set of waiters that wait for it now
        _n_waiters = 0,
        _n_calls = 0,
        _look_at = 0,
        _has_changed = false,
        _is_stopped = false,
    }, metatable)
    self._new_condition = new_condition or function() return blocking_condition(self) end
    runner:watch(function() self._has_changed = true end)
    return self
end

--- Calls a method of the runner that writes, and waits for its answer.
-- @tparam string method `submit`, `cancel` or `touch`
-- @param ... its arguments
-- @return what it returns; see `batch.evented`
function methods:call(method, ...)
    local condition, answer = self._new_condition(), nil
    local is_begun, message, code = self._runner["begin_" .. method](self._runner, function(...)
        answer = pack(...)
        self._n_calls = self._n_calls - 1
        condition:signal()
    end, ...)
    if not is_begun then
        return nil, message, code
    end
    self._n_calls = self._n_calls + 1
    while not answer do
        condition:wait()
    end
    return unpack(answer, 1, answer.n)
end

--- Counts the calls that have no answer yet.
-- @treturn integer
function methods:calls()
    return self._n_calls
end

-- Held by the coroutine that waits alone: one that is killed takes its waiter along.
local BY_WAITERS_ALONE = { __mode = "k" }

local function join(self, waiter)
    local waiters = self._watched[waiter.id]
    if not waiters then
        waiters = setmetatable({}, BY_WAITERS_ALONE)
        self._watched[waiter.id] = waiters
    end
    waiters[waiter] = true
    self._n_waiters = self._n_waiters + 1
end

--- Waits until the job is no longer what it was.
-- @tparam integer mark of what was read; nothing may have yielded since, or a change is missed
-- @tparam number seconds at most
-- @treturn boolean whether it has changed; false when the time is up, or waiting was stopped
function waiter_methods:wait(mark, seconds)
    local deadline = core.monotime() + seconds
    self.mark, self.has_changed = mark, false
    join(self.notifier, self)
    while not self.has_changed and not self.notifier._is_stopped do
        local left = deadline - core.monotime()
        if left <= 0 or core.caught() then
            break
        end
        self.condition:wait(left)
    end
    self:leave()
    return self.has_changed
end

--- Ends the wait of a coroutine that will not be resumed: nobody else would. Does nothing when
-- nothing waits.
function waiter_methods:leave()
    local watched = self.notifier._watched
    local waiters = watched[self.id]
    if waiters and waiters[self] then
        waiters[self] = nil
        self.notifier._n_waiters = self.notifier._n_waiters - 1
        if next(waiters) == nil then
            watched[self.id] = nil
        end
    end
end

--- Makes what waits for a job, again and again, in a coroutine that may be given up meanwhile.
-- @tparam string id
-- @treturn waiter
function methods:waiter(id)
    return setmetatable({ notifier = self, id = id, condition = self._new_condition() },
        waiter_metatable)
end

--- Waits once, in a coroutine that is resumed for sure.
-- @tparam string id
-- @tparam integer mark as for a waiter's `wait`
-- @tparam number seconds
-- @treturn boolean
function methods:wait(id, mark, seconds)
    return self:waiter(id):wait(mark, seconds)
end

-- The jobs that are waited for, and forgets those that were by coroutines that are gone.
local function watched_ids(self)
    local ids, n_waiters = {}, 0
    for id, waiters in pairs(self._watched) do
        for _ in pairs(waiters) do
            n_waiters = n_waiters + 1
        end
        if next(waiters) then
            ids[#ids + 1] = id
        else
            self._watched[id] = nil
        end
    end
    self._n_waiters = n_waiters
    return ids
end

local function look(self)
    local ids = watched_ids(self)
    local marks = self._runner:marks(ids)
    for i, id in ipairs(marks and ids or {}) do
        for waiter in pairs(self._watched[id]) do
            if waiter.mark ~= marks[i] then
                waiter.has_changed = true
                waiter.condition:signal()
            end
        end
    end
    return marks ~= nil
end

--- Wakes those whose time has come. To be called when the runner's descriptor is readable, and
-- after the seconds that it returned last.
-- @treturn ?number seconds until it has to be called again; nil: when the descriptor is readable
function methods:dispatch()
    self._runner:poll()
    if not self._has_changed or self._n_waiters == 0 then
        return nil
    end
    local began_at = core.monotime()
    if began_at < self._look_at then
        return self._look_at - began_at
    end
    -- A store that cannot be read is looked at again.
    self._has_changed = not look(self)
    local ended_at = core.monotime()
    self._look_at = ended_at + math.max((ended_at - began_at) / MAX_SHARE, MIN_PAUSE_SECONDS)
    return self._has_changed and self._look_at - ended_at or nil
end

--- Ends all waiting for jobs, now and from now on. Calls still get their answers.
function methods:stop()
    self._is_stopped = true
    for _, waiters in pairs(self._watched) do
        for waiter in pairs(waiters) do
            waiter.condition:signal()
        end
    end
end

--- @export
return { new = new }
