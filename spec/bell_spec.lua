-- SPDX-License-Identifier: MIT
--
-- A runner in an event loop that waits for sockets alone: the bell, and being told of turns.

local core = require "batch.core"
local socket = require "cqueues.socket"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

-- Connects to the runner's bell. Returns a function that tells whether it rings within a second,
-- or within the seconds given.
local function answered(runner)
    local connection = socket.connect { path = assert(runner:open_bell()) }
    connection:setmode("b", "bn")
    assert(connection:connect(1))
    assert(runner:answer_bell())
    return function(seconds)
        return core.poll_fd(connection:pollfd(), seconds or 1) and connection:recv(-1) ~= nil
    end
end

-- Counts how often a runner says that targets may be taken.
local function turns_of(runner)
    local count = 0
    runner:watch_turns(function() count = count + 1 end)
    return function()
        runner:poll()
        local seen = count
        count = 0
        return seen
    end
end

describe("the bell of a runner", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("rings when there is something to poll", function()
        local runner = fresh.runner()
        local rings = answered(runner)
        assert.is_false(rings(0))
        local answer
        runner:begin_submit(function(id) answer = id end, "ann", fresh.targets(1))
        assert.is_true(rings())
        runner:poll()
        assert.is_string(answer)
        assert.is_false(rings(0.01))
    end)

    it("rings at once for what has happened already", function()
        local runner = fresh.runner()
        runner:begin_touch(function() end, "01234567-0123-7123-8123-0123456789ab")
        eventually(function() return core.poll_fd(runner:fd(), 0) end)
        assert.is_true(answered(runner)())
    end)

    it("rings when the program asks for it", function()
        local runner = fresh.runner()
        local rings = answered(runner)
        runner:ring()
        assert.is_true(rings())
        assert.equal(0, runner:poll())
    end)

    it("is answered when somebody has connected, and only then", function()
        local runner = fresh.runner()
        assert.equal("store", select(3, runner:answer_bell()))
        local path = runner:open_bell()
        local is_answered, message = runner:answer_bell()
        assert.same({ nil, "nobody has connected to the bell" }, { is_answered, message })
        assert.truthy(os.rename(path, path))
        assert.is_true(runner:close())
        assert.falsy(os.rename(path, path))
    end)

    it("hangs up when the runner is closed", function()
        local runner = fresh.runner()
        local connection = socket.connect { path = runner:open_bell() }
        connection:connect(1)
        runner:answer_bell()
        runner:close()
        assert.is_true(core.poll_fd(connection:pollfd(), 1))
        assert.is_nil((connection:recv(1)))
        assert.has_error(function() runner:ring() end, "attempt to use a closed runner")
    end)
end)

describe("a program that takes targets itself", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("hears that there are some: of a new job, and when an outcome is stored", function()
        local runner = fresh.runner()
        local turns = turns_of(runner)
        assert.equal(0, turns())
        runner:submit("ann", fresh.targets(2))
        assert.equal(1, turns())
        local task = runner:take()
        assert.is_nil((runner:take()))
        assert.equal(0, turns())
        runner:finish(task, "x")
        eventually(function() return turns() == 1 end)
        assert.equal(1, runner:take().idx)
    end)

    it("hears of many at once", function()
        local runner = fresh.runner()
        local turns = turns_of(runner)
        for i = 1, 20 do
            runner:submit("ann", fresh.targets(1, "u" .. i .. "-"))
        end
        assert.equal(1, turns())
        assert.equal(0, turns())
    end)

    it("hears of those that were there before it asked", function()
        local runner = fresh.runner()
        runner:submit("ann", fresh.targets(1))
        assert.equal(1, turns_of(runner)())
    end)

    it("hears when a wait is over", function()
        local runner = fresh.runner()
        local turns = turns_of(runner)
        runner:submit("ann", fresh.targets(1))
        runner:later(runner:take(), "busy", 0.05)
        turns()
        eventually(function() return turns() == 1 end)
        assert.truthy(runner:take())
    end)

    it("hears of the others when it takes one of several whose wait is over", function()
        local runner = fresh.runner()
        local turns, tasks = turns_of(runner), {}
        for i = 1, 3 do
            runner:submit("ann", fresh.targets(1, "u" .. i .. "-"))
            tasks[i] = runner:take()
        end
        for _, task in ipairs(tasks) do
            runner:later(task, "busy", 0.02)
        end
        turns()
        local task = eventually(function() return (runner:take()) end)
        assert.equal(1, turns())
        assert.truthy(task)
    end)

    it("hears of a job that a client has left", function()
        local runner = fresh.runner()
        local turns = turns_of(runner)
        fresh.client { jobs_total = 10 }:submit("ann", fresh.targets(1))
        eventually(function() return turns() == 1 end)
        assert.truthy(runner:take())
    end)

    it("hears of a task that was dropped", function()
        local runner = fresh.runner()
        local turns = turns_of(runner)
        runner:submit("ann", fresh.targets(1))
        turns()
        assert.truthy(runner:take())
        eventually(function()
            collectgarbage()
            return turns() == 1
        end)
    end)

    it("asks whether a task's result is still wanted", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(2))
        runner:submit("bob", fresh.targets(2))
        local task, other = runner:take(), runner:take()
        assert.is_false(runner:is_cancelled(task))
        runner:cancel(id)
        assert.is_true(runner:is_cancelled(task))
        assert.is_false(runner:is_cancelled(other))
        runner:begin_close()
        assert.is_true(runner:is_cancelled(other))
        runner:finish(task, "x")
        assert.has_error(function() runner:is_cancelled(task) end)
    end)

    it("learns that another process has cancelled it", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(2))
        local task = runner:take()
        fresh.client():cancel(id)
        eventually(function() return runner:is_cancelled(task) end)
    end)
end)
