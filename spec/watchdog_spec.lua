-- SPDX-License-Identifier: MIT
--
-- The watch over a runner's own threads: one that hangs is told by stats() and by a line of the log
-- that names it, and so is its coming back; a worker that could not be replaced at once is replaced
-- as soon as a thread is to be had.

local testing = require "batch.testing"  -- before the first store: see docs/testing.md

local batch = require "batch"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

local lines

local function log(level, message)
    lines[#lines + 1] = level .. ": " .. message
end

-- Whether a line was logged, once.
local function has_told(runner, line)
    runner:poll()
    local n = 0
    for _, told in ipairs(lines) do
        n = n + (told == line and 1 or 0)
    end
    return n == 1
end

local function open(config)
    config.store, config.log = fresh.path "batch.db", log
    config.fetch = config.fetch or function(target) return target.url end
    return fresh.keep(assert(batch._new_watched(config, 0.3)))
end

local function count_threads()
    for line in io.lines "/proc/self/status" do
        local count = line:match "^Threads:%s*(%d+)"
        if count then
            return tonumber(count)
        end
    end
end

local function health(runner)
    local stats = runner:stats()
    return { stats.healthy, stats.store_healthy }
end

describe("a runner", function()
    before_each(function()
        fresh.start()
        lines = {}
    end)
    after_each(function()
        testing.no_faults()
        fresh.finish()
    end)

    it("that commits to a disk which hangs says so, and that it has come back", function()
        local runner = open { executor = "manual" }
        local id = assert(runner:submit("ann", fresh.targets(1)))
        local task = runner:take()
        testing.fault { at = "sync", answer = "delay", seconds = 2 }
        runner:finish(task, "x")
        eventually(function()
            return has_told(runner, "error: a transaction hangs in the store")
        end)
        assert.same({ false, false }, health(runner))
        eventually(function()
            return has_told(runner, "warn: the transaction that hung has come back")
        end)
        assert.same({ true, true }, health(runner))
        assert.equal("done", runner:wait(id, 5).status)
        assert.equal(2, #lines)
    end)

    it("that waits for another process's lock does not hang", function()
        local runner = open { executor = "manual" }
        assert(runner:submit("ann", fresh.targets(1)))
        local task = runner:take()
        local lock = fresh.lock(1)
        runner:finish(task, "x")
        lock:close()
        runner:poll()
        assert.same({}, lines)
    end)

    it("whose keeper hangs says so when it is asked", function()
        local runner = open { executor = "manual" }
        -- Nobody but the keeper goes to the store of an idle runner.
        testing.fault { at = "lock", answer = "delay", seconds = 2 }
        eventually(function() return testing.passed().lock > 0 end)
        eventually(function() return runner:stats().healthy == false end)
        assert.same({ false, true }, health(runner))
        assert.is_true(has_told(runner, "error: the keeper thread hangs"))
        eventually(function() return runner:stats().healthy end)
        assert.is_true(has_told(runner, "warn: the keeper thread has come back"))
        assert.equal(2, #lines)
    end)

    it("whose worker cannot be replaced at once replaces it when it can", function()
        local n_threads = count_threads()
        local runner = open {
            workers = 1, target_timeout = 0.1, jobs_per_caller = 2,
            fetch = function(target)
                if target.url == "u1" then
                    os.execute "sleep 9"
                end
                return target.url
            end,
        }
        testing.fault { at = "thread", times = math.huge }
        local stuck = runner:submit("ann", fresh.targets(1))
        eventually(function()
            return has_told(runner, "error: cannot start a worker thread")
        end, 15)
        assert.equal("timed out", select(2, runner:status(stuck))[1].error)
        assert.is_false(runner:stats().healthy)
        testing.no_faults()
        eventually(function() return has_told(runner, "warn: all worker threads run again") end)
        assert.is_true(runner:stats().healthy)
        assert.equal("done", runner:wait(runner:submit("ann", { { url = "v" } }), 5).status)
        runner:close()
        -- The stuck one ends as well, when it comes back.
        eventually(function() return count_threads() == n_threads end, 10)
    end)

    it("has gauges of 0 after a thousand jobs came and went", function()
        local runner = fresh.runner { max_bytes = "1KiB" }
        for i = 1, 1000 do
            assert(runner:submit("c" .. i, fresh.targets(1)))
            if i % 3 == 0 then
                runner:cancel(runner:jobs({ limit = 1 })[1].id)
            end
            runner:drain(function() return ("x"):rep(900) end)
        end
        local stats = runner:stats()
        assert.same({ 0, 0, 667 }, { stats.live_jobs, stats.inflight_targets, stats.jobs.done })
        assert.equal(0, stats.oldest_pending_seconds)
        local store = fresh.store()
        store:evict_oldest(0)
        runner:close()
        store:purge_expired(4e9)
        assert.equal("0|0", fresh.sql "select live_jobs, finished_bytes from gauge")
        assert.equal("0|0|0", fresh.sql ("select (select count(*) from job), "
            .. "(select count(*) from outcome), (select count(*) from input)"))
        assert.is_true(store:check())
    end)
end)
