-- SPDX-License-Identifier: MIT
--
-- Where a runner's log goes.

local core = require "batch.core"
local worker = require "spec.support.worker"

describe("the log", function()
    after_each(worker.close_all)

    it("goes to the function given, when poll is called", function()
        local runner, log = worker.open { fetch = function() error "boom" end }
        local id = runner:submit("spec", { { url = "a" }, { url = "b" } })
        runner:wait(id, 10)
        assert.equal(0, #log)
        assert.is_true(core.poll_fd(runner:fd(), 5))
        runner:poll()
        assert.equal(2, #log)
        assert.same({ "error", id, 1 }, { log[2].level, log[2].fields.job, log[2].fields.idx })
        assert.is_string(log[2].message)
    end)

    it("is one logfmt line on standard error otherwise, at once", function()
        local text = worker.program [[
            local batch = require "batch"
            local runner = batch.new {
                store = ":memory:",
                fetch = function() error "boom \"quoted\"\nsecond line" end,
            }
            runner:wait(runner:submit("spec", { { url = "a" } }), 10)
            runner:close()
        ]]
        local stamp = "time=%d+%-%d+%-%d+T%d+:%d+:%d+%.%d+Z"
        assert.matches("^" .. stamp .. ' level=error message="[^\n]+\n$', text)
        assert.matches(' job=%x+%-[%x-]+ idx=0 ', text)
        assert.matches([[boom \"quoted\"\nsecond line]], text, 1, true)
    end)

    it("has one line for a hook that raises, and for a log function that does", function()
        local text = worker.program [[
            local batch = require "batch"
            local runner = batch.new {
                store = ":memory:",
                executor = "manual",
                hooks = { job = function() error "hook\nboom" end },
            }
            runner:submit("spec", { { url = "a" } })
            runner:drain(function() return "x" end)
        ]]
        local start = "^time=%S+ level=error message="
        assert.matches(start .. '"hook job raised[^\n]+hook boom[^\n]*\n$', text)
        text = worker.program [[
            local batch = require "batch"
            local runner = batch.new {
                store = ":memory:",
                executor = "manual",
                log = function() error "log\nboom" end,
            }
            runner:submit("spec", { { url = "a" } })
            runner:drain(function() error "no" end)
        ]]
        assert.matches(start .. '"the log function[^\n]+log boom[^\n]*\n$', text)
    end)
end)
