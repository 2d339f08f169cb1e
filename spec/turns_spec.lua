-- SPDX-License-Identifier: MIT
--
-- Whose turn it is: jobs on worker threads.

local eventually = require "spec.support.eventually"
local worker = require "spec.support.worker"

describe("a job", function()
    after_each(worker.close_all)

    it("takes turns with others: a1 b1 a2 b2 with one worker", function()
        local runner = worker.open {
            jobs_per_caller = 3,
            fetch = function(target, ctx)
                local order = rawget(_G, "order") or {}
                rawset(_G, "order", order)
                order[#order + 1] = target.url
                if target.options.gate then
                    ctx:sleep(target.options.gate)
                end
                return table.concat(order, " ")
            end,
        }
        assert(runner:submit("spec", { { url = "gate", options = { gate = 0.2 } } }))
        local a = assert(runner:submit("spec", { { url = "a1" }, { url = "a2" }, { url = "a3" } }))
        local b = assert(runner:submit("spec", { { url = "b1" }, { url = "b2" }, { url = "b3" } }))
        assert(runner:wait(a, 10))
        assert(runner:wait(b, 10))
        local _, targets = runner:status(b)
        assert.equal("gate a1 b1 a2 b2 a3 b3", targets[3].result.content)
    end)

    it("stays queued until it is reached, and runs from its first target on", function()
        local runner = worker.open {
            jobs_per_caller = 2,
            fetch = function(_, ctx)
                ctx:sleep(0.3)
                return "x"
            end,
        }
        local a = assert(runner:submit("spec", { { url = "a" } }))
        local b = assert(runner:submit("spec", { { url = "b" } }))
        eventually(function() return runner:stats().inflight_targets == 1 end)
        local running, queued = runner:status(a), runner:status(b)
        assert.same({ "running", "queued" }, { running.status, queued.status })
        assert.is_number(running.started_at)
        assert.is_nil(queued.started_at)
        assert.equal("done", runner:wait(b, 10).status)
    end)

    it("never has two targets in flight", function()
        local runner = worker.open {
            workers = 4,
            jobs_per_caller = 2,
            fetch = function(_, ctx)
                local path = "/tmp/" .. ctx.job .. ".lock"
                assert(not io.open(path), "two at once")
                io.open(path, "w"):close()
                ctx:sleep(0.002)
                os.remove(path)
                return "x"
            end,
        }
        local targets = {}
        for i = 1, 30 do
            targets[i] = { url = "u" .. i }
        end
        local a = assert(runner:submit("spec", targets))
        targets[31] = { url = "last" }
        local b = assert(runner:submit("spec", targets))
        assert.same({ "done", "done" },
            { runner:wait(a, 20).status, runner:wait(b, 20).status })
    end)
end)
