-- SPDX-License-Identifier: MIT
--
-- Draining in the program's own state.

local batch = require "batch"
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

local function targets_of(runner, id)
    return select(2, assert(runner:status(id)))
end

describe("drain", function()
    after_each(worker.close_all)

    it("runs a closure on every target and returns their number", function()
        local runner = open()
        local id = submit(runner, "a", "b")
        local other = submit(runner, "c")
        local seen = {}
        assert.equal(3, runner:drain(function(target, ctx)
            seen[#seen + 1] = target.url .. ctx.idx
            return target.url:upper()
        end))
        assert.same({ "a0", "c0", "b1" }, seen)
        assert.same({ "done", "done" }, { runner:status(id).status, runner:status(other).status })
        assert.equal(0, runner:drain(function() return "x" end))
    end)

    it("counts a target once however often it was busy", function()
        local runner = open()
        submit(runner, "a")
        local calls = 0
        assert.equal(1, runner:drain(function(_, ctx)
            calls = calls + 1
            if ctx.attempt < 4 then
                return nil, batch.retry_later "busy"
            end
            return "x"
        end))
        assert.equal(4, calls)
    end)

    it("fails what raises and goes on", function()
        local runner, log = open()
        local id = submit(runner, "a", "b")
        runner:drain(function(target) return target.url == "b" and "B" or error "boom" end)
        local targets = targets_of(runner, id)
        assert.same({ "internal error", "B" }, { targets[1].error, targets[2].result.content })
        assert.matches("boom", log[1].fields.detail, 1, true)
    end)

    it("stops a loop that outlives target_timeout", function()
        local runner = open { target_timeout = 0.05 }
        local id = submit(runner, "a", "b")
        runner:drain(function(target)
            while target.url == "a" do end
            return "B"
        end)
        local targets = targets_of(runner, id)
        assert.same({ "timed out", "B" }, { targets[1].error, targets[2].result.content })
    end)

    it("stops a loop that LuaJIT had compiled before, and has it compile again after", function()
        if not rawget(_G, "jit") then
            return pending("this VM has no compiler")
        end
        local runner = open { target_timeout = 0.05 }
        local id = submit(runner, "a")
        local function count(limit)
            local n = 0
            while n < limit do
                n = n + 1
            end
            return n
        end
        count(1e6)
        runner:drain(function() return count(math.huge) end)
        assert.equal("timed out", targets_of(runner, id)[1].error)
        assert.is_true((jit.status()))
        jit.off()
        runner:drain(function() return "x" end)
        assert.is_false((jit.status()))
        jit.on()
    end)

    it("keeps a debug hook of the program", function()
        local runner = open()
        submit(runner, "a")
        local function hook() end
        debug.sethook(hook, "", 100000)
        runner:drain(function() return "x" end)
        local kept, _, count = debug.gethook()
        debug.sethook()
        assert.same({ hook, 100000 }, { kept, count })
    end)

    it("takes up a task that was taken and dropped", function()
        local runner = open()
        submit(runner, "a")
        runner:take()
        assert.equal(1, runner:drain(function() return "x" end))
    end)

    it("may cancel, submit and read from inside the fetch", function()
        local runner = open()
        submit(runner, "a", "b")
        local first
        assert.equal(2, runner:drain(function(target, ctx)
            if target.url == "a" then
                assert(not ctx:cancelled())
                first = runner:status(ctx.job).status
                runner:cancel(ctx.job)
                assert(ctx:cancelled() and not ctx:sleep(60))
                submit(runner, "c")
            end
            return "x"
        end))
        assert.equal("running", first)
    end)

    it("is no function of its own fetch", function()
        local runner = open()
        submit(runner, "a")
        local ok, message
        runner:drain(function()
            ok, message = pcall(runner.drain, runner, print)
            return "x"
        end)
        assert.is_false(ok)
        assert.matches("drain", message, 1, true)
    end)

    it("may drain another runner inside its fetch", function()
        local outer, inner = open(), open { target_timeout = 0.05 }
        submit(outer, "a")
        submit(inner, "b")
        local slept
        assert.equal(1, outer:drain(function(_, ctx)
            inner:drain(function() while true do end end)
            slept = ctx:sleep(0.01)
            return "x"
        end))
        assert.is_true(slept)
    end)

    it("claims a client's job at once and sleeps until it is there", function()
        local store = assert(batch.store.open ":memory:")
        local runner = open { store = store }
        local client = assert(batch.client { store = store })
        local wait_for_work, n_waits = runner._wait_for_work, 0
        function runner._wait_for_work(...)
            n_waits = n_waits + 1
            return wait_for_work(...)
        end
        submit(client, "a", "b")
        assert.equal(2, runner:drain(function() return "x" end))
        assert.is_true(n_waits < 20, n_waits .. " waits for two targets")
        client:close()
        store:close()
    end)

    it("ends when its fetch closes the runner", function()
        local runner = open()
        submit(runner, "a", "b")
        local closed
        assert.equal(1, runner:drain(function()
            closed = { runner:close() }
            return "A"
        end))
        assert.same({ nil, "timeout" }, { closed[1], closed[3] })
        assert.is_true(runner:close())
    end)

    it("ends when a hook closes the runner", function()
        local runner
        runner = open { hooks = { target = function() runner:close() end } }
        submit(runner, "a", "b")
        assert.equal(1, runner:drain(function() return "A" end))
    end)

    it("needs a function", function()
        local runner = open()
        assert.has_error(function() runner:drain "batch.fetch" end,
            "fetch must be a function, got string")
    end)
end)
