-- SPDX-License-Identifier: MIT
--
-- The virtual clock and the scripted fetch.

local batch = require "batch"
local eventually = require "spec.support.eventually"
local testing = require "batch.testing"
local worker = require "spec.support.worker"

local function open(config, now)
    return worker.keep(testing.runner(config, now))
end

local function submit(runner, ...)
    local targets = {}
    for i, url in ipairs { ... } do
        targets[i] = { url = url }
    end
    return (assert(runner:submit("spec", targets)))
end

local function target_of(runner, id, idx)
    local _, targets = assert(runner:status(id))
    return targets[(idx or 0) + 1]
end

describe("a virtual clock", function()
    after_each(worker.close_all)

    it("begins at the present, or where it is told to", function()
        local _, clock = open {}
        assert.is_true(math.abs(clock:now() - os.time()) < 5)
        for _, nonsense in ipairs { 0 / 0, math.huge, 1e300, -1 } do
            assert.has_error(function() clock:advance(nonsense) end)
        end
        _, clock = open({}, 1000.25)
        assert.equal(1000.25, clock:now())
    end)

    it("stands still until it is advanced, by exactly so much", function()
        local _, clock = open({}, 1000)
        worker.pause(0.01)
        assert.equal(1000, clock:now())
        clock:advance(0.57)
        assert.equal(1000.57, clock:now())
        assert.has_error(function() clock:advance(-1) end)
    end)

    it("dates jobs and targets", function()
        local runner, clock = open({ executor = "manual", ttl = 60 }, 5000)
        local id = submit(runner, "a")
        clock:advance(7)
        runner:drain(testing.script { a = testing.takes(2, "A") })
        local job, targets = runner:status(id)
        assert.same({ 5000, 5007, 5009, 5069 },
            { job.created_at, job.started_at, job.finished_at, job.expires_at })
        assert.same({ 5007, 5009 }, { targets[1].started_at, targets[1].finished_at })
    end)

    it("outlives a program that lets go of it", function()
        local runner = open { fetch = function() return "x" end }
        collectgarbage()
        collectgarbage()
        assert.equal("done", runner:wait(submit(runner, "a"), 10).status)
    end)

    it("lets leases lapse", function()
        local runner, clock = open { executor = "manual", ttl = 60 }
        local id = submit(runner, "a")
        runner:drain(testing.script { a = "A" })
        clock:advance(59)
        assert.equal("done", runner:status(id).status)
        clock:advance(60.1)
        assert.same({ nil, "expired", "expired" }, { runner:status(id) })
    end)

    it("renews the lease of a job that is read or touched", function()
        local runner, clock = open { executor = "manual", ttl = 60 }
        local id = submit(runner, "a")
        for _ = 1, 3 do
            clock:advance(40)
            assert.equal("queued", runner:status(id).status)
            assert.is_true(runner:touch(id))
        end
        assert.equal(clock:now() + 60, runner:status(id).expires_at)
    end)

    it("gives a new job for the same targets once the lease has lapsed", function()
        local runner, clock = open { executor = "manual", ttl = 60 }
        local id = submit(runner, "a")
        runner:drain(testing.script { a = "A" })
        assert.equal(id, submit(runner, "a"))
        clock:advance(61)
        assert.not_equal(id, submit(runner, "a"))
    end)

    it("sweeps what has lapsed", function()
        local runner, clock = open { executor = "manual", ttl = 60 }
        local id = submit(runner, "a")
        runner:drain(testing.script { a = "A" })
        clock:advance(3600)
        eventually(function()
            return select(3, runner:status(id)) == "not_found"
        end)
        assert.equal(0, runner:stats().store_bytes)
    end)

    it("lets a busy target wait for retry_wait", function()
        local runner, clock = open { executor = "manual", retry_wait = 10 }
        local id = submit(runner, "a")
        runner:later(runner:take(), "not now")
        local task, seconds = runner:take()
        assert.same({ nil, 10 }, { task, seconds })
        clock:advance(9.9)
        assert.is_nil((runner:take()))
        clock:advance(0.1)
        task = runner:take()
        assert.equal(2, task.attempt)
        assert.equal("pending", target_of(runner, id).status)
    end)

    it("fails a target that has been busy for retry_for", function()
        local runner, clock = open { executor = "manual", retry_wait = 10, retry_for = 30 }
        local id = submit(runner, "a")
        local began = clock:now()
        assert.equal(1, runner:drain(testing.script { a = testing.busy(math.huge) }))
        local target = target_of(runner, id)
        assert.same({ "failed", "busy", 4 }, { target.status, target.error, target.attempts })
        assert.equal(30, clock:now() - began)
    end)

    it("lets a patient target wait for longer than retry_for", function()
        local runner, clock = open { executor = "manual", retry_for = 30 }
        local id = submit(runner, "a")
        local began = clock:now()
        runner:drain(testing.script {
            a = testing.busy(5, "A", { seconds = 100, patient = true }),
        })
        assert.equal("done", target_of(runner, id).status)
        assert.equal(500, clock:now() - began)
    end)

    it("stops a sleep that outlives target_timeout on a worker thread", function()
        local runner, clock = open {
            target_timeout = 300,
            fetch = testing.script { default = testing.hangs() },
        }
        local id = submit(runner, "a")
        eventually(function() return runner:status(id).status == "running" end)
        clock:advance(301)
        assert.equal("failed", runner:wait(id, 10).status)
        assert.equal("timed out", target_of(runner, id).error)
    end)

    it("brings a busy target back to a worker thread", function()
        local runner, clock = open {
            retry_wait = "1h",
            retry_for = "1d",
            fetch = testing.script { default = testing.busy(2, "at last") },
        }
        local id = submit(runner, "a")
        for retries = 1, 2 do
            eventually(function() return runner:stats().retries == retries end)
            clock:advance(3600)
        end
        assert.equal("done", runner:wait(id, 10).status)
        assert.same({ "at last", 3 },
            { target_of(runner, id).result.content, target_of(runner, id).attempts })
    end)

    it("does not hold up a wait", function()
        local runner = open { executor = "manual" }
        assert.same({ nil, "timeout", "timeout" }, { runner:wait(submit(runner, "a"), 0.02) })
    end)
end)

