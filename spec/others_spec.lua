-- SPDX-License-Identifier: MIT
--
-- What a runner knows of the others on its store: their caps, and what all have counted together.

local batch = require "batch"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local process = require "spec.support.process"

local MESSAGE = "another process on this store has other caps"

-- A runner with these caps, and what it logged while it was opened.
local function open(caps)
    local log = {}
    caps.log = function(level, message, fields)
        log[#log + 1] = { level, message, fields.detail }
    end
    local runner = fresh.runner(caps)
    runner:poll()
    return runner, log
end

describe("caps that differ between processes on one store", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("are told when the second one opens: who has which, and which holds where", function()
        open { jobs_total = 5, targets_per_job = 7 }
        local _, log = open { jobs_total = 9, targets_per_job = 7 }
        assert.equal(1, #log)
        assert.same({ "warn", MESSAGE }, { log[1][1], log[1][2] })
        local detail = log[1][3]
        assert.matches("jobs_total is 9 here and 5 there", detail, 1, true)
        assert.matches("here is process %d+, there process %d+", detail)
        assert.matches("each holds the jobs that are submitted to it to its own caps", detail, 1,
            true)
        assert.falsy(detail:find "targets_per_job" or detail:find "jobs_per_caller")
    end)

    it("are all named", function()
        open { jobs_total = 5, targets_per_job = 7, jobs_per_caller = 3 }
        local _, log = open { jobs_total = 6, targets_per_job = 8, jobs_per_caller = 4 }
        for _, text in ipairs { "targets_per_job is 8 here and 7 there", "jobs_total is 6 here",
            "jobs_per_caller is 4 here and 3 there" } do
            assert.matches(text, log[1][3], 1, true)
        end
    end)

    it("are told once, however many processes have them", function()
        for _ = 1, 3 do
            open { jobs_total = 5 }
        end
        local _, log = open { jobs_total = 6 }
        assert.equal(1, #log)
    end)

    it("are not told when they are alike, or the other one has ended", function()
        local first = open { jobs_total = 5 }
        local second, log = open { jobs_total = 5 }
        assert.same({}, log)
        first:close()
        second:close()
        log = select(2, open { jobs_total = 6 })
        assert.same({}, log)
    end)

    it("hold where a job is submitted", function()
        local narrow = open { jobs_total = 1 }
        local wide = open { jobs_total = 2 }
        assert.truthy(narrow:submit("ann", fresh.targets(1)))
        assert.equal("busy", select(3, narrow:submit("bob", fresh.targets(1))))
        assert.truthy(wide:submit("bob", fresh.targets(1)))
        assert.equal("busy", select(3, wide:submit("eve", fresh.targets(1))))
    end)
end)

-- Counts a target that is done, one that failed, and a retry, and then says so.
local WORKS = [[
local runner = assert(batch.new(settings { on_restart = "resume", executor = "manual" }))
local id = assert(runner:submit("me", urls("u" .. core.now(), 3)))
local function take()
    local task
    repeat
        core.poll_fd(-1, 0.001)
        task = runner:take()
    until task
    return task
end
runner:later(take(), "busy", 0)
runner:finish(take(), "x")
runner:fail(take(), "sorry")
take()
note("id", id)
while true do
    core.poll_fd(runner:fd(), 60)
end
]]

describe("what all processes on one store have counted", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local function fetch_one(runner, url)
        local before = runner:stats().jobs.done
        runner:submit("ann", { { url = url } })
        runner:finish(runner:take(), "x")
        eventually(function() return runner:stats().jobs.done > before end)
    end

    local function all(runner)
        return runner:stats { all = true }
    end

    it("is what each of them has", function()
        local one, other = fresh.runner(), fresh.runner()
        fetch_one(one, "u1")
        fetch_one(other, "u2")
        fetch_one(other, "u3")
        assert.equal(1, one:stats().targets.done)
        assert.equal(2, other:stats().jobs.done)
        for _, runner in ipairs { one, other, fresh.client() } do
            local stats = all(runner)
            assert.same({ 3, 3 }, { stats.targets.done, stats.jobs.done })
            assert.equal(3, stats.result_bytes.count)
            assert.equal(3, stats.result_bytes.sum)
            assert.equal(3, stats.result_bytes.buckets[1].count)
            assert.is_true(stats.healthy)
        end
    end)

    it("is still there when they have ended, and when they come again", function()
        for i = 1, 3 do
            local one, other = fresh.runner(), fresh.runner()
            fetch_one(one, "u" .. i)
            one:close()
            assert.equal(i, all(other).targets.done)
            other:close()
        end
        assert.equal(3, all(fresh.client()).targets.done)
        assert.equal(0, fresh.runner():stats().targets.done)
    end)

    it("is that of a runner whose store is in memory, alone", function()
        local runner = fresh.runner { store = ":memory:" }
        fetch_one(runner, "u1")
        assert.equal(1, all(runner).targets.done)
    end)
end)

describe("what a process has counted that is killed", function()
    it("is neither lost nor counted twice, whoever finds it dead", function()
        local folder = process.folder()
        local function resuming()
            return assert(batch.new { store = folder.store, executor = "manual",
                on_restart = "resume", fetch = print, log = function() end })
        end
        local runners = { resuming(), resuming() }
        for i = 1, 3 do
            local working = folder:start(WORKS)
            local id = eventually(function() return folder:lines("id")[i] end)
            working:kill()
            working:wait()
            -- It is found dead, and its job claimed.
            local task = eventually(function() return runners[1]:take() or runners[2]:take() end)
            assert.equal(id, task.job)
            for _, runner in ipairs(runners) do
                runner:cancel(id)
                local stats = runner:stats { all = true }
                assert.same({ i, i, i }, { stats.targets.done, stats.targets.failed,
                    stats.retries })
            end
            runners[1]:close()
            runners[1] = table.remove(runners)
            runners[2] = resuming()
        end
        for _, runner in ipairs(runners) do
            runner:close()
        end
        folder:remove()
    end)
end)
