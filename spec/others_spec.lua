-- SPDX-License-Identifier: MIT
--
-- What a runner knows of the others on its store: their caps.

local fresh = require "spec.support.fresh"

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
