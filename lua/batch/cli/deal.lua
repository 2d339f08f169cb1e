-- SPDX-License-Identifier: MIT

--- Deals the targets of a list into jobs, in turn, like cards. A job is serial, so their number
-- bounds how many workers are busy; it depends on the list alone, so that a run started again with
-- other workers deals the same jobs and goes on with them. The targets rest in lists of the core's,
-- which hold little in memory, so that a million lines need no memory of their own.

local core = require "batch.core"

-- Keeps 64 workers busy, and is few enough to hold a file open for each job.
local MAX_JOBS = 64

local methods = {}
local metatable = { __name = "deal", __index = methods }

function metatable.__tostring(self)
    return ("deal (%d targets, %d jobs)"):format(self._total, self:jobs())
end

--- Makes a deal without targets.
-- @treturn deal
local function new()
    return setmetatable({
        _total = 0,
        _lists = {}, -- of each job, until it is closed
        _n_jobs = 0,
        -- Where the distance between a target's place and the number of its line in the input
        -- changes: comments and blank lines have numbers, but no place.
        _starts = {},
        _shifts = {},
    }, metatable)
end

--- Adds the next target.
-- @tparam table target `url` and perhaps `options`
-- @tparam number number of its line in the input, from 1, ascending
-- @treturn[1] true
-- @treturn[2] nil
-- @treturn[2] string what is wrong with it
function methods:add(target, number)
    local job = self._total % MAX_JOBS + 1
    local list = self._lists[job]
    if not list then
        list = core.targets()
        self._lists[job], self._n_jobs = list, job
    end
    local is_added, message = list:add(target)
    if not is_added then
        return nil, (message:gsub("^target %d+: ", ""))
    end
    local place = self._total + 1
    self._total = place
    if number - place ~= self._shifts[#self._shifts] then
        self._starts[#self._starts + 1] = place
        self._shifts[#self._shifts + 1] = number - place
    end
    return true
end

--- @treturn number of targets
function methods:total()
    return self._total
end

--- @treturn number of jobs: as many as targets, up to 64
function methods:jobs()
    return self._n_jobs
end

--- The targets of a job, in order, as a runner's `submit` takes them.
-- @tparam number job from 1
function methods:targets(job)
    return self._lists[job]
end

--- Tells where a target came from.
-- @tparam number job from 1
-- @tparam number idx of the target in its job, from 0
-- @treturn number of the line in the input, from 1
function methods:line(job, idx)
    local place = idx * self._n_jobs + job
    local low, high = 1, #self._starts
    while low < high do
        local middle = math.floor((low + high + 1) / 2)
        if self._starts[middle] <= place then
            low = middle
        else
            high = middle - 1
        end
    end
    return place + self._shifts[low]
end

--- Lets the targets of a job go. What `total`, `jobs` and `line` say stays true.
-- @tparam number job from 1
function methods:release(job)
    self._lists[job]:close()
    self._lists[job] = nil
end

--- @export
return {
    new = new,
}
