-- SPDX-License-Identifier: MIT
--
-- The manual executor: tasks in the program's own hands.

local batch = require "batch"
local eventually = require "spec.support.eventually"
local worker = require "spec.support.worker"

local function open(config)
    local settings = { executor = "manual", jobs_per_caller = 10, retry_wait = "1ms" }
    for name, value in pairs(config or {}) do
        settings[name] = value
    end
    return worker.open(settings)
end

local function submit(runner, ...)
    local targets = {}
    for i, url in ipairs { ... } do
        targets[i] = { url = url }
    end
    return (assert(runner:submit("spec", targets)))
end

-- Takes the next task, waiting for the outcome before it to be stored.
local function take(runner)
    return eventually(function() return (runner:take()) end)
end

local function targets_of(runner, id)
    return select(2, assert(runner:status(id)))
end

describe("take", function()
    after_each(worker.close_all)

    it("gives a task with all that a fetch is told", function()
        local runner = open { target_timeout = 60 }
        local id = runner:submit("me",
            { { url = "a" }, { url = "b", options = { deep = 2, x = { "y" } } } },
            { class = "gold" })
        runner:finish(take(runner), "A")
        local task = take(runner)
        assert.same({ "b", { deep = 2, x = { "y" } }, id, 1, "me", "gold", 1 }, {
            task.url, task.options, task.job, task.idx, task.caller, task.class, task.attempt,
        })
        assert.is_true(math.abs(task.deadline - os.time() - 60) < 5)
    end)

    it("gives nil and the seconds until something may start", function()
        local runner = open { retry_wait = 10 }
        local task, seconds = runner:take()
        assert.is_nil(task)
        assert.equal("number", type(seconds))
        submit(runner, "a")
        runner:later(take(runner), "busy")
        task, seconds = runner:take()
        assert.is_nil(task)
        assert.is_true(seconds > 9 and seconds <= 10)
    end)

    it("gives the next target of a job only when the outcome before it is stored", function()
        local runner = open()
        local id = submit(runner, "a", "b")
        local task = take(runner)
        assert.is_nil((runner:take()))
        assert.same({ "running", 0 },
            { runner:status(id).status, runner:status(id).targets_done })
        runner:finish(task, "A")
        local next_task = take(runner)
        assert.same({ "b", 1 }, { next_task.url, runner:status(id).targets_done })
    end)

    it("lets jobs take turns", function()
        local runner = open()
        submit(runner, "a1", "a2")
        submit(runner, "b1", "b2")
        local order = {}
        for i = 1, 4 do
            local task = take(runner)
            order[i] = task.url
            runner:finish(task, "x")
        end
        assert.same({ "a1", "b1", "a2", "b2" }, order)
    end)

    it("gives a dropped task's target again, as if it had not been taken", function()
        local runner = open()
        local id = submit(runner, "a")
        assert.equal(1, runner:take().attempt)
        collectgarbage()
        collectgarbage()
        local task = runner:take()
        assert.same({ "a", 1 }, { task.url, task.attempt })
        assert.equal("pending", targets_of(runner, id)[1].status)
    end)

    it("gives a target that was given back again, as if it had not been taken", function()
        local runner = open()
        local id = submit(runner, "a")
        local first = runner:take()
        assert.is_true(runner:give_back(first))
        local task = runner:take()
        assert.same({ "a", 1 }, { task.url, task.attempt })
        assert.equal("pending", targets_of(runner, id)[1].status)
        assert.has_error(function() runner:finish(first, "x") end)
    end)

    it("gives nothing of a cancelled job", function()
        local runner = open()
        local id = submit(runner, "a", "b")
        local task = take(runner)
        assert.is_true(runner:cancel(id))
        runner:finish(task, "A")
        eventually(function() return targets_of(runner, id)[1].status == "done" end)
        assert.is_nil((runner:take()))
        assert.same({ "cancelled", "pending" },
            { runner:status(id).status, targets_of(runner, id)[2].status })
    end)
end)

describe("finish", function()
    after_each(worker.close_all)

    local function outcome(...)
        local runner, log = open()
        local id = submit(runner, "a")
        runner:finish(take(runner), ...)
        assert(runner:wait(id, 10))
        runner:poll()
        return targets_of(runner, id)[1], log
    end

    it("takes what a fetch returns", function()
        assert.same({ content = "x" }, outcome("x").result)
        assert.same({ content = "x\0", meta = { a = 1 } },
            outcome({ content = "x\0", meta = { a = 1 } }).result)
        local target = outcome(nil, "no", "hint")
        assert.same({ "no", "hint" }, { target.error, target.hint })
        target = outcome(nil, { msg = "no", hint = "hint" })
        assert.same({ "no", "hint" }, { target.error, target.hint })
        assert.equal("internal error", outcome(42).error)
        assert.equal("internal error", outcome().error)
    end)

    it("takes retry_later", function()
        local runner = open()
        local id = submit(runner, "a")
        runner:finish(take(runner), nil, batch.retry_later("busy", 0))
        local task = take(runner)
        assert.equal(2, task.attempt)
        runner:fail(task, "gave up", "sorry")
        assert.equal("failed", runner:wait(id, 10).status)
        local target = targets_of(runner, id)[1]
        assert.same({ "gave up", "sorry", 2 }, { target.error, target.hint, target.attempts })
    end)

    it("raises for a task that is finished already", function()
        local runner = open()
        submit(runner, "a")
        local task = take(runner)
        runner:finish(task, "x")
        for name, arguments in pairs { finish = { "x" }, fail = { "no" }, later = { "busy" } } do
            local ok, message = pcall(runner[name], runner, task, arguments[1])
            assert.is_false(ok)
            assert.matches("finished already", message, 1, true)
        end
    end)

    it("raises for another runner's task, and for what is no task", function()
        local runner, other = open(), open()
        submit(other, "a")
        local task = take(other)
        for _, value in ipairs { task, {}, 1, "a", false } do
            local ok, message = pcall(runner.finish, runner, value, "x")
            assert.is_false(ok)
            assert.matches("bad argument", message, 1, true)
        end
        assert.has_error(function() runner:finish(nil, "x") end)
        other:finish(task, "x")
    end)

    it("fails a result that is too large", function()
        local runner = open { max_result_bytes = 10 }
        local id = submit(runner, "a")
        runner:finish(take(runner), ("x"):rep(11))
        runner:wait(id, 10)
        assert.equal("result too large", targets_of(runner, id)[1].error)
    end)

    it("knows no task of a closed runner", function()
        local runner = open()
        submit(runner, "a")
        local task = take(runner)
        runner:close()
        assert.has_error(function() runner:finish(task, "x") end,
            "attempt to use a closed runner")
    end)
end)

describe("the methods of the manual executor", function()
    after_each(worker.close_all)

    it("raise on a runner with threads and on a client", function()
        local runner = worker.open { fetch = function() return "x" end }
        local client = worker.keep(batch.client { store = ":memory:" })
        for _, name in ipairs { "take", "finish", "fail", "later", "give_back", "drain" } do
            for _, object in ipairs { runner, client } do
                local ok, message = pcall(object[name], object, print)
                assert.is_false(ok)
                assert.matches(name .. ' needs executor = "manual"', message, 1, true)
            end
        end
    end)

    it("need no fetch, and check no targets for one", function()
        local runner = open()
        assert.is_string((runner:submit("spec", { { url = "any", options = { mine = 1 } } })))
    end)
end)
