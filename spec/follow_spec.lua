-- SPDX-License-Identifier: MIT
--
-- Following a run: what is written and when it ends, against a scripted runner, for what a real one
-- does only on bad days.

local deal = require "batch.cli.deal"
local follow = require "batch.cli.follow"
local progress = require "batch.cli.progress"
local summary = require "batch.cli.summary"

local STANDARD_INPUT = 0

-- A runner whose feed is scripted. Its fields can be replaced by a spec.
local function make_runner(feed)
    local runner = { limits = {} }
    function runner:changes(after, limit)
        self.limits[#self.limits + 1] = limit
        local page = {}
        for seq = after + 1, math.min(after + limit, #feed) do
            page[#page + 1] = feed[seq]
        end
        return page
    end
    function runner.status(_, id)
        local n_done = 0
        for _, outcome in ipairs(feed) do
            n_done = n_done + (outcome.job == id and 1 or 0)
        end
        return { status = "running", targets_done = n_done }
    end
    function runner.poll() return 0 end
    function runner.fd() return STANDARD_INPUT end
    function runner.stats()
        return { healthy = true, inflight_targets = 0, waiting_targets = 0 }
    end
    return runner
end

local function outcome(seq, job, idx, content)
    return {
        seq = seq, job = job, idx = idx, url = "http://a/", status = "done", attempts = 1,
        result = { content = content or "x" }, started_at = 100, finished_at = 101,
    }
end

-- A run of two jobs, "one" and "two", that ends after so many outcomes; its output is a list of
-- lines. The deal has two targets, and tells by arithmetic where more would be.
local function make_run(feed, n_outcomes)
    local hand = deal.new()
    hand:add({ url = "a" }, 1)
    hand:add({ url = "b" }, 2)
    local run = {
        runner = make_runner(feed), hand = hand, jobs = { one = 1, two = 2 }, out = "scripted",
        summary = summary.new(n_outcomes), started_at = 50, written = {},
        bar = progress.new { style = "none" },
    }
    run.output = {
        write = function(_, _, line)
            table.insert(run.written, line)
            return true
        end,
        flush = function() return true end,
    }
    return run
end

describe("following a run", function()
    it("writes each outcome once, in commit order, with its line", function()
        local run = make_run({
            outcome(1, "two", 0), outcome(2, "one", 0), outcome(3, "one", 1), outcome(4, "two", 1),
        }, 4)
        assert.is_true(follow.outcomes(run))
        assert.same({ 2, 1, 3, 4 }, run.written)
        assert.equal(4, run.summary.done)
    end)

    it("leaves out what other runs stored", function()
        local run = make_run({ outcome(1, "foreign", 0), outcome(2, "one", 0) }, 1)
        assert.is_true(follow.outcomes(run))
        assert.same({ 1 }, run.written)
    end)

    it("tells what was fetched before from what is fresh", function()
        local run = make_run({ outcome(1, "one", 0), outcome(2, "two", 0) }, 2)
        run.started_at = 101
        assert.is_true(follow.outcomes(run))
        assert.equal(2, run.summary.fresh)
        run = make_run({ outcome(1, "one", 0), outcome(2, "two", 0) }, 2)
        run.started_at = 101.5
        assert.is_true(follow.outcomes(run))
        assert.equal(0, run.summary.fresh)
    end)

    it("asks for fewer at once when results are large", function()
        local feed, large = {}, ("x"):rep(1024 * 1024)
        for i = 1, 501 do
            feed[i] = outcome(i, "one", i - 1, large)
        end
        local run = make_run(feed, 501)
        assert.is_true(follow.outcomes(run))
        assert.equal(7, run.runner.limits[2])
    end)

    it("ends when the store fails", function()
        local run = make_run({}, 2)
        function run.runner.changes() return nil, "disk I/O error", "store" end
        local is_complete, message, code = follow.outcomes(run)
        assert.is_nil(is_complete)
        assert.same({ "disk I/O error", "store" }, { message, code })
    end)

    it("ends when the store fails while it looks for live jobs", function()
        local run = make_run({}, 2)
        function run.runner.status() return nil, "disk I/O error", "store" end
        local is_complete, _, code = follow.outcomes(run)
        assert.is_nil(is_complete)
        assert.equal("store", code)
    end)

    it("ends when the output cannot be written", function()
        local run = make_run({ outcome(1, "one", 0) }, 2)
        function run.output.flush() return nil, "cannot write: Broken pipe", "broken_pipe" end
        local is_complete, _, code = follow.outcomes(run)
        assert.is_nil(is_complete)
        assert.equal("broken_pipe", code)
    end)

    it("ends when somebody cancelled its jobs", function()
        local run = make_run({ outcome(1, "one", 0) }, 2)
        function run.runner.status(_, id)
            return { status = "cancelled", targets_done = id == "one" and 1 or 0 }
        end
        local is_complete, message, code = follow.outcomes(run)
        assert.is_nil(is_complete)
        assert.match("cancelled", message)
        assert.equal("incomplete", code)
        assert.same({ 1 }, run.written)
    end)

    it("ends when its jobs are gone from the store", function()
        local run = make_run({}, 2)
        function run.runner.status() return nil, "unknown job", "not_found" end
        local is_complete, _, code = follow.outcomes(run)
        assert.is_nil(is_complete)
        assert.equal("incomplete", code)
    end)

    describe("while the store takes no outcomes", function()
        -- A clock that goes on by two seconds whenever it is looked at, and what the run says.
        local function make_stuck_run(stats)
            local run, time, said = make_run({}, 1), 0, {}
            function run.now()
                time = time + 2
                return time
            end
            function run.bar.say(_, text) table.insert(said, text) end
            function run.runner.stats() return stats end
            return run, said
        end

        it("gives up after a minute", function()
            local run = make_stuck_run {
                healthy = false, inflight_targets = 0, waiting_targets = 0,
            }
            local is_complete, message, code = follow.outcomes(run)
            assert.is_nil(is_complete)
            assert.equal("gave up: nothing could be stored for 60 seconds", message)
            assert.equal("store", code)
        end)

        it("gives up also if it takes something else now and then", function()
            local stats = { healthy = false, inflight_targets = 0, waiting_targets = 0 }
            local run = make_stuck_run(stats)
            function run.runner.poll() stats.healthy = not stats.healthy end
            local _, _, code = follow.outcomes(run)
            assert.equal("store", code)
        end)

        it("goes on when it takes them again", function()
            local stats = { healthy = false, inflight_targets = 0, waiting_targets = 0 }
            local run, said = make_stuck_run(stats)
            local feed, n_polls = {}, 0
            function run.runner.changes() return feed end
            function run.runner.poll()
                n_polls = n_polls + 1
                stats.healthy = n_polls > 1
                feed[1] = n_polls > 2 and outcome(1, "one", 0) or nil
            end
            assert.is_true(follow.outcomes(run))
            assert.same({ "going on" }, said)
        end)

        it("is patient with what is in flight or waits for a busy site", function()
            for _, name in ipairs { "inflight_targets", "waiting_targets" } do
                local stats = { healthy = false, inflight_targets = 0, waiting_targets = 0 }
                stats[name] = 1
                local run = make_stuck_run(stats)
                local feed, n_polls = {}, 0
                function run.runner.changes() return feed end
                function run.runner.poll()
                    n_polls = n_polls + 1
                    feed[1] = n_polls > 50 and outcome(1, "one", 0) or nil
                end
                assert.is_true(follow.outcomes(run))
            end
        end)
    end)

    it("waits for the outcome that a cancelled job still had in flight", function()
        local feed = { outcome(1, "one", 0) }
        local run = make_run(feed, 2)
        function run.runner.status()
            feed[2] = outcome(2, "two", 0)
            return { status = "cancelled", targets_done = 1 }
        end
        assert.is_true(follow.outcomes(run))
    end)
end)
