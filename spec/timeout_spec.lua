-- SPDX-License-Identifier: MIT
--
-- A fetch that outlives target_timeout: stopped where it can be, abandoned where it cannot.

local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local testing = require "batch.testing"
local worker = require "spec.support.worker"

local TIMEOUT = 0.3 -- in which a busy machine should get a harmless fetch done

-- Runs fetch on url "a" and a harmless one on "b"; returns both targets.
local function run(fetch)
    local runner, log = worker.open {
        target_timeout = TIMEOUT,
        fetch = function(target, ctx)
            if target.url == "b" then
                return "fine"
            end
            return fetch(target, ctx)
        end,
    }
    local _, targets = worker.run(runner, { { url = "a" }, { url = "b" } })
    return targets, log
end

local function assert_timed_out(fetch)
    local targets, log = run(fetch)
    assert.same({ "failed", "timed out" }, { targets[1].status, targets[1].error })
    assert.equal("fine", targets[2].result and targets[2].result.content, targets[2].error)
    local span = targets[1].finished_at - targets[1].started_at
    assert.is_true(span > TIMEOUT - 0.001 and span < 10, span)
    assert.equal(0, #log)
end

describe("target_timeout", function()
    after_each(worker.close_all)

    it("stops a loop", function()
        assert_timed_out(function() while true do end end)
    end)

    it("stops a loop of pcalls", function()
        assert_timed_out(function()
            while true do
                pcall(function() while true do end end)
            end
        end)
    end)

    it("stops a loop of pcalls, error handlers and retries", function()
        assert_timed_out(function()
            local function again() return xpcall(error, function() while true do end end) end
            while true do again() end
        end)
    end)

    it("stops a loop in a coroutine", function()
        assert_timed_out(function()
            return coroutine.wrap(function() while true do end end)()
        end)
    end)

    it("stops a loop of coroutines", function()
        assert_timed_out(function()
            while true do
                local inner = coroutine.create(function()
                    local deeper = coroutine.create(function() while true do end end)
                    while true do coroutine.resume(deeper) end
                end)
                coroutine.resume(inner)
            end
        end)
    end)

    it("stops a coroutine that an earlier fetch made", function()
        local runner = worker.open {
            target_timeout = 0.1,
            fetch = function(target)
                if target.url == "make" then
                    rawset(_G, "kept", coroutine.create(function()
                        coroutine.yield()
                        while true do end
                    end))
                end
                coroutine.resume(rawget(_G, "kept"))
                return "x"
            end,
        }
        local _, targets = worker.run(runner, { { url = "make" }, { url = "go on" } })
        assert.same({ "done", "timed out" }, { targets[1].status, targets[2].error })
    end)

    it("stops ctx:sleep", function()
        assert_timed_out(function(_, ctx) ctx:sleep(3600) return "late" end)
    end)

    it("stops ctx:sleep in a pcall", function()
        assert_timed_out(function(_, ctx)
            while true do pcall(ctx.sleep, ctx, 3600) end
        end)
    end)

    it("stops a metamethod, a sort and a gsub", function()
        assert_timed_out(function()
            return setmetatable({}, { __index = function() while true do end end }).x
        end)
        assert_timed_out(function()
            table.sort({ 1, 2, 3 }, function() while true do end end)
        end)
        assert_timed_out(function()
            return (("x"):gsub(".", function() while true do end end))
        end)
    end)

    it("stops a setup", function()
        local runner = worker.open {
            target_timeout = 0.05,
            fetch = {
                setup = function() while true do end end,
                fetch = function() return "x" end,
            },
        }
        local _, targets = worker.run(runner)
        assert.same({ "timed out", 0 },
            { targets[1].error, runner:stats().abandoned_threads })
    end)

    it("stops a teardown, some seconds after its close", function()
        local runner = worker.open {
            fetch = {
                fetch = function() return "x" end,
                teardown = function() while true do end end,
            },
        }
        worker.run(runner)
        assert.is_true(runner:close(20))
    end)

    it("drops a result that comes too late", function()
        local targets = run(function() os.execute "sleep 0.5" return "late" end)
        assert.same({ "timed out", "fine" },
            { targets[1].error, targets[2].result and targets[2].result.content })
    end)

    it("is seen by the fetch as ctx.deadline", function()
        local target = worker.outcome(function(_, ctx)
            return tostring(ctx.deadline - os.time())
        end, { target_timeout = 100 })
        local left = tonumber(target.result.content)
        assert.is_true(left > 98 and left < 102)
    end)

    it("counts for each call anew", function()
        local runner = worker.open {
            target_timeout = 1.5,
            fetch = function(_, ctx)
                ctx:sleep(0.6)
                return "x"
            end,
        }
        assert.equal("done", worker.run(runner,
            { { url = "a" }, { url = "b" }, { url = "c" } }).status)
    end)
end)

-- A fetch that is stuck in C until the file is there that an option names.
local function stuck(target)
    if target.options.gate then
        os.execute("until [ -e '" .. target.options.gate .. "' ]; do sleep 0.05; done")
    end
    return target.url
end

local function start_stuck(runner, n_jobs)
    local ids, options = {}, { gate = fresh.path "gate" }
    for i = 1, n_jobs do
        ids[i] = assert(runner:submit("spec",
            { { url = "stuck" .. i, options = options }, { url = "free" .. i } }))
    end
    eventually(function() return runner:stats().inflight_targets == n_jobs end)
    return ids
end

describe("code that is stuck in C", function()
    local n_threads

    before_each(function()
        fresh.start()
        n_threads = worker.count_threads()
    end)

    -- Whoever looks for leaks at the end of the process stumbles over threads that still run.
    local function let_them_come_back()
        io.open(fresh.path "gate", "w"):close()
        worker.close_all()
        eventually(function() return worker.count_threads() <= n_threads end)
    end

    after_each(function()
        let_them_come_back()
        fresh.finish()
    end)

    local function open(n_workers)
        local runner, clock = testing.runner {
            fetch = stuck,
            workers = n_workers,
            jobs_per_caller = 100,
            jobs_total = 100,
            target_timeout = 60,
            log = function() end,
        }
        return worker.keep(runner), clock
    end

    it("is abandoned five seconds after its time, and its thread replaced", function()
        local runner, clock = open(1)
        local ids = start_stuck(runner, 1)
        clock:advance(64)
        worker.pause(0.1)
        assert.equal(0, runner:stats().abandoned_threads)
        clock:advance(2)
        assert.equal("partial", runner:wait(ids[1], 10).status)
        local _, targets = runner:status(ids[1])
        assert.same({ "timed out", "free1" }, { targets[1].error, targets[2].result.content })
        local stats = runner:stats()
        assert.same({ 1, true, 0 },
            { stats.abandoned_threads, stats.healthy, stats.inflight_targets })
    end)

    it("comes back too late: its result is dropped", function()
        local runner, clock = open(1)
        local ids = start_stuck(runner, 1)
        clock:advance(66)
        assert.equal("partial", runner:wait(ids[1], 10).status)
        local n_now = worker.count_threads()
        io.open(fresh.path "gate", "w"):close()
        eventually(function() return worker.count_threads() < n_now end)
        local job, targets = runner:status(ids[1])
        assert.same({ "partial", "timed out", 1, 1 }, {
            job.status, targets[1].error, runner:stats().targets.done,
            runner:stats().targets.failed,
        })
    end)

    it("does not hold up close", function()
        local runner, clock = open(1)
        start_stuck(runner, 1)
        clock:advance(66)
        eventually(function() return runner:stats().abandoned_threads == 1 end)
        local began = os.time()
        assert.is_true(runner:close())
        assert.is_true(os.time() - began <= 10)
    end)

    it("makes the runner unhealthy once too many threads are gone", function()
        local runner, clock = open(17)
        local ids = start_stuck(runner, 17)
        assert.is_true(runner:stats().healthy)
        clock:advance(66)
        eventually(function() return runner:stats().abandoned_threads == 17 end)
        assert.is_false(runner:stats().healthy)
        for _, id in ipairs(ids) do
            assert.equal("partial", runner:wait(id, 10).status)
        end
    end)
end)
