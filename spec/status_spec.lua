-- SPDX-License-Identifier: MIT
--
-- Reading jobs: status, results, jobs, wait and changes; all fields, paging, and ids that lead
-- nowhere.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

local UNKNOWN = { nil, "unknown job", "not_found" }

local NO_IDS = {
    "", "0", "nonsense", "0190a1b2-c3d4-7e5f-8a6b-0123456789ab", ("x"):rep(100000), "\0",
    "\255\254",
    "0190A1B2-C3D4-7E5F-8A6B-0123456789AB", "' or 1 = 1 --",
}

local NO_COUNTS = { -1, 1.5, 0 / 0, 1 / 0, -1 / 0, "3", true, {} }

-- A job with a result, a failure and a target that is left pending.
local function half_done(runner)
    local id = assert(runner:submit("ann", {
        { url = "u1", options = { mode = "text" } }, { url = "u2" }, { url = "u3" },
    }, { class = "user" }))
    runner:finish(runner:take(), { content = "one\0\255", meta = { title = "ä", n = 3 } })
    eventually(function() return runner:status(id).targets_done == 1 end)
    runner:fail(runner:take(), "no luck", "try elsewhere")
    eventually(function() return runner:status(id).targets_done == 2 end)
    return id
end

describe("status", function()
    local runner

    before_each(function()
        fresh.start()
        runner = fresh.runner { ttl = 100 }
    end)
    after_each(fresh.finish)

    it("tells all of a job that is queued", function()
        local before = core.now()
        local id = runner:submit("ann", fresh.targets(2), { class = "user" })
        local job, targets = runner:status(id)
        assert.is_true(job.created_at > before - 0.01 and job.created_at <= core.now())
        assert.same({
            id = id, status = "queued", caller = "ann", class = "user", targets_total = 2,
            targets_done = 0, targets_failed = 0, bytes = 0, created_at = job.created_at,
            expires_at = job.created_at + 100,
        }, job)
        assert.same({
            { idx = 0, url = "u1", options = {}, status = "pending", attempts = 0 },
            { idx = 1, url = "u2", options = {}, status = "pending", attempts = 0 },
        }, targets)
    end)

    it("tells how often a target was called that is busy still", function()
        local id = assert(runner:submit("ann", fresh.targets(2)))
        for attempt = 1, 2 do
            local task = eventually(function() return (runner:take()) end)
            assert.equal(attempt, task.attempt)
            runner:later(task, "busy", attempt == 2 and 30 or 0)
        end
        eventually(function() return select(2, runner:status(id))[1].attempts == 2 end)
        local _, targets = runner:status(id)
        assert.same({ "pending", 0 }, { targets[1].status, targets[2].attempts })
    end)

    it("tells all of targets with outcomes", function()
        local id = half_done(runner)
        local job, targets = runner:status(id)
        assert.same({ "running", 3, 2, 1 },
            { job.status, job.targets_total, job.targets_done, job.targets_failed })
        assert.is_nil(job.finished_at)
        assert.is_true(job.created_at <= job.started_at)
        for _, target in ipairs { targets[1], targets[2] } do
            assert.is_true(job.started_at <= target.started_at)
            assert.is_true(target.started_at <= target.finished_at)
            target.started_at, target.finished_at = nil, nil
        end
        local result = { content = "one\0\255", meta = { title = "ä", n = 3 } }
        assert.same({
            { idx = 0, url = "u1", options = { mode = "text" }, status = "done", attempts = 1,
                result = result },
            { idx = 1, url = "u2", options = {}, status = "failed", attempts = 1,
                error = "no luck", hint = "try elsewhere" },
            { idx = 2, url = "u3", options = {}, status = "pending", attempts = 0 },
        }, targets)
        assert.equal(5 + #'{"n":3,"title":"ä"}', job.bytes)
    end)

    it("tells of a job that has ended when it did and how", function()
        local id = half_done(runner)
        runner:drain(function() return "three" end)
        local job, targets = runner:status(id)
        assert.same({ "partial", 3, 1 }, { job.status, job.targets_done, job.targets_failed })
        assert.equal(targets[3].finished_at, job.finished_at)
        assert.is_nil(job.error)
    end)

    it("gives the targets that are asked for", function()
        local id = half_done(runner)
        local function idxs(options)
            local found = {}
            for i, target in ipairs(select(2, runner:status(id, options))) do
                found[i] = target.idx
            end
            return found
        end
        assert.same({ 0, 1, 2 }, idxs {})
        assert.same({ 1, 2 }, idxs { from = 1 })
        assert.same({ 1 }, idxs { from = 1, limit = 1 })
        assert.same({}, idxs { limit = 0 })
        assert.same({}, idxs { from = 3 })
        assert.same({}, idxs { from = 2 ^ 53 })
        assert.same({}, idxs { from = 1e300 })
        assert.same({ 0, 1, 2 }, idxs { limit = 1e300 })
        for _, name in ipairs { "from", "limit" } do
            for _, wrong in ipairs(NO_COUNTS) do
                local job, message, code = runner:status(id, { [name] = wrong })
                assert.same({ nil, "invalid" }, { job, code })
                assert.matches("^" .. name .. " must be an integer from 0, got ", message)
            end
        end
    end)

    it("leaves results out when they are not wanted", function()
        local id = half_done(runner)
        local _, targets = runner:status(id, { results = false })
        assert.is_nil(targets[1].result)
        assert.same({ "done", "failed" }, { targets[1].status, targets[2].status })
        assert.equal("no luck", targets[2].error)
    end)

    it("is not found where there is no such job", function()
        for _, id in ipairs(NO_IDS) do
            assert.same(UNKNOWN, { runner:status(id) })
            assert.same(UNKNOWN, { runner:results(id) })
            assert.same(UNKNOWN, { runner:wait(id, 0) })
            assert.is_false(runner:cancel(id))
            assert.is_false(runner:touch(id))
            assert.same({}, runner:jobs { before = id })
        end
        local id = runner:submit("ann", fresh.targets(1))
        assert.same(UNKNOWN, { runner:status(id .. "\0") })
        assert.is_false(runner:cancel(id .. "\0"))
    end)

    it("raises where the programmer is wrong", function()
        for _, method in ipairs { "status", "results", "wait", "cancel", "touch" } do
            assert.has_error(function() runner[method](runner) end,
                "id must be a string, got nil")
            assert.has_error(function() runner[method](runner, 42) end,
                "id must be a string, got number")
            assert.has_error(function() runner[method] "id" end)
            assert.has_error(function() runner[method]() end)
        end
        runner:close()
        for _, method in ipairs { "status", "results", "wait", "cancel", "touch" } do
            assert.has_error(function() runner[method](runner, "id") end,
                "attempt to use a closed runner")
        end
        for _, method in ipairs { "jobs", "stats", "poll", "fd", "changes" } do
            assert.has_error(function() runner[method](runner) end,
                "attempt to use a closed runner")
        end
    end)
end)

describe("results", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("are the targets with an outcome, in their order", function()
        local runner = fresh.runner()
        local id = half_done(runner)
        local found = {}
        for target in runner:results(id) do
            found[#found + 1] = { target.idx, target.status }
        end
        assert.same({ { 0, "done" }, { 1, "failed" } }, found)
        for target in runner:results(id, { from = 1 }) do
            assert.equal(1, target.idx)
        end
        assert.is_nil(runner:results(id, { from = 99 })())
        for _, wrong in ipairs(NO_COUNTS) do
            assert.equal("invalid", select(3, runner:results(id, { from = wrong })))
        end
    end)

    it("of thousands of targets take no more memory than of a few", function()
        local runner = fresh.runner { targets_per_job = 100000 }
        local id = runner:submit("ann", fresh.targets(5000))
        local content = ("x"):rep(4000)
        runner:drain(function() return content end)
        collectgarbage()
        collectgarbage()
        local before, most, n = collectgarbage "count", 0, 0
        for target in runner:results(id) do
            assert.equal(n, target.idx)
            n = n + 1
            if n % 500 == 0 then
                collectgarbage()
                most = math.max(most, collectgarbage "count" - before)
            end
        end
        assert.equal(5000, n)
        assert.is_true(most < 4000, "it took KiB: " .. most)
    end)

    it("may be read by many iterators at once", function()
        local runner = fresh.runner { targets_per_job = 1000 }
        local id = runner:submit("ann", fresh.targets(300))
        runner:drain(function(target) return target.url end)
        local iterators = {}
        for i = 1, 20 do
            iterators[i] = runner:results(id)
        end
        for i = 0, 299 do
            for _, iterator in ipairs(iterators) do
                assert.equal(i, iterator().idx)
            end
        end
    end)
end)

describe("a snapshot", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("adds up while a runner is at work", function()
        local runner = fresh.runner {
            executor = "threads", workers = 4, targets_per_job = 5000,
            fetch = function(target)
                if target.url:find "7$" then
                    return nil, "no luck"
                end
                return target.url
            end,
        }
        local id = runner:submit("ann", fresh.targets(2000))
        repeat
            local job, targets = runner:status(id)
            local counts = { pending = 0, done = 0, failed = 0 }
            for _, target in ipairs(targets) do
                counts[target.status] = counts[target.status] + 1
            end
            assert.same({ 2000, 2000, job.targets_failed, job.targets_done }, { job.targets_total,
                counts.pending + counts.done + counts.failed, counts.failed,
                counts.done + counts.failed })
        until job.finished_at
        assert.same({ "partial", 200 }, { runner:status(id).status,
            runner:status(id).targets_failed })
    end)
end)
