-- SPDX-License-Identifier: MIT
--
-- Ordeal: a runner opens a store whose last owner has died with jobs in its hands, and fails them.

local batch = require "batch"
local dead_owner = require "spec.support.ordeals.dead_owner"

local function act(world)
    local runner = world:runner { on_restart = "fail" }
    world:note "opened yes"
    assert(runner:close())
end

local function check_jobs(world, is_over)
    local client = assert(batch.client { store = world.store })
    for _, job in ipairs(assert(client:jobs())) do
        local _, targets = assert(client:status(job.id))
        assert(world.check_outcomes(targets) == 1 and job.targets_done == 1)
        if job.status == "failed" then
            assert(job.error == "restart" and job.finished_at)
        else
            assert(not is_over, "a job of a dead process is " .. job.status)
            assert(job.status == "running" and not job.error)
        end
    end
    assert(#client:jobs() == dead_owner.JOBS)
    assert(client:close())
end

local function judge(world, told)
    check_jobs(world, told["opened yes"])
    local runner = world:runner { on_restart = "fail" }
    check_jobs(world, true)
    local id = assert(runner:submit("zoe", world.targets(5)))
    runner:drain(world.fetch)
    assert(runner:status(id).status == "partial")
    assert(runner:close())
end

return { prepare = dead_owner.prepare, leaves_with = dead_owner.STATUS, act = act, judge = judge }
