-- SPDX-License-Identifier: MIT

--- Has the core fail, wait or die at a point of its work, to see what a program makes of it. A part
-- of `batch.testing`. The points belong to the process: a fault hits whatever runner passes next.

local fault_points = require("batch.core").fault_points

-- What goes wrong at a point unless the test says otherwise, and what may.
local STORE = "busy, full, ioerr, corrupt, die or delay"
local PLAIN = "fail, die or delay"

local points = {
    io = { usual = "ioerr", answers = STORE },
    read = { usual = "ioerr", answers = STORE },
    write = { usual = "ioerr", answers = "busy, full, ioerr, corrupt, tear, die or delay" },
    sync = { usual = "ioerr", answers = STORE },
    lock = { usual = "busy", answers = STORE },
    commit = { usual = "ioerr", answers = STORE },
    allocation = { usual = "fail", answers = PLAIN },
    store_allocation = { usual = "fail", answers = PLAIN },
    thread = { usual = "fail", answers = PLAIN },
}

local fields = { at = true, nth = true, times = true, answer = true, seconds = true }

local function is_named(list, word)
    return (" " .. list:gsub(",", "") .. " "):find(" " .. tostring(word) .. " ", 1, true) ~= nil
        and word ~= "or"
end

local function check_count(plan, name)
    local value = plan[name]
    if value ~= nil and not (type(value) == "number" and value >= 1) then
        error(name .. " must be a number from 1, got " .. tostring(value), 3)
    end
end

--- Plans a fault; a later one at the same point takes its place.
-- @tparam table plan
--
-- * `at`: `read`, `write` (also truncating and removing), `sync` and `lock` are SQLite's calls of
--   its file system, `io` any of them; `commit`: before a transaction's; `allocation`: memory of
--   the core, `store_allocation`: memory of SQLite; `thread`: the start of one
-- * `nth` (1): which passage from now on
-- * `times` (1): how many passages one after the other; `math.huge` until `no_faults`
-- * `answer`: `busy`, `full`, `ioerr` or `corrupt` at the points of the store, `fail` for memory
--   and threads; `die`: the process ends at once, with status 86; `tear`: half of the
--   write is done, then the process ends; `delay`: waits for `seconds` and goes on
-- @raise for a plan that makes no sense
local function fault(plan)
    if type(plan) ~= "table" then
        error("plan must be a table, got " .. type(plan), 2)
    end
    for name in pairs(plan) do
        if not fields[name] then
            error("a fault has no field " .. tostring(name), 2)
        end
    end
    local point = points[plan.at]
    if not point then
        error("at must be io, read, write, sync, lock, commit, allocation, store_allocation or "
            .. "thread, got " .. tostring(plan.at), 2)
    end
    local answer = plan.answer or point.usual
    if not is_named(point.answers, answer) then
        error(("answer at %s must be %s, got %s"):format(plan.at, point.answers,
            tostring(answer)), 2)
    end
    check_count(plan, "nth")
    check_count(plan, "times")
    fault_points.set(plan.at, answer, plan.nth or 1, plan.times or 1, plan.seconds or 0)
end

--- Drops all faults.
-- @treturn table how often each point was passed since its last fault was planned, or since the
-- last call of this, by the point's name
local function no_faults()
    return fault_points.clear()
end

--- Counts the passages without dropping a fault.
-- @treturn table as that of `no_faults`
local function passed()
    return fault_points.passed()
end

-- Stores that are opened from here on have points; those that are open already have no `io`,
-- `read`, `write`, `sync` and `lock`.
fault_points.begin()

--- @export
return { fault = fault, no_faults = no_faults, passed = passed }
