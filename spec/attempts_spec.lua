-- SPDX-License-Identifier: MIT
--
-- An attempt that was interrupted is none: what a target's attempts are after a task was dropped,
-- its runner was closed, or its process killed.

local batch = require "batch"
local eventually = require "spec.support.eventually"
local process = require "spec.support.process"

-- Takes the job's target in a process that then hangs, once it was busy before.
local HANGS = [[
local runner = assert(batch.new(settings { on_restart = "resume", executor = "manual" }))
note("id", assert(runner:submit("me", urls("u" .. core.now(), 2))))
runner:later(runner:take(), "busy", 0)
local task
repeat
    core.poll_fd(-1, 0.002)
    task = runner:take()
until task
-- What was busy is known to others with the next look.
repeat
    core.poll_fd(-1, 0.002)
    local _, targets = runner:status(task.job)
until targets[1].attempts == 1
note("attempt", task.attempt)
while true do
    core.poll_fd(runner:fd(), 60)
end
]]

describe("an attempt that is interrupted counts for nothing:", function()
    local folder, runner

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        if runner then
            runner:close()
            runner = nil
        end
        folder:remove()
    end)

    local function open(more)
        local config = { store = folder.store, durability = "normal", on_restart = "resume",
            executor = "manual", fetch = function() end, log = function() end }
        for name, value in pairs(more or {}) do
            config[name] = value
        end
        runner = assert(batch.new(config))
        return runner
    end

    local function take()
        return eventually(function()
            collectgarbage()
            return (runner:take())
        end)
    end

    local function attempts_of(id)
        local _, targets = runner:status(id)
        return targets[1].attempts
    end

    -- A job whose first target was busy once, and that is known.
    local function submit_busy()
        local id = assert(runner:submit("me", { { url = "u1" }, { url = "u2" } }))
        runner:later(take(), "busy", 0)
        eventually(function() return attempts_of(id) == 1 end)
        return id
    end

    it("a task that is dropped", function()
        open()
        local id = submit_busy()
        for _ = 1, 5 do
            assert.equal(2, take().attempt)
        end
        eventually(function()
            collectgarbage()
            return runner:unsettled() == 0
        end)
        assert.equal(1, attempts_of(id))
        runner:finish(take(), "x")
        eventually(function() return attempts_of(id) == 2 end)
    end)

    it("a task that a close gives back", function()
        open()
        local id = submit_busy()
        for _ = 1, 3 do
            local task = take()
            assert.equal(2, task.attempt)
            runner:close()
            open()
            assert.equal(1, attempts_of(id))
        end
        assert.equal(2, take().attempt)
    end)

    it("a fetch that a close breaks off", function()
        open { executor = "threads", fetch = function(_, ctx)
            ctx:sleep(60)
            error "broken off"
        end }
        local id = assert(runner:submit("me", { { url = "u1" } }))
        eventually(function() return runner:stats().inflight_targets == 1 end)
        runner:close()
        open()
        assert.equal(0, attempts_of(id))
        assert.equal(1, take().attempt)
    end)

    it("a target whose process is killed", function()
        local hanging = folder:start(HANGS)
        eventually(function() return folder:lines("attempt")[1] end)
        assert.same({ "2" }, folder:lines("attempt"), hanging:output())
        local id = folder:lines("id")[1]
        hanging:kill()
        hanging:wait()
        open()
        assert.equal(1, attempts_of(id))
        assert.equal(2, take().attempt)
    end)

    it("a target whose process is killed while another one lives, which sees it at once", function()
        open { jobs_per_caller = 10, jobs_total = 10 }
        local fastest = math.huge
        for i = 1, 5 do
            local hanging = folder:start(HANGS)
            eventually(function() return folder:lines("attempt")[i] end)
            hanging:kill()
            hanging:wait()
            local began = process.now()
            local task = eventually(function() return (runner:take()) end)
            fastest = math.min(fastest, process.now() - began)
            assert.equal(2, task.attempt)
            runner:cancel(task.job)
            runner:finish(task, "x")
        end
        assert.is_true(fastest < 0.05, ("seen after %.3f s"):format(fastest))
    end)
end)
