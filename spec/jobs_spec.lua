-- SPDX-License-Identifier: MIT
--
-- Lists over many jobs: jobs with its filters and pages, changes, and waiting for an end.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

local function ids_of(jobs)
    local ids = {}
    for i, job in ipairs(jobs) do
        ids[i] = job.id
    end
    return ids
end

describe("jobs", function()
    local runner

    before_each(function()
        fresh.start()
        runner = fresh.runner { jobs_per_caller = 1000, jobs_total = 1000 }
    end)
    after_each(fresh.finish)

    it("are listed newest first, without their targets", function()
        assert.same({}, runner:jobs())
        local first = runner:submit("ann", fresh.targets(2), { class = "user" })
        local second = runner:submit("bob", fresh.targets(1))
        local jobs = runner:jobs()
        assert.same({ second, first }, ids_of(jobs))
        assert.same((runner:status(first)), jobs[2])
    end)

    it("are a hundred at most unless more are asked for", function()
        local ids = {}
        for i = 1, 120 do
            table.insert(ids, 1, (runner:submit("ann", fresh.targets(1, "u" .. i .. "-"))))
        end
        assert.equal(100, #runner:jobs())
        assert.same(ids, ids_of(runner:jobs { limit = 1000 }))
        assert.same({}, runner:jobs { limit = 0 })
        assert.same(ids, ids_of(runner:jobs { limit = 1e300 }))
        local paged, before = {}, nil
        repeat
            local page = runner:jobs { limit = 50, before = before }
            for _, job in ipairs(page) do
                paged[#paged + 1], before = job.id, job.id
            end
        until #page == 0
        assert.same(ids, paged)
    end)

    it("go on where a page ended whose last job is gone by now", function()
        local ids = {}
        for i = 1, 9 do
            local caller = i % 2 == 1 and "odd" or "even"
            ids[i] = runner:submit(caller, fresh.targets(1, "u" .. i .. "-"))
        end
        runner:drain(function() return "x" end)
        local function drop(id)
            fresh.sql(("delete from job where id = '%s'"):format(id))
        end
        drop(ids[6])
        assert.same({ ids[5], ids[4] }, ids_of(runner:jobs { before = ids[6], limit = 2 }))
        assert.same({ ids[4], ids[2] }, ids_of(runner:jobs { before = ids[6], caller = "even" }))
        local filter = { before = ids[6], caller = "odd", status = "done", limit = 2 }
        assert.same({ ids[5], ids[3] }, ids_of(runner:jobs(filter)))
        drop(ids[5])
        assert.same({ ids[4], ids[3], ids[2], ids[1] }, ids_of(runner:jobs { before = ids[6] }))
        drop(ids[9])
        assert.same({ ids[8], ids[7] }, ids_of(runner:jobs { before = ids[9], limit = 2 }))
        drop(ids[1])
        assert.same({}, runner:jobs { before = ids[1] })
        assert.same({}, runner:jobs { before = "00000000-0000-7000-8000-000000000000" })
        local newest = runner:jobs { before = "ffffffff-ffff-7fff-bfff-ffffffffffff", limit = 1 }
        assert.same({ ids[8] }, ids_of(newest))
    end)

    it("are filtered by caller and status", function()
        local done = runner:submit("ann", fresh.targets(1))
        runner:drain(function() return "" end)
        local failed = runner:submit("bob", fresh.targets(1))
        runner:drain(function() return nil, "no luck" end)
        local partial = runner:submit("ann", fresh.targets(2))
        runner:drain(function(target)
            if target.url == "u1" then
                return ""
            end
            return nil, "no luck"
        end)
        local cancelled = runner:submit("bob", fresh.targets(2))
        runner:cancel(cancelled)
        local running = runner:submit("ann", fresh.targets(3))
        local task = runner:take()
        local queued = runner:submit("bob", fresh.targets(4))
        local expected = {
            done = done, failed = failed, partial = partial, cancelled = cancelled,
            running = running, queued = queued,
        }
        for status, id in pairs(expected) do
            assert.same({ status, { id } }, { status, ids_of(runner:jobs { status = status }) })
        end
        assert.same({ running, partial, done }, ids_of(runner:jobs { caller = "ann" }))
        assert.same({ failed }, ids_of(runner:jobs { caller = "bob", status = "failed" }))
        assert.same({ queued }, ids_of(runner:jobs { caller = "bob", status = "queued" }))
        assert.same({ running }, ids_of(runner:jobs { status = "running", before = queued }))
        assert.same({}, runner:jobs { status = "queued", before = queued })
        assert.same({}, runner:jobs { caller = "ann", status = "failed" })
        assert.same({}, runner:jobs { caller = "nobody" })
        assert.same({ partial, done }, ids_of(runner:jobs { caller = "ann", before = running }))
        runner:finish(task, "")
    end)

    it("refuse a filter that makes no sense", function()
        for _, wrong in ipairs { -1, 1.5, 0 / 0, 1 / 0, "3", {} } do
            assert.equal("invalid", select(3, runner:jobs { limit = wrong }))
        end
        for _, wrong in ipairs { "pending", "", "DONE", 7, {} } do
            local jobs, message, code = runner:jobs { status = wrong }
            assert.same({ nil, "invalid" }, { jobs, code })
            assert.matches("^status must be queued, running,", message)
        end
        assert.equal("invalid", select(3, runner:jobs { caller = 7 }))
        assert.equal("invalid", select(3, runner:jobs { before = 7 }))
    end)
end)

describe("wait", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("gives the job once it has ended", function()
        local runner = fresh.runner { executor = "threads", fetch = function(_, ctx)
            ctx:sleep(0.05)
            return "x"
        end }
        local id = runner:submit("ann", fresh.targets(3))
        local job = runner:wait(id)
        assert.same({ "done", 3 }, { job.status, job.targets_done })
        assert.same(job, runner:wait(id, 0))
    end)

    it("sees the end of a job that another process works on", function()
        local client = fresh.client()
        local id = client:submit("ann", fresh.targets(1))
        fresh.runner { executor = "threads" }
        assert.equal("done", client:wait(id, 10).status)
    end)

    it("gives up after the time that it was given", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(1))
        for _, seconds in ipairs { 0, 0.2 } do
            local began = core.now()
            assert.same({ nil, "timeout", "timeout" }, { runner:wait(id, seconds) })
            local took = core.now() - began
            assert.is_true(took >= seconds and took < seconds + 5)
        end
    end)

    it("ends with the job's cancellation", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(1))
        runner:cancel(id)
        assert.equal("cancelled", runner:wait(id, 5).status)
    end)
end)

