-- SPDX-License-Identifier: MIT
--
-- The wall clock is set while jobs run: forward, back, by a hair. Spans go by the clock that never
-- jumps; only leases, which are moments, feel it. The real keeper and committer run in each test.

local core = require "batch.core"
local deadline = require "batch.deadline"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

local HOUR = 3600
local BEGIN = 1e9
local JUMPS = {
    { name = "forward by 8 h", seconds = 8 * HOUR },
    { name = "back by 2 h", seconds = -2 * HOUR },
    { name = "forward by 1 ms", seconds = 0.001 },
}

local function jump(clock, seconds)
    clock:set(clock:now() + seconds)
end

-- Processor time of this process, all threads.
local function cpu_seconds()
    return os.clock()
end

-- So long that the keeper has looked some times.
local function let_it_look()
    core.poll_fd(-1, 0.1)
end

for _, case in ipairs(JUMPS) do
    describe("a wall clock that jumps " .. case.name, function()
        local clock

        before_each(function()
            fresh.start()
            clock = core.clock(BEGIN)
        end)
        after_each(fresh.finish)

        it("runs no target twice and none too few", function()
            local runner = fresh.runner({ ttl = "24h" }, clock)
            local ids, n_calls = {}, {}
            for i = 1, 4 do
                ids[i] = assert(runner:submit("c" .. i, fresh.targets(5, "u" .. i .. "-")))
            end
            local n = runner:drain(function(target)
                n_calls[target.url] = (n_calls[target.url] or 0) + 1
                jump(clock, case.seconds)
                return target.url
            end)
            assert.equal(20, n)
            for i, id in ipairs(ids) do
                for j = 1, 5 do
                    assert.equal(1, n_calls["u" .. i .. "-" .. j])
                end
                jump(clock, BEGIN - clock:now())
                assert.equal("done", runner:status(id).status)
            end
            assert.is_true(fresh.store():check())
        end)

        it("neither times a fetch out nor shortens its sleep", function()
            local runner = fresh.runner({
                executor = "threads", target_timeout = 60,
                fetch = function(_, ctx)
                    local before = ctx:left()
                    local is_whole = ctx:sleep(30)
                    return ("%s %.0f %.0f"):format(tostring(is_whole), before, ctx:left())
                end,
            }, clock)
            local id = assert(runner:submit("ann", fresh.targets(1)))
            eventually(function() return runner:stats().inflight_targets == 1 end)
            jump(clock, case.seconds)
            let_it_look()
            assert.equal(1, runner:stats().inflight_targets)
            clock:advance(30)
            jump(clock, BEGIN - clock:now())
            assert(runner:wait(id, 10))
            assert.equal("true 60 30", select(2, runner:status(id))[1].result.content)
        end)

        it("does not move the moment at which a busy target is tried again", function()
            local runner = fresh.runner({ retry_wait = 10 }, clock)
            assert(runner:submit("ann", fresh.targets(1)))
            runner:later(runner:take(), "busy")
            jump(clock, case.seconds)
            let_it_look()
            local task, seconds = runner:take()
            assert.is_nil(task)
            assert.equal(10, seconds)
            clock:advance(10)
            assert.equal(2, runner:take().attempt)
        end)

        it("does not count towards retry_for", function()
            local runner = fresh.runner({ retry_wait = 10, retry_for = 60 }, clock)
            local id = assert(runner:submit("ann", fresh.targets(1)))
            runner:later(runner:take(), "busy")
            jump(clock, case.seconds)
            clock:advance(10)
            runner:later(runner:take(), "busy")
            jump(clock, -case.seconds)
            assert.equal(0, runner:status(id).targets_done)
            clock:advance(10)
            assert.equal(3, runner:take().attempt)
        end)

        it("evicts nothing that fits, and lets no lease of 24 h lapse", function()
            local runner = fresh.runner({ ttl = "24h", max_bytes = "1MiB" }, clock)
            local ids = {}
            for i = 1, 3 do
                ids[i] = assert(runner:submit("c" .. i, fresh.targets(1)))
                runner:drain(function() return ("x"):rep(1000) end)
                jump(clock, case.seconds / 4)
            end
            clock:advance(120) -- past the next sweep
            let_it_look()
            for _, id in ipairs(ids) do
                assert.equal("done", runner:status(id).status)
            end
            assert.equal(0, runner:stats().evicted_jobs)
        end)

        it("makes no thread spin", function()
            local runner = fresh.runner({
                executor = "threads", workers = 2, retry_wait = 3600, retry_for = 7200,
                fetch = function() return nil, require("batch").retry_later("busy") end,
            }, clock)
            assert(runner:submit("ann", fresh.targets(2)))
            eventually(function() return runner:stats().retries == 1 end)
            jump(clock, case.seconds)
            local before = cpu_seconds()
            core.poll_fd(-1, 0.5)
            local used = cpu_seconds() - before
            assert.is_true(used < 0.25, "processor seconds in half a second: " .. used)
            assert.equal(1, runner:stats().retries)
        end)
    end)
