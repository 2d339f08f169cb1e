-- SPDX-License-Identifier: MIT

--- Finds fetches that block the event loop: while one does, no request is answered. A fetch that
-- ends in the same round of the loop in which it blocked is told by name; where it goes on, or has
-- had nginx read its clock, by a pulse that came late, it is one of those that were being fetched.

local core = require "batch.core"
local ffi = require "ffi"

ffi.cdef "extern volatile uintptr_t ngx_current_msec;"

local TOO_LONG_SECONDS = 0.1
local PULSE_SECONDS = 0.1
local MAX_NAMED = 5

local methods = {}
local metatable = { __name = "stalls", __index = methods }

-- How long this round of the loop has been going on: nginx reads its clocks once for each, unless
-- somebody asks it to, such as the fetch itself. Of its clocks the one that nobody sets, in
-- milliseconds; ngx.now is the other one.
local function round_seconds()
    return core.monotime() - tonumber(ffi.C.ngx_current_msec) / 1000
end

local function report(self, seconds, fields)
    self._told_at = core.monotime()
    fields.seconds = math.floor(seconds * 1000) / 1000
    self._log("warn", "the event loop was blocked by a fetch", fields)
end

local function name_of(task)
    return ("%s/%d"):format(task.job, task.idx)
end

local function report_suspects(self, seconds)
    local names = {}
    for _, task in ipairs(self._ended) do
        names[#names + 1] = name_of(task)
    end
    for task in pairs(self._tasks) do
        if #names < 2 * MAX_NAMED then
            names[#names + 1] = name_of(task)
        end
    end
    report(self, seconds, { one_of = table.concat(names, " "), inflight = self._n_tasks })
end

local beat

local function arm(self)
    self._is_beating = true
    self._due_at = core.monotime() + PULSE_SECONDS
    if not ngx.timer.at(PULSE_SECONDS, beat, self) then
        self._is_beating = false -- the worker is leaving
    end
end

function beat(premature, self)
    local late = core.monotime() - self._due_at
    local is_told = self._told_at > self._due_at - PULSE_SECONDS
    local has_suspects = self._n_tasks > 0 or next(self._ended) ~= nil
    if late > TOO_LONG_SECONDS and has_suspects and not is_told and not premature then
        report_suspects(self, late)
    end
    self._ended, self._n_ended = {}, 0
    if self._n_tasks == 0 or premature then
        self._is_beating = false
        return
    end
    arm(self)
    self._on_pulse()
end

--- Makes what watches for stalls.
-- @tparam function log as in `batch.new`
-- @treturn stalls
local function new(log)
    return setmetatable({
        _log = log, _tasks = {}, _n_tasks = 0, _told_at = 0, _on_pulse = function() end,
        _ended = {}, _n_ended = 0, -- the last ones to end since the last pulse
    }, metatable)
end

--- Asks to be called at each pulse: ten times a second while anything is fetched.
-- @tparam function on_pulse
function methods:watch(on_pulse)
    self._on_pulse = on_pulse
end

--- A fetch begins.
-- @tparam table task
function methods:enter(task)
    self._tasks[task] = true
    self._n_tasks = self._n_tasks + 1
    if not self._is_beating then
        arm(self)
    end
end

--- A fetch has ended.
-- @tparam table task
function methods:leave(task)
    self._tasks[task] = nil
    self._n_tasks = self._n_tasks - 1
    self._ended[self._n_ended % MAX_NAMED + 1] = task
    self._n_ended = self._n_ended + 1
    local seconds = round_seconds()
    if seconds > TOO_LONG_SECONDS then
        report(self, seconds, { job = task.job, idx = task.idx, url = task.url })
        ngx.update_time() -- the next one to end is not to blame
    end
end

--- @export
return { new = new }
