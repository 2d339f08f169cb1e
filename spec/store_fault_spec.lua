-- SPDX-License-Identifier: MIT
--
-- A store that fails while runners work on it: locked by another process, on a full disk. Submits
-- are refused, reads go on, outcomes wait, and nothing that was acknowledged is lost.

local core = require "batch.core"
local disk = require "spec.support.disk"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

-- Another process that holds the store's lock until what this returns is called, or for so many
-- seconds.
local function lock(path, seconds)
    local said = fresh.path "said"
    local other = assert(io.popen(("sqlite3 '%s' >'%s'"):format(path, said), "w"))
    other:write ".timeout 5000\nbegin immediate;\nselect 'locked';\n" -- the runner may be writing
    other:flush()
    eventually(function()
        local file = io.open(said)
        local text = file and file:read "*a"
        return file and file:close() and text:find "locked"
    end)
    if seconds then
        other:write(".shell sleep " .. seconds .. "\nrollback;\n")
        other:flush()
    end
    return function()
        other:write(seconds and "" or "rollback;\n")
        other:close()
    end
end

local function timed(f, ...)
    local began = core.now()
    local results = { f(...) }
    return core.now() - began, results
end

-- What a runner logs, in a list that poll fills.
local function logging()
    local records = {}
    return records, function(level, message, record)
        records[#records + 1] = { level, message, record.detail }
    end
end

describe("a store that is locked by another process", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("refuses a submit after ten seconds, and keeps an outcome until it is free", function()
        local records, log = logging()
        local runner = fresh.runner { log = log }
        local id = runner:submit("ann", fresh.targets(2))
        local task = runner:take()
        local unlock = lock(fresh.path "batch.db")
        local seconds = timed(runner.finish, runner, task, "kept")
        assert.is_true(seconds < 1)
        local refused
        seconds, refused = timed(runner.submit, runner, "bob", fresh.targets(1))
        assert.is_nil(refused[1])
        assert.equal("store", refused[3])
        assert.matches("locked", refused[2])
        assert.is_true(seconds > 9 and seconds < 12, "it took " .. seconds)
        local job
        seconds, job = timed(runner.status, runner, id)
        assert.is_true(seconds < 1)
        assert.equal(0, job[1].targets_done)
        assert.is_false(runner:stats().healthy)
        unlock()
        eventually(function() return runner:status(id).targets_done == 1 end)
        assert.equal("kept", select(2, runner:status(id))[1].result.content)
        eventually(function() return runner:stats().healthy end)
        assert.is_string(runner:submit("bob", fresh.targets(1)))
        runner:poll()
        assert.equal("warn", records[1][1])
        assert.matches("locked", records[1][3])
        assert.is_true(fresh.store():check())
    end)

    it("waits for a short lock without telling anybody", function()
        local runner = fresh.runner()
        local unlock = lock(fresh.path "batch.db", "0.5")
        local seconds, answer = timed(runner.submit, runner, "ann", fresh.targets(1))
        assert.is_string(answer[1])
        assert.is_true(seconds > 0.2, "it took " .. seconds)
        unlock()
    end)
end)

describe("a store on a full disk", function()
    local full

    before_each(function()
        fresh.start()
        full = disk.mount "4m"
    end)
    after_each(function()
        fresh.finish()
    end)

    it("is found out by who asks, and so is that there is room, though nobody submits", function()
        if not full then
            return pending "only root may mount a disk"
        end
        local _, log = logging()
        local runner = fresh.runner { store = full.path .. "/batch.db", log = log }
        finally(function()
            runner:close()
            full:unmount()
        end)
        assert.is_true(runner:stats().healthy)
        full:fill()
        eventually(function() return not runner:stats().store_healthy end)
        assert.is_false(runner:stats().healthy)
        full:free()
        eventually(function() return runner:stats().healthy end)
        assert.is_true(runner:stats().store_healthy)
    end)

    it("refuses a submit at once, reads on, and takes the outcomes when there is room", function()
        if not full then
            return pending "only root may mount a disk"
        end
        local records, log = logging()
        local path = full.path .. "/batch.db"
        local runner = fresh.runner { store = path, log = log, ttl = 3600 }
        finally(function()
            runner:close()
            full:unmount()
        end)
        local first = runner:submit("ann", fresh.targets(2))
        local second = runner:submit("bob", fresh.targets(1))
        runner:finish(runner:take(), ("x"):rep(1000))
        eventually(function() return runner:status(first).targets_done == 1 end)
        full:fill()
        local task = runner:take()
        runner:finish(task, ("y"):rep(1000000))
        local seconds, refused = timed(runner.submit, runner, "cid", fresh.targets(32))
        assert.is_nil(refused[1])
        assert.equal("store", refused[3])
        assert.matches("full", refused[2])
        assert.is_true(seconds < 1, "it took " .. seconds)
        for i = 1, 8 do  -- each failure makes the pause before the next try longer
            local code
            seconds = timed(function()
                runner:begin_submit(function(_, _, c) code = c end, "cid",
                    fresh.targets(32, "u" .. i .. "-"))
                eventually(function() return runner:poll() > 0 and code end)
            end)
            assert.equal("store", code)
            assert.is_true(seconds < 0.5, "it took " .. seconds)
        end
        assert.same({ 2, 1 }, { #runner:jobs(), #select(2, runner:status(second)) })
        assert.equal(("x"):rep(1000), select(2, runner:status(first))[1].result.content)
        assert.equal(0, runner:status(second).targets_done)
        assert.is_false(runner:stats().healthy)
        full:free()
        eventually(function() return runner:status(second).status == "done" end)
        assert.equal(("y"):rep(1000000), select(2, runner:status(second))[1].result.content)
        assert.is_string(runner:submit("cid", fresh.targets(1)))
        runner:poll()
        assert.equal("error", records[1][1])
        assert.matches("full", records[1][3])
        assert.equal(0, runner:stats().evicted_jobs)
        assert.is_true(fresh.store(path):check())
    end)
end)
