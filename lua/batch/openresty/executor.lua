-- SPDX-License-Identifier: MIT

--- Light threads that take targets, fetch them, and finish them. Each works in a timer of its own,
-- which another one replaces after about a thousand targets: what a fetch takes from its timer's
-- pool is given back with the timer. The fetch runs in a child of that thread, so that it can be
-- stopped when its time is up.

local condition = require "batch.openresty.condition"
local context = require "batch.openresty.context"
local core = require "batch.core"

local TARGETS_PER_TIMER = 1000
-- Between two timers of a slot; so one that did not start, for want of connections, say, is asked
-- for again.
local START_PATIENCE_SECONDS = 1

local methods = {}
local metatable = { __name = "executor", __index = methods }

local function traceback(raised)
    return debug.traceback(tostring(raised), 2)
end

-- A fetch and its verdict ------------------------------------------------------------------------

local function report(self, task, message, trace)
    self._log("error", message,
        { job = task.job, idx = task.idx, url = task.url, detail = trace })
end

local function conclude(self, errand, is_fine, ...)
    if errand.is_given_up then
        return
    end
    self._stalls:leave(errand.task)
    errand.is_concluded = true
    if is_fine then
        self._runner:finish(errand.task, ...)
    else
        report(self, errand.task, "fetch raised an error", (...))
        self._runner:fail(errand.task, "internal error")
    end
end

local function fetch(self, errand)
    local task = errand.task
    local target = { url = task.url, options = task.options }
    conclude(self, errand, xpcall(self._fetch, traceback, target, errand.context))
end

-- The child's body. What is raised beside the fetch is a defect; the target is pending again.
local function run_child(self, hand, errand)
    local is_fine, trace = xpcall(fetch, traceback, self, errand)
    if not is_fine then
        report(self, errand.task, "internal error", trace)
    end
    errand.is_over = true
    hand.settled:signal()
end

-- The target's time is up, or the worker's: the fetch is stopped, if it can be, and what it still
-- returns is dropped.
local function give_up(self, errand, thread)
    errand.is_given_up = true
    errand.context:give_up()
    ngx.thread.kill(thread)
    self._stalls:leave(errand.task)
    if self._is_cut then
        self._runner:give_back(errand.task)
    else
        self._runner:fail(errand.task, "timed out")
    end
end

-- Returns whether the fetch came to its end by itself.
local function run(self, hand, task)
    local errand = { task = task, context = context.new(self._runner, task) }
    hand.errand = errand
    self._stalls:enter(task)
    local thread = ngx.thread.spawn(run_child, self, hand, errand)
    while not errand.is_over and not (self._is_cut and not errand.is_concluded) do
        local left = errand.context:left()
        if left <= 0 then
            break
        end
        hand.settled:wait(left)
    end
    if errand.is_over then
        ngx.thread.wait(thread)
    elseif not errand.is_concluded then
        give_up(self, errand, thread)
    end
    return errand.is_over
end

-- The light threads ------------------------------------------------------------------------------

local start

-- Returns whether the next target may come to this timer as well.
local function work_once(self, hand, task)
    self._turns:signal_one() -- there may be more than one
    self._n_busy = self._n_busy + 1
    local is_fine, is_whole = xpcall(run, traceback, self, hand, task)
    self._n_busy = self._n_busy - 1
    hand.errand = nil
    hand.n_targets = hand.n_targets + 1
    if not is_fine then
        report(self, task, "internal error", is_whole)
    end
    return is_fine and is_whole and hand.n_targets < TARGETS_PER_TIMER
end

local function work(premature, self, slot, generation)
    if premature or self._is_leaving then
        return
    end
    -- A hand is one timer's: two of a slot's may be there for a while.
    local hand = { slot = slot, generation = generation, n_targets = 0, settled = condition.new() }
    slot.generation, self._hands[hand] = generation, true
    self._turns:signal() -- the one before may wait, and leaves
    while slot.generation == generation and not self._is_leaving do
        local task = self._runner:take()
        if not task then
            self._turns:wait()
        elseif not work_once(self, hand, task) then
            start(self, slot) -- goes on itself until the other one is there
        end
    end
    self._hands[hand] = nil
    self._turns:signal_one() -- it may have been woken for a target
end

-- Gives a slot a new timer, unless one is on its way.
function start(self, slot)
    local now = core.monotime()
    if now - slot.started_at < START_PATIENCE_SECONDS then
        return
    end
    slot.n_timers = slot.n_timers + 1
    slot.started_at = now
    local is_started, message = ngx.timer.at(0, function(premature, ...)
        local is_fine, trace = xpcall(work, traceback, premature, ...)
        if not is_fine then
            self._log("error", "a light thread failed", { detail = trace })
            slot.generation = nil
        end
    end, self, slot, slot.n_timers)
    if not is_started then
        self._log("warn", "no timer for a light thread", { detail = message })
    end
end

-- The hand's timer is gone, and with it the light thread that waited for the fetch.
local function mourn(self, hand)
    local slot, task = hand.slot, hand.errand.task
    self._hands[hand] = nil
    self._n_busy = self._n_busy - 1
    self._stalls:leave(task)
    report(self, task, "fetch ended its light thread, as ngx.exit does: let it return instead")
    self._runner:fail(task, "internal error")
    if slot.generation == hand.generation then
        slot.generation, slot.started_at = nil, -math.huge
        start(self, slot)
    end
end

-- Whoever calls ngx.exit in a fetch ends all light threads of its timer, and nobody is told: what
-- is left is a fetch that nobody waits for. Looked at twice, for one who has been resumed does not
-- wait either until it runs.
local function look_after(self)
    for hand in pairs(self._hands) do
        local errand = hand.errand
        local is_missed = errand and not errand.is_over and not hand.settled:is_awaited()
        if is_missed and hand.missed == errand then
            mourn(self, hand)
        end
        hand.missed = is_missed and errand or nil
    end
end

--- Makes an executor; `start` begins its work.
-- @tparam table parts `runner` (manual), `fetch`, `workers`, `log`, `stalls`
-- @treturn executor
local function new(parts)
    local self = {
        _runner = parts.runner, _fetch = parts.fetch, _log = parts.log, _stalls = parts.stalls,
        _turns = condition.new(), _slots = {}, _hands = {}, _n_busy = 0,
        _is_leaving = false, _is_cut = false,
    }
    for i = 1, parts.workers do
        self._slots[i] = { n_timers = 0, started_at = -math.huge }
    end
    parts.stalls:watch(function() look_after(self) end)
    return setmetatable(self, metatable)
end

--- Starts the light threads that are not there: all of them, or those whose timer was refused.
function methods:start()
    for _, slot in ipairs(self._slots) do
        if not slot.generation then
            start(self, slot)
        end
    end
end

--- Wakes a light thread, for a target may be taken.
function methods:wake()
    self._turns:signal_one()
    self:start()
end

--- Counts the targets that are being fetched. Of an executor that leaves, to be asked again and
-- again.
-- @treturn integer
function methods:busy()
    if self._is_leaving then
        look_after(self) -- pulses have ended
    end
    return self._n_busy
end

--- Takes nothing more; what is being fetched goes on.
function methods:leave()
    self._is_leaving = true
    for hand in pairs(self._hands) do
        hand.missed = nil -- the next look may come in this very round of the loop
    end
    self._turns:signal()
end

--- Stops what is being fetched; those targets go back to the store.
function methods:cut()
    self._is_cut = true
    for hand in pairs(self._hands) do
        hand.settled:signal()
    end
end

--- @export
return { new = new }
