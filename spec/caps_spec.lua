-- SPDX-License-Identifier: MIT
--
-- The caps as a pure decision. What they do to submits stands in submit_spec.

local batch = require "batch"

local LIMITS = { targets_per_job = 32, jobs_per_caller = 2, jobs_total = 8 }

local function decided(targets, caller_jobs, total_jobs, limits)
    local load = { targets = targets, caller_jobs = caller_jobs, total_jobs = total_jobs }
    return { batch.caps(limits or LIMITS, load) }
end

local TOO_MANY = { nil, "too many targets", "too_many_targets" }
local CALLER_BUSY = { nil, "busy", "caller_busy" }
local BUSY = { nil, "jobs busy", "busy" }

describe("batch.caps", function()
    it("admits what just fits", function()
        assert.same({ true }, decided(32, 1, 7))
        assert.same({ true }, decided(1, 0, 0))
    end)

    it("refuses one target too many", function()
        assert.same(TOO_MANY, decided(33, 0, 0))
    end)

    it("refuses a caller that has its share of live jobs", function()
        assert.same(CALLER_BUSY, decided(32, 2, 7))
        assert.same(CALLER_BUSY, decided(32, 3, 7))
    end)

    it("refuses everybody when there are enough live jobs in all", function()
        assert.same(BUSY, decided(32, 1, 8))
        assert.same(BUSY, decided(32, 0, 9))
    end)

    it("tells the first of several reasons", function()
        assert.same(TOO_MANY, decided(33, 2, 8))
        assert.same(CALLER_BUSY, decided(32, 2, 8))
    end)

    it("may be without limits", function()
        local none = {
            targets_per_job = math.huge, jobs_per_caller = math.huge, jobs_total = math.huge,
        }
        assert.same({ true }, decided(10 ^ 12, 10 ^ 12, 10 ^ 12, none))
    end)

    it("tells the programmer what is missing", function()
        assert.error_matches(function() batch.caps(LIMITS, {}) end,
            "targets must be a number, got nil")
        assert.error_matches(function() decided(1, 0, 0, {}) end,
            "targets_per_job must be a number, got nil")
        assert.error_matches(function() decided(0 / 0, 0, 0) end,
            "targets must be a number, got nan")
        assert.has_error(function() batch.caps(LIMITS) end)
        assert.has_error(function() batch.caps() end)
    end)
end)