describe("changes", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("are the outcomes of all jobs in the order of their commits", function()
        local runner = fresh.runner { jobs_per_caller = 5 }
        local a = runner:submit("ann", fresh.targets(2, "a"))
        local b = runner:submit("ann", fresh.targets(2, "b"))
        runner:drain(function(target) return target.url end)
        local seen, after = {}, 0
        repeat
            local page = runner:changes(after, 3)
            for _, target in ipairs(page) do
                assert.is_true(target.seq > after)
                after = target.seq
                seen[#seen + 1] = { target.job, target.idx, target.result.content }
            end
        until #page == 0
        table.sort(seen, function(x, y) return x[3] < y[3] end)
        assert.same({ { a, 0, "a1" }, { a, 1, "a2" }, { b, 0, "b1" }, { b, 1, "b2" } }, seen)
        assert.same({}, runner:changes(2 ^ 53))
        assert.same({}, runner:changes(0, 0))
        assert.equal(4, #runner:changes())
    end)
end)

describe("stats", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("count what has ended, and gauge what is there", function()
        local runner = fresh.runner()
        runner:submit("ann", fresh.targets(2))
        runner:drain(function(target)
            if target.url == "u1" then
                return "12345"
            end
            return nil, "no luck"
        end)
        runner:cancel((runner:submit("ann", fresh.targets(3))))
        runner:submit("bob", fresh.targets(1))
        local task = runner:take()
        local stats = runner:stats()
        assert.same({ 1, 1, 5, true, true }, { stats.live_jobs, stats.inflight_targets,
            stats.store_bytes, stats.healthy, stats.store_healthy })
        assert.is_true(stats.oldest_pending_seconds >= 0 and stats.oldest_pending_seconds < 10)
        assert.same({ done = 0, partial = 1, failed = 0, cancelled = 1, restart = 0 }, stats.jobs)
        assert.same({ done = 1, failed = 1 }, stats.targets)
        assert.same({ 0, 0, 0, 0 }, { stats.retries, stats.evicted_jobs, stats.abandoned_threads,
            stats.events_dropped })
        assert.same({ 1, 5 }, { stats.result_bytes.count, stats.result_bytes.sum })
        assert.equal(1, stats.job_seconds.count)
        assert.equal(2, stats.target_seconds.count)
        for _, name in ipairs { "commit_seconds", "commit_targets" } do
            assert.is_true(stats[name].count >= 1)
            local buckets = stats[name].buckets
            assert.equal(stats[name].count, buckets[#buckets].count)
        end
        runner:finish(task, "")
        eventually(function() return runner:stats().live_jobs == 0 end)
        assert.equal(0, runner:stats().oldest_pending_seconds)
    end)
end)