end

describe("eviction after a wall clock that jumped back", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("still takes the jobs that ended longest ago, and leaves the last one", function()
        local clock = core.clock(BEGIN)
        local runner = fresh.runner({ ttl = "24h", max_bytes = "10KiB" }, clock)
        local ids = {}
        local function finish(content)
            ids[#ids + 1] = assert(runner:submit("c" .. #ids, fresh.targets(1)))
            runner:drain(function() return content end)
        end
        for _ = 1, 3 do
            finish(("x"):rep(3000))
            clock:advance(1)
        end
        jump(clock, -2 * HOUR)
        finish(("y"):rep(3000))
        assert.is_nil(runner:status(ids[1]))
        for i = 2, 4 do
            assert.equal("done", runner:status(ids[i]).status)
        end
        clock:advance(60)
        finish(("z"):rep(20000))
        assert.equal("done", runner:status(ids[5]).status)
        assert.equal(4, runner:stats().evicted_jobs)
    end)
end)

describe("a lease", function()
    local clock, runner

    before_each(function()
        fresh.start()
        clock = core.clock(BEGIN)
        runner = fresh.runner({ ttl = "1h" }, clock)
    end)
    after_each(fresh.finish)

    local function finished()
        local id = assert(runner:submit("ann", fresh.targets(1)))
        runner:drain(function() return "x" end)
        return id
    end

    -- What sweeps have left of it, looked at from outside.
    local function is_stored()
        return fresh.sql "select count(*) from job" ~= "0"
    end

    it("that a jump forward passes has lapsed, and is there again if the clock is set right",
        function()
            local id = finished()
            jump(clock, 8 * HOUR)
            assert.equal("expired", select(3, runner:status(id)))
            for _ = 1, 10 do -- the clock stays wrong over many sweeps
                clock:advance(61)
                let_it_look()
            end
            jump(clock, -8 * HOUR)
            assert.equal("done", runner:status(id).status)
        end)

    it("that a jump forward passes takes its job with it once the jump has lasted for an hour",
        function()
            finished()
            jump(clock, 8 * HOUR)
            clock:advance(61)
            let_it_look()
            assert.is_true(is_stored())
            clock:advance(HOUR)
            eventually(function() return not is_stored() end)
        end)

    it("that a jump forward passes does not stop a live job, whose next outcome renews it",
        function()
            local id = assert(runner:submit("ann", fresh.targets(2)))
            runner:finish(runner:take(), "x")
            eventually(function() return runner:status(id).targets_done == 1 end)
            jump(clock, 8 * HOUR)
            assert.equal(1, runner:drain(function() return "y" end))
            local job = runner:status(id)
            assert.same({ "done", BEGIN + 9 * HOUR }, { job.status, job.expires_at })
        end)

    it("is not shortened by a clock that goes back, and lasts by so much longer", function()
        local id = finished()
        jump(clock, -2 * HOUR)
        assert.equal(BEGIN + HOUR, runner:status(id).expires_at)
        assert.is_true(runner:touch(id))
        clock:advance(2.9 * HOUR)
        assert.equal("done", runner:status(id).status)
        assert.equal(id, (runner:submit("ann", fresh.targets(1))))
    end)
end)

describe("what is left of a target's time", function()
    it("is what the context says by the clock that never jumps, not its deadline", function()
        assert.equal(7, deadline.left { deadline = 0, left = function() return 7 end })
        assert.is_true(math.abs(deadline.left { deadline = core.now() + 5 } - 5) < 1)
        assert.is_nil(deadline.left {})
        assert.is_nil(deadline.left(nil))
    end)
end)
