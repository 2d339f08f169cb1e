-- SPDX-License-Identifier: MIT
--
-- The faults of batch.testing: what fails, when, and what a program sees of it.

local testing = require "batch.testing"  -- before the first store: see docs/testing.md

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local process = require "spec.support.process"

local SAID = {
    busy = "database is locked",
    full = "database or disk is full",
    ioerr = "disk I/O error",
    corrupt = "database disk image is malformed",
}

-- A runner that keeps what it logs to itself.
local function open(config)
    config = config or {}
    config.log = function() end
    return fresh.runner(config)
end

-- Writes nothing of its own accord, so that a fault meets what the test does.
local function client()
    return fresh.client { log = function() end, jobs_per_caller = 10 }
end

describe("a fault", function()
    before_each(fresh.start)
    after_each(function()
        testing.no_faults()
        fresh.finish()
    end)

    for _, at in ipairs { "commit", "write" } do
        for _, answer in ipairs { "full", "ioerr", "corrupt" } do
            it(("of a %s refuses one submit with %s, and not the next"):format(at, answer),
                function()
                    local runner = client()
                    testing.fault { at = at, answer = answer }
                    local id, message, code = runner:submit("ann", fresh.targets(3))
                    assert.same({ nil, "store" }, { id, code })
                    assert.equal("cannot commit: " .. SAID[answer], message)
                    assert.same({}, runner:jobs())
                    assert.is_string(runner:submit("ann", fresh.targets(3)))
                    assert.is_true(fresh.store():check())
                end)
        end
    end

    it("that says busy is waited for, as another process would be", function()
        local runner = open()
        for _, at in ipairs { "commit", "lock" } do
            testing.fault { at = at, answer = "busy", times = 3 }
            assert.is_string(runner:submit(at, fresh.targets(1)))
            assert.is_true(testing.no_faults()[at] > 3)
        end
    end)

    it("of a sync fails what must survive a power cut, and nothing else", function()
        local lasting, quick = open { durability = "full" }, open { store = fresh.path "other.db" }
        testing.fault { at = "sync", times = math.huge }
        assert.is_string(quick:submit("ann", fresh.targets(1)))
        assert.same({ nil, "cannot commit: disk I/O error", "store" },
            { lasting:submit("ann", fresh.targets(1)) })
    end)

    it("comes at the passage that was asked for, and so many times", function()
        local runner = client()
        testing.fault { at = "commit", nth = 2, times = 2, answer = "full" }
        local codes = {}
        for i = 1, 4 do
            local id, _, code = runner:submit("ann", fresh.targets(1, "t" .. i))
            codes[i] = id and "stored" or code
        end
        assert.same({ "stored", "store", "store", "stored" }, codes)
        assert.equal(4, testing.no_faults().commit)
        assert.equal(0, testing.passed().commit)
    end)

    it("leaves an outcome waiting until the store takes it", function()
        local runner = open()
        local id = runner:submit("ann", fresh.targets(1))
        testing.fault { at = "commit", times = math.huge, answer = "full" }
        runner:finish(runner:take(), "kept")
        eventually(function()
            return testing.passed().commit >= 3 and not runner:stats().healthy
        end)
        assert.equal(0, runner:status(id).targets_done)
        testing.no_faults()
        eventually(function() return runner:status(id).status == "done" end)
        assert.equal("kept", select(2, runner:status(id))[1].result.content)
    end)

    it("of memory refuses a store, a runner and a submit, while it lasts", function()
        local runner = open()
        local tries = {
            function() return batch.store.open(fresh.path "a.db") end,
            function() return batch.new { store = fresh.path "b.db" } end,
            function() return runner:submit("ann", fresh.targets(1)) end,
        }
        for _, try in ipairs(tries) do
            testing.fault { at = "allocation", times = math.huge }
            local made, message, code = try()
            testing.no_faults()
            assert.same({ nil, "out of memory", "store" }, { made, message, code })
            local now = assert(try())
            if type(now) ~= "string" then
                fresh.keep(now)
            end
        end
    end)

    it("of a thread refuses a runner, and its store is free for the next one", function()
        for nth = 1, 4 do  -- two workers, the committer, the keeper
            testing.fault { at = "thread", nth = nth }
            assert.same({ nil, "cannot start 2 worker threads", "store" },
                { batch.new { store = fresh.path "batch.db", workers = 2 } })
            assert.equal(nth, testing.no_faults().thread)
        end
        local runner = fresh.keep(assert(batch.new {
            store = fresh.path "batch.db",
            fetch = function(target) return target.url end,
        }))
        assert.equal("done", runner:wait(runner:submit("ann", fresh.targets(2)), 10).status)
    end)

    it("may be no more than a delay", function()
        local runner = open()
        testing.fault { at = "commit", answer = "delay", seconds = 0.2 }
        local began = core.monotime()
        assert.is_string(runner:submit("ann", fresh.targets(1)))
        assert.is_true(core.monotime() - began >= 0.2)
    end)

    it("is not undone by a worker whose fetch requires batch.testing", function()
        local runner = fresh.keep(assert(batch.new {
            store = fresh.path "batch.db",
            fetch = testing.script { default = "content" },
        }))
        local id = runner:submit("ann", fresh.targets(1))
        testing.fault { at = "commit", nth = 1000 }
        assert.equal("done", runner:wait(id, 10).status)
        assert.is_true(testing.passed().commit >= 1)
    end)

    it("ends the process, or tears a write, with status 86", function()
        local folder = process.folder()
        finally(function() folder:remove() end)
        for _, answer in ipairs { "die", "tear" } do
            local victim = folder:start(([[
                local testing = require "batch.testing"
                local runner = assert(batch.new(settings { executor = "manual" }))
                testing.fault { at = "write", answer = %q }
                note("ready", "yes")
                runner:submit("me", urls("u", 3))
                note("submitted", "yes")
            ]]):format(answer))
            assert.same({ 86, "" }, { victim:wait(), victim:output() })
            assert.same({}, folder:lines "submitted")
            local store = assert(batch.store.open(folder.store))
            assert.same({ true, 0 }, { store:check(), store:live_jobs_total() })
            store:close()
        end
        assert.equal(2, #folder:lines "ready")
    end)

    it("that makes no sense raises", function()
        local mistakes = {
            ["plan must be a table, got string"] = "write",
            ["at must be io, read, write, sync, lock, commit, allocation, store_allocation or "
                .. "thread, got disk"] = { at = "disk" },
            ["answer at thread must be fail, die or delay, got busy"] =
                { at = "thread", answer = "busy" },
            ["nth must be a number from 1, got 0"] = { at = "write", nth = 0 },
            ["times must be a number from 1, got often"] = { at = "write", times = "often" },
            ["a fault has no field n"] = { at = "write", n = 2 },
        }
        for message, plan in pairs(mistakes) do
            assert.has_error(function() testing.fault(plan) end, message)
        end
    end)
end)

describe("the clock of a testing runner", function()
    it("may be set forward and back, as that of a machine", function()
        local runner, clock = testing.runner({ executor = "manual", retry_wait = 10, ttl = 60 },
            5000)
        local id = runner:submit("ann", fresh.targets(1))
        runner:later(runner:take(), "not now")
        clock:set(2000)
        assert.same({ nil, 10 }, { runner:take() })
        assert.equal(2000, clock:now())
        clock:advance(10)
        local task = runner:take()
        assert.equal(2, task.attempt)
        clock:set(9000)
        runner:finish(task, "late")
        local job
        eventually(function()
            job = runner:status(id)
            return job and job.status == "done"
        end)
        assert.same({ "done", 5000, 9000, 9060 },
            { job.status, job.created_at, job.finished_at, job.expires_at })
        runner:close()
    end)
end)
