-- SPDX-License-Identifier: MIT
--
-- Cancelling: from the runner that has the job, from another one, from a client. The target in
-- flight finishes and is stored, no further one starts, and the status stays.

local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

local CANCELLED = { "cancelled", 3, 0 }

local function summary(job)
    return { job.status, job.targets_total, job.targets_done }
end

-- Appends the URL of each target that it fetches to a file, and goes on once another file is there.
local function slow_fetch(started, gate)
    return function(target)
        local file = io.open(started, "a")
        file:write(target.url, "\n")
        file:close()
        local core = require "batch.core"
        repeat
            core.poll_fd(-1, 0.005)
            local opened = io.open(gate)
        until opened and opened:close()
        return "finished " .. target.url
    end
end

local function content_of(path)
    local file = io.open(path)
    local text = file and file:read "*a"
    return text and file:close() and text or ""
end

describe("cancel", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("ends a queued job at once, and only once", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(3))
        assert.is_true(runner:cancel(id))
        local job, targets = runner:status(id)
        assert.same(CANCELLED, summary(job))
        assert.is_number(job.finished_at)
        assert.equal("pending", targets[1].status)
        assert.is_nil(runner:take())
        assert.is_false(runner:cancel(id))
        assert.equal(job.finished_at, runner:status(id).finished_at)
    end)

    it("leaves a job that has ended as it is", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(1))
        runner:drain(function() return "x" end)
        assert.is_false(runner:cancel(id))
        assert.equal("done", runner:status(id).status)
    end)

    it("lets the target in flight finish, and stores its outcome", function()
        for _, name in ipairs { "runner", "client" } do
            local runner = fresh.runner { store = fresh.path(name) }
            local other = name == "runner" and runner or fresh.client { store = fresh.path(name) }
            local id = runner:submit("ann", fresh.targets(3))
            local task = runner:take()
            assert.is_true(other:cancel(id))
            assert.equal("cancelled", runner:status(id).status)
            runner:finish(task, "late")
            eventually(function() return runner:status(id).targets_done == 1 end)
            local job, targets = runner:status(id)
            assert.same({ "cancelled", 3, 1 }, summary(job))
            assert.equal("late", targets[1].result.content)
            assert.same({ "pending", "pending" }, { targets[2].status, targets[3].status })
            assert.is_nil(runner:take())
            assert.equal(4, runner:stats().store_bytes)
            assert.is_true(fresh.store(fresh.path(name)):check())
        end
    end)

    it("stays when the last target finishes late", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(1))
        local task = runner:take()
        runner:cancel(id)
        runner:finish(task, "late")
        eventually(function() return runner:status(id).targets_done == 1 end)
        assert.equal("cancelled", runner:status(id).status)
    end)

    it("leaves a busy target pending", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(2))
        local task = runner:take()
        runner:cancel(id)
        runner:later(task, "busy", 0)
        local other = runner:submit("bob", fresh.targets(1))
        assert.equal(1, runner:drain(function() return "" end))
        assert.same({ "cancelled", 2, 0 }, summary(runner:status(id)))
        assert.equal("done", runner:status(other).status)
    end)

    it("stops worker threads, from this process and from another runner", function()
        for _, name in ipairs { "same", "other" } do
            local started, gate = fresh.path(name .. ".started"), fresh.path(name .. ".gate")
            local config = {
                store = fresh.path(name), executor = "threads", fetch = slow_fetch(started, gate),
            }
            local runner = fresh.runner(config)
            local canceller = name == "same" and runner or fresh.runner { store = config.store }
            local id = runner:submit("ann", fresh.targets(3))
            eventually(function() return content_of(started) == "u1\n" end)
            assert.is_true(canceller:cancel(id))
            io.open(gate, "w"):close()
            eventually(function() return runner:status(id).targets_done == 1 end)
            local next_id = runner:submit("ann", fresh.targets(1, "next"))
            assert.equal("done", runner:wait(next_id, 5).status)
            assert.equal("u1\nnext1\n", content_of(started))
            assert.same({ "cancelled", 3, 1 }, summary(runner:status(id)))
            assert.equal("finished u1", select(2, runner:status(id))[1].result.content)
        end
    end)

    it("frees the caller's place at once", function()
        local runner = fresh.runner { jobs_per_caller = 1, targets_per_job = 1000 }
        local id = runner:submit("ann", fresh.targets(1000))
        local task = runner:take()
        assert.equal("caller_busy", select(3, runner:submit("ann", fresh.targets(1))))
        runner:cancel(id)
        assert.is_string(runner:submit("ann", fresh.targets(1)))
        assert.equal("u1", runner:take().url)
        runner:finish(task, "")
    end)

    it("tells the hooks once, of a job without a duration", function()
        local told = {}
        local runner = fresh.runner { hooks = {
            job = function(status, info) told[#told + 1] = { status, info.job } end,
            job_seconds = function() told[#told + 1] = "seconds" end,
        } }
        local id = runner:submit("ann", fresh.targets(2))
        local task = runner:take()
        runner:cancel(id)
        runner:finish(task, "")
        eventually(function() return runner:status(id).targets_done == 1 end)
        runner:poll()
        assert.same({ { "cancelled", id } }, told)
    end)
end)
