-- SPDX-License-Identifier: MIT
--
-- What becomes of a store when something breaks at any one step of what is done to it: the process
-- dies, the disk fails, memory runs out. Here at some of the steps; `make soak` takes all of them.

local ordeal = require "spec.support.ordeal"

-- What is done to a store, and every how many steps it is tried here, by the kind of the fault.
local SCENARIOS = {
    { name = "job", claim = "a job of twenty targets", die = 13, fail = 41, memory = 7,
        store_memory = 601 },
    { name = "cancel", claim = "a cancel", die = 7, fail = 37, memory = 7, store_memory = 701 },
    { name = "reap", claim = "a reap", die = 7, fail = 37, memory = 7, store_memory = 401 },
    { name = "takeover", claim = "a takeover", die = 13, fail = 53, memory = 11,
        store_memory = 701 },
    { name = "eviction", claim = "an eviction and a purge", die = 23, fail = 71, memory = 7,
        store_memory = 901 },
    { name = "migration", claim = "a migration", die = 19, fail = 53, memory = 5,
        store_memory = 251 },
    { name = "backup", claim = "a backup", die = 7, fail = 19, memory = 3, store_memory = 151 },
}

local function described(every, step)
    if every == 1 or ordeal.takes_all then
        return "any " .. step
    end
    local ends = { "st", "nd", "rd" }
    local is_teen = every % 100 >= 11 and every % 100 <= 13
    return ("every %d%s %s"):format(every, not is_teen and ends[every % 10] or "th", step)
end

-- Kinds of faults: what they do to whom, at what of it, and how often relative to the scenario's.
local FAULTS = {
    { at = "write", answer = "die", claim = "a store is whole after a death at %s of %s",
        step = "write", every = "die", factor = 1 },
    { at = "write", answer = "tear",
        claim = "a store is whole after a death in the middle of %s of %s",
        step = "write", every = "die", factor = 3 },
    { at = "io", answer = "ioerr", claim = "the disk may fail at %s of %s",
        step = "step", every = "fail", factor = 1 },
    { at = "write", answer = "full", claim = "the disk may be full at %s of %s",
        step = "write", every = "die", factor = 3 },
    { at = "lock", answer = "busy", claim = "others may be in the way at %s of %s",
        step = "lock", every = "die", factor = 3 },
    { at = "allocation", answer = "fail", claim = "memory may run out at %s of %s",
        step = "allocation", every = "memory", factor = 1 },
    { at = "store_allocation", answer = "fail", claim = "SQLite's memory may run out at %s of %s",
        step = "allocation", every = "store_memory", factor = 1 },
}

describe("whatever breaks:", function()
    setup(ordeal.start)
    teardown(ordeal.finish)

    for _, scenario in ipairs(SCENARIOS) do
        for _, fault in ipairs(FAULTS) do
            local every = scenario[fault.every] * fault.factor
            local step = described(every, fault.step)
            it(fault.claim:format(step, scenario.claim), function()
                local report = ordeal.run {
                    scenario = scenario.name, at = fault.at, answer = fault.answer, every = every,
                }
                assert.same({}, report.faults)
                assert.is_true(report.points > 1 and report.tried >= report.points / every - 1)
                print(("%s: %s at %d of %d points of %s"):format(scenario.name, fault.answer,
                    report.tried, report.points, fault.at))
            end)
        end
    end
end)
