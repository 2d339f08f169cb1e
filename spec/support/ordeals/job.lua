-- SPDX-License-Identifier: MIT
--
-- Ordeal: a new store, a job of twenty targets, and its work up to the end.

local batch = require "batch"

local TARGETS = 20

local function note_all(world)
    return {
        target = function(_, _, _, info) world:note("outcome " .. info.idx) end,
        job = function(status) world:note("ended " .. status) end,
    }
end

local function work(world, runner)
    runner:drain(function(target, ctx)
        world:note("fetched " .. ctx.idx)
        return world.fetch(target, ctx)
    end)
end

local function act(world)
    local runner = world:runner { durability = "full", hooks = note_all(world) }
    local id = world:try(runner.submit, runner, "ann", world.targets(TARGETS))
    world:note("submitted " .. id)
    work(world, runner)
    assert(runner:close())
end

-- What is stored now: nothing that was told is missing, and no more than can have happened.
local function check_job(world, told)
    local client = assert(batch.client { store = world.store })
    local jobs = assert(client:jobs())
    assert(#jobs <= 1, "more than one job")
    local known = world:word "submitted"
    assert(not known or jobs[1] and jobs[1].id == known, "the job is gone")
    if jobs[1] then
        local job, targets = assert(client:status(jobs[1].id))
        local count = world.check_outcomes(targets)
        assert(#targets == TARGETS and job.targets_done == count)
        assert((job.status == "partial") == (count == TARGETS), job.status)
        for idx = count, TARGETS - 1 do
            assert(not told["outcome " .. idx], "outcome " .. idx .. " is gone")
        end
        assert(told.complete == nil or count == TARGETS, "it should have ended")
    end
    assert(client:close())
    return known
end

local function judge(world, told)
    local known = check_job(world, told)
    local runner = world:runner { hooks = note_all(world) }
    local id, reused = assert(runner:submit("ann", world.targets(TARGETS)))
    assert(not known or id == known and reused, "the same submit makes another job")
    work(world, runner)
    assert(runner:close())
    local again = world:told()
    world:note("submitted " .. id)
    again.complete = 1
    check_job(world, {complete = 1})
    local twice = 0
    for idx = 0, TARGETS - 1 do
        twice = twice + again["fetched " .. idx] - 1
        assert((again["outcome " .. idx] or 0) <= 1, "outcome " .. idx .. " was told twice")
    end
    assert(twice <= 1, "more than the target in flight was fetched again")
    assert((again["ended partial"] or 0) <= 1, "the end was told twice")
end

return { prepare = function() end, act = act, judge = judge }
