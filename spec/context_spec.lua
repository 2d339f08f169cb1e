-- SPDX-License-Identifier: MIT
--
-- What a fetch is told, and its ctx.

local cjson = require "cjson"
local eventually = require "spec.support.eventually"
local worker = require "spec.support.worker"

describe("a fetch function", function()
    after_each(worker.close_all)

    it("gets the url and the options of its target", function()
        local options = { mode = "raw", deep = { list = { 1, 2.5, "x" }, flag = true }, n = 2 ^ 40 }
        local target = worker.outcome(function(target)
            return { content = target.url, meta = target.options }
        end, {}, { url = "http://a.example/?q=ü", options = options })
        assert.same({ content = "http://a.example/?q=ü", meta = options }, target.result)
    end)

    it("gets an empty table for no options", function()
        assert.equal("table nil", worker.outcome(function(target)
            return type(target.options) .. " " .. tostring(next(target.options))
        end).result.content)
    end)

    it("gets whole numbers as integers", function()
        local kind = math.type and math.type(7) or "the only kind"
        assert.equal(kind .. " 7 9007199254740991", worker.outcome(function(target)
            local a, b = target.options.a, target.options.b
            local kinds = math.type and { math.type(a), math.type(b) } or { "the only kind" }
            return ("%s %d %d"):format(kinds[#kinds], a, b)
        end, {}, { url = "u", options = { a = 7, b = 2 ^ 53 - 1 } }).result.content)
    end)

    it("is told caller, class, job, idx, attempt and deadline", function()
        local runner = worker.open {
            target_timeout = 60,
            fetch = function(_, ctx)
                return {
                    content = "",
                    meta = {
                        caller = ctx.caller,
                        class = ctx.class,
                        job = ctx.job,
                        idx = ctx.idx,
                        attempt = ctx.attempt,
                        left = ctx.deadline - os.time(),
                    },
                }
            end,
        }
        local id = assert(runner:submit("me\0\1", { { url = "a" }, { url = "b" } },
            { class = "gold" }))
        assert(runner:wait(id, 10))
        local _, targets = runner:status(id)
        local meta = targets[2].result.meta
        assert.is_true(meta.left > 57 and meta.left < 62)
        meta.left = nil
        assert.same({ caller = "me\0\1", class = "gold", job = id, idx = 1, attempt = 1 }, meta)
    end)

    it("may change what it is given, for itself alone", function()
        local runner = worker.open {
            fetch = function(target, ctx)
                local before = cjson.encode { target.url, target.options.a, ctx.attempt }
                target.url, target.options.a, ctx.attempt, ctx.sleep = "x", "x", 42, nil
                return before
            end,
        }
        local _, targets = worker.run(runner,
            { { url = "u", options = { a = 1 } }, { url = "v", options = { a = 2 } } })
        assert.equal('["v",2,1]', targets[2].result.content)
    end)
end)

describe("ctx:sleep", function()
    after_each(worker.close_all)

    it("goes with ctx:cancelled, which is false for a job that goes on", function()
        assert.equal("false", worker.outcome(function(_, ctx)
            return tostring(ctx:cancelled())
        end).result.content)
    end)

    it("is true after the whole sleep", function()
        local target = worker.outcome(function(_, ctx)
            return tostring(ctx:sleep(0.05)) .. tostring(ctx:sleep(0))
        end)
        assert.equal("truetrue", target.result.content)
        assert.is_true(target.finished_at - target.started_at > 0.045)
    end)

    it("is false, and early, when the job is cancelled", function()
        local runner = worker.open {
            fetch = function(_, ctx)
                local slept = ctx:sleep(60)
                return cjson.encode { slept, ctx:cancelled(), ctx:sleep(60) }
            end,
        }
        local id = assert(runner:submit("spec", { { url = "a" }, { url = "b" } }))
        eventually(function() return runner:status(id).status == "running" end)
        assert.is_true(runner:cancel(id))
        eventually(function() return runner:status(id).targets_done == 1 end, 5)
        local job, targets = runner:status(id)
        assert.same({ "cancelled", "[false,true,false]", "pending" },
            { job.status, targets[1].result.content, targets[2].status })
    end)

    it("refuses what is no span", function()
        for _, seconds in ipairs { "-1", "0/0", "'soon'", "nil" } do
            local loaded = (loadstring or load)("return " .. seconds)()
            local target = worker.outcome(function(_, ctx)
                return tostring((pcall(ctx.sleep, ctx, loaded)))
            end)
            assert.equal("false", target.result.content)
        end
    end)
end)