describe("a testing runner", function()
    after_each(worker.close_all)

    it("refuses what batch.new refuses", function()
        assert.same({ nil, 'workers must be an integer from 1 to 256, got "many"', "invalid" },
            { testing.runner { workers = "many" } })
    end)

    it("does not change the config that it is given", function()
        local config = { executor = "manual" }
        open(config)
        assert.same({ executor = "manual" }, config)
    end)
end)

describe("a scripted fetch", function()
    after_each(worker.close_all)

    local script = {
        a = "A",
        b = { content = "B\0", meta = { n = 1 } },
        c = testing.fails("no", "try harder"),
        d = testing.busy(2, "D"),
        e = testing.hangs(),
        f = testing.raises "boom",
        g = testing.takes(3, testing.fails "late"),
        [7] = "by idx",
    }

    local function check(runner, id)
        local got = {}
        for target in runner:results(id) do
            local result = target.result or {}
            got[#got + 1] = { result.content or target.error, target.hint or result.meta,
                target.attempts }
        end
        assert.same({
            { "A", nil, 1 }, { "B\0", { n = 1 }, 1 }, { "no", "try harder", 1 }, { "D", nil, 3 },
            { "timed out", nil, 1 }, { "internal error", nil, 1 }, { "late", nil, 1 },
            { "by idx", nil, 1 }, { "not in the script", nil, 1 },
        }, got)
    end

    local function log() end

    it("plays in drain", function()
        local runner = open { executor = "manual", log = log }
        local id = submit(runner, "a", "b", "c", "d", "e", "f", "g", "h", "i")
        assert.equal(9, runner:drain(testing.script(script)))
        check(runner, id)
    end)

    it("plays on worker threads", function()
        local runner, clock = open { fetch = testing.script(script), log = log }
        local id = submit(runner, "a", "b", "c", "d", "e", "f", "g", "h", "i")
        eventually(function()
            clock:advance(1)
            return runner:status(id).status == "partial"
        end, 20)
        check(runner, id)
    end)

    it("plays on a runner with a real clock", function()
        local runner = worker.keep(batch.new {
            store = ":memory:",
            executor = "manual",
            retry_wait = "1ms",
        })
        local id = submit(runner, "d")
        assert.equal(1, runner:drain(testing.script(script)))
        assert.equal("D", target_of(runner, id).result.content)
    end)

    it("has a step for all other targets", function()
        local runner = open { executor = "manual" }
        local id = submit(runner, "a", "z")
        runner:drain(testing.script { a = "A", default = testing.fails "HTTP 404" })
        assert.equal("HTTP 404", target_of(runner, id, 1).error)
    end)

    it("must be a table", function()
        assert.has_error(function() testing.script "a" end,
            "steps must be a table, got string")
    end)
end)
