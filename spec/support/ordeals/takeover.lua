-- SPDX-License-Identifier: MIT
--
-- Ordeal: a runner opens a store whose last owner has died with jobs in its hands, takes them over
-- and ends them.

local batch = require "batch"
local dead_owner = require "spec.support.ordeals.dead_owner"

local function work(world, runner)
    runner:drain(function(target, ctx)
        world:note(("fetched %s %d"):format(ctx.caller, ctx.idx))
        return world.fetch(target, ctx)
    end)
    assert(runner:close())
end

local function hooks(world)
    return {
        target = function(_, _, _, info)
            world:note(("outcome %s %d"):format(info.caller, info.idx))
        end,
    }
end

local function act(world)
    work(world, world:runner { hooks = hooks(world) })
end

local function check_jobs(world, told, is_over)
    local client = assert(batch.client { store = world.store })
    for i = 1, dead_owner.JOBS do
        local job, targets = assert(client:status(world:word("job" .. i)))
        local count = world.check_outcomes(targets)
        assert(job.targets_done == count and count >= 1)
        assert(job.status == (count == 4 and "partial" or job.status))
        assert(count == 4 or job.status == "running" or job.status == "queued", job.status)
        assert(count == 4 or not is_over, "a job was left")
        for idx = count, 3 do
            assert(not told[("outcome %s %d"):format(job.caller, idx)], "an outcome is gone")
        end
    end
    assert(client:close())
end

local function judge(world, told)
    check_jobs(world, told, told.complete)
    work(world, world:runner { hooks = hooks(world) })
    local again = world:told()
    check_jobs(world, {}, true)
    local twice = 0
    for i = 1, dead_owner.JOBS do
        for idx = 1, 3 do
            twice = twice + again[("fetched c%d %d"):format(i, idx)] - 1
            assert((again[("outcome c%d %d"):format(i, idx)] or 0) <= 1, "told twice")
        end
    end
    assert(twice <= dead_owner.JOBS, "more than what was in flight was fetched again")
end

return { prepare = dead_owner.prepare, leaves_with = dead_owner.STATUS, act = act, judge = judge }
