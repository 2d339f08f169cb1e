-- SPDX-License-Identifier: MIT
--
-- Ordeal: a job is cancelled while its third target is in flight, which is stored nevertheless.

local batch = require "batch"

local TARGETS = 6

local function prepare(world)
    local runner = world:runner()
    local id = assert(runner:submit("ann", world.targets(TARGETS)))
    local count = 0
    -- The third one is left for later, and then the runner is closed inside of its fetch's call.
    runner:drain(function(target, ctx)
        count = count + 1
        if count == 3 then
            runner:close(0)
            return nil, "not now"
        end
        return world.fetch(target, ctx)
    end)
    assert(runner:close())
    world:note("job " .. id)
end

local function act(world)
    local runner = world:runner()
    local id = world:word "job"
    local count = 0
    runner:drain(function(target, ctx)
        count = count + 1
        if count == 1 then
            assert(world:try(runner.cancel, runner, id) == true)
            world:note "cancelled yes"
        end
        return world.fetch(target, ctx)
    end)
    assert(runner:close())
    assert(count == 1, "a target was started after the cancel")
end

local function judge(world, told)
    local id = world:word "job"
    local client = assert(batch.client { store = world.store })
    local job, targets = assert(client:status(id))
    local count = world.check_outcomes(targets)
    assert(count == 2 or count == 3)
    if told["cancelled yes"] then
        assert(job.status == "cancelled", "the cancel is gone")
    else
        assert(job.status ~= "done" and job.status ~= "partial", job.status)
    end
    assert(not told.complete or count == 3, "the target in flight is gone")
    local was_live = job.status ~= "cancelled"
    assert(client:cancel(id) == was_live)
    assert(client:cancel(id) == false)
    assert(client:close())
    local runner = world:runner()
    local other = assert(runner:submit("bob", world.targets(5)))
    runner:drain(world.fetch)
    assert(runner:status(other).status == "partial")
    assert(runner:status(id).status == "cancelled")
    assert(runner:close())
end

return { prepare = prepare, act = act, judge = judge }
