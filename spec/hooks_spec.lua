-- SPDX-License-Identifier: MIT
--
-- Hooks, and the events that they are called with.

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local worker = require "spec.support.worker"

-- Hooks that write down each call as a list: its kind, its arguments.
local function recorder()
    local calls = {}
    local hooks = {}
    for _, kind in ipairs { "depth", "inflight", "target", "job", "job_seconds" } do
        hooks[kind] = function(...)
            calls[#calls + 1] = { kind, n = select("#", ...), ... }
        end
    end
    return hooks, calls
end

local function of_kind(calls, kind)
    local found = {}
    for _, call in ipairs(calls) do
        if call[1] == kind then
            found[#found + 1] = call
        end
    end
    return found
end

local function numbers(calls, kind)
    local found = {}
    for i, call in ipairs(of_kind(calls, kind)) do
        found[i] = call[2]
    end
    return found
end

local function open_manual(config)
    local settings = { executor = "manual", jobs_per_caller = 10, retry_wait = "1ms" }
    for name, value in pairs(config or {}) do
        settings[name] = value
    end
    return worker.open(settings)
end

describe("hooks", function()
    after_each(worker.close_all)

    it("tell depth and inflight step by step", function()
        local hooks, calls = recorder()
        local runner = open_manual { hooks = hooks }
        local a = assert(runner:submit("spec", { { url = "a" } }))
        local b = assert(runner:submit("spec", { { url = "b" } }))
        local first, second = runner:take(), runner:take()
        runner:finish(second, "x")
        assert(runner:wait(b, 10))
        runner:finish(first, "x")
        assert(runner:wait(a, 10))
        eventually(function()
            runner:poll()
            return #of_kind(calls, "depth") == 4
        end)
        assert.same({ 1, 2, 1, 0 }, numbers(calls, "depth"))
        assert.same({ 1, 2, 1, 0 }, numbers(calls, "inflight"))
    end)

    it("tell a target's error, seconds, bytes and whose it is", function()
        local hooks, calls = recorder()
        local runner = open_manual { hooks = hooks }
        local id = runner:submit("me", { { url = "a" }, { url = "b" } }, { class = "gold" })
        runner:drain(function(target, ctx)
            if ctx.attempt == 1 then
                return nil, batch.retry_later "busy"
            elseif target.url == "a" then
                ctx:sleep(0.02)
                return "12345"
            end
            return nil, "no"
        end)
        local targets = of_kind(calls, "target")
        assert.equal(2, #targets)
        local _, failed, seconds, bytes, info = (table.unpack or unpack)(targets[1], 1, 5)
        assert.is_nil(failed)
        assert.is_true(seconds >= 0.02 and seconds < 5)
        assert.equal(5, bytes)
        assert.same({ job = id, idx = 0, attempts = 2, caller = "me", class = "gold" }, info)
        assert.same({ "no", 0, 1 }, { targets[2][2], targets[2][4], targets[2][5].idx })
    end)

    it("tell the end of each job once, with its duration", function()
        local hooks, calls = recorder()
        local runner = open_manual { hooks = hooks }
        local wanted = {}
        for url, status in pairs { good = "done", bad = "failed" } do
            wanted[assert(runner:submit("spec", { { url = url } }))] = status
        end
        wanted[assert(runner:submit("spec", { { url = "good" }, { url = "bad" } }))] = "partial"
        runner:drain(function(target)
            if target.url == "bad" then
                return nil, "bad"
            end
            return "x"
        end)
        runner:poll()
        local got, spans = {}, of_kind(calls, "job_seconds")
        for _, call in ipairs(of_kind(calls, "job")) do
            got[call[3].job] = call[2]
            assert.equal("spec", call[3].caller)
        end
        assert.same(wanted, got)
        assert.same({ 3, 3 }, { #of_kind(calls, "job"), #spans })
        for _, call in ipairs(spans) do
            assert.is_true(call[2] >= 0 and call[2] < 60)
            assert.is_string(wanted[call[3].job])
        end
    end)

    it("tell a cancelled job once, without a duration", function()
        local hooks, calls = recorder()
        local runner = open_manual { hooks = hooks }
        local queued = assert(runner:submit("spec", { { url = "a" } }))
        local running = assert(runner:submit("spec", { { url = "b" }, { url = "c" } }))
        runner:finish(runner:take(), "x")
        assert(runner:wait(queued, 10))
        local task = runner:take()
        assert.equal(running, task.job)
        runner:poll()
        assert.same({ 1, 2, 1 }, numbers(calls, "depth"))
        runner:cancel(running)
        runner:poll()
        assert.same({ 1, 2, 1, 0 }, numbers(calls, "depth"))
        runner:cancel(running)
        runner:finish(task, "x")
        local third = assert(runner:submit("spec", { { url = "d" } }))
        runner:cancel(third)
        eventually(function()
            runner:poll()
            return #of_kind(calls, "job") == 3 and #of_kind(calls, "target") == 2
        end)
        worker.pause(0.05)
        runner:poll()
        local statuses = {}
        for _, call in ipairs(of_kind(calls, "job")) do
            statuses[#statuses + 1] = call[2]
        end
        assert.same({ "done", "cancelled", "cancelled" }, statuses)
        assert.equal(1, #of_kind(calls, "job_seconds"))
        local depths = numbers(calls, "depth")
        assert.equal(0, depths[#depths])
    end)

    it("run inside drain", function()
        local hooks, calls = recorder()
        local runner = open_manual { hooks = hooks }
        runner:submit("spec", { { url = "a" }, { url = "b" } })
        local seen = 0
        runner:drain(function(target)
            if target.url == "b" then
                seen = #of_kind(calls, "target")
            end
            return "x"
        end)
        assert.equal(1, seen)
        assert.same({ "done" }, { of_kind(calls, "job")[1][2] })
    end)

    it("that raise are logged and do no harm", function()
        local runner, log = open_manual {
            hooks = {
                depth = function() error "boom" end,
                target = function()
                    error(setmetatable({}, { __tostring = function() error "worse" end }))
                end,
            },
        }
        local id = runner:submit("spec", { { url = "a" } })
        assert.equal(1, runner:drain(function() return "x" end))
        runner:poll()
        assert.equal("done", runner:status(id).status)
        assert.matches("hook depth raised", log[1].message, 1, true)
        assert.equal("error", log[1].level)
        assert.matches("boom", log[1].fields.detail, 1, true)
    end)

    it("are called by poll, which returns their number", function()
        local hooks, calls = recorder()
        local runner = worker.open { hooks = hooks, fetch = function() return "x" end }
        local id = runner:submit("spec", { { url = "a" } })
        runner:wait(id, 10)
        assert.equal(0, #calls)
        -- depth 1, inflight 1 and 0, target, job, job_seconds, depth 0
        local count = 0
        eventually(function()
            count = count + runner:poll()
            return count >= 7
        end)
        assert.same({ 7, 7, 0 }, { count, #calls, runner:poll() })
    end)

    it("are counted in stats even if nobody polls", function()
        local runner = worker.open { fetch = function() return "x" end }
        runner:wait(runner:submit("spec", { { url = "a" } }), 10)
        local stats = runner:stats()
        assert.same({ 1, 1, 0 },
            { stats.jobs.done, stats.targets.done, stats.events_dropped })
    end)
end)

describe("a runner's descriptor", function()
    after_each(worker.close_all)

    it("is readable when poll has something, and not after", function()
        local runner = open_manual { hooks = recorder() }
        local fd = runner:fd()
        assert.is_false(core.poll_fd(fd, 0))
        runner:submit("spec", { { url = "a" } })
        assert.is_true(core.poll_fd(fd, 5))
        assert.is_true(core.poll_fd(fd, 0))
        runner:poll()
        assert.is_false(core.poll_fd(fd, 0))
        runner:take()
        assert.is_true(core.poll_fd(fd, 5))
    end)
end)

describe("the list of events", function()
    after_each(worker.close_all)

    it("is bounded, and what it drops is counted", function()
        local runner = open_manual { hooks = { inflight = function() end }, retry_for = "1h" }
        runner:submit("spec", { { url = "a" } })
        for _ = 1, 10000 do
            runner:later(eventually(function() return (runner:take()) end), "again", 0)
            if runner:stats().retries % 1000 == 0 then
                collectgarbage()
            end
        end
        local dropped = runner:stats().events_dropped
        assert.is_true(dropped > 0)
        assert.equal(20000 - dropped, runner:poll())
    end)

    it("of a client tell of a job that nobody had when it was cancelled", function()
        local store = assert(batch.store.open ":memory:")
        local hooks, calls = recorder()
        local client = assert(batch.client { store = store, hooks = hooks })
        local id = assert(client:submit("spec", { { url = "a" } }))
        assert.is_true(client:cancel(id))
        assert.is_false(client:cancel(id))
        client:poll()
        assert.equal(1, #calls)
        assert.same({ "job", "cancelled", id }, { calls[1][1], calls[1][2], calls[1][3].job })
        assert.equal(1, client:stats().jobs.cancelled)
        client:close()
        store:close()
    end)
end)
