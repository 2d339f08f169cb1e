-- SPDX-License-Identifier: MIT
--
-- Which known name a mistyped one is taken for.

local nearest = require("batch.nearest").nearest

local known = { "workers", "ttl", "retry_wait", "retry_for", "jobs_total" }

describe("the nearest name", function()
    for name, expected in pairs {
        worker = "workers",
        wrokers = "workers",
        WORKERS = "workers",
        tll = "ttl",
        retry_fro = "retry_for",
        retrywait = "retry_wait",
        job_totals = "jobs_total",
    } do
        it(("to %s is %s"):format(name, expected), function()
            assert.equal(expected, nearest(name, known))
        end)
    end

    it("is none where nothing is alike", function()
        assert.is_nil(nearest("clock", known))
        assert.is_nil(nearest("", known))
        assert.is_nil(nearest("ttl", {}))
        assert.is_nil(nearest(("w"):rep(100000), known))
    end)
end)
