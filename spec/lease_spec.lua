-- SPDX-License-Identifier: MIT
--
-- The lease of a job: what renews it, and what is left when it has lapsed.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

local EXPIRED = { nil, "expired", "expired" }

describe("the lease of a job", function()
    local clock, runner

    before_each(function()
        fresh.start()
        clock = core.clock(1000)
        runner = fresh.runner({ ttl = 100 }, clock)
    end)
    after_each(fresh.finish)

    local function finished()
        local id = assert(runner:submit("ann", fresh.targets(1)))
        runner:drain(function() return "x" end)
        return id
    end

    -- Looks from outside, because a look by the runner renews.
    local function expires_at(id)
        return tonumber(fresh.sql(
            ("select expires_at / 1e3 from job where id = '%s'"):format(id)))
    end

    it("begins with the submit and lasts for ttl", function()
        local id = runner:submit("ann", fresh.targets(1))
        assert.equal(1100, runner:status(id).expires_at)
    end)

    it("is renewed by each outcome", function()
        local id = runner:submit("ann", fresh.targets(2))
        clock:advance(50)
        runner:finish(runner:take(), "x")
        eventually(function() return expires_at(id) == 1150 end)
    end)

    it("is renewed by touch", function()
        local id = finished()
        clock:advance(99)
        assert.is_true(runner:touch(id))
        assert.equal(1199, expires_at(id))
        clock:advance(99)
        assert.equal("done", runner:status(id).status)
    end)

    it("is renewed by reading, once it would move by more than a hundredth of ttl", function()
        local id = finished()
        clock:advance(0.9)
        runner:status(id)
        runner:touch(runner:submit("bob", fresh.targets(1)))
        assert.equal(1100, expires_at(id))
        clock:advance(0.2)
        runner:status(id)
        eventually(function() return expires_at(id) == 1101.1 end)
        clock:advance(50)
        local n_results = 0
        for _ in runner:results(id) do
            n_results = n_results + 1
        end
        assert.equal(1, n_results)
        eventually(function() return expires_at(id) == 1151.1 end)
        clock:advance(10)
        runner:wait(id, 0)
        eventually(function() return expires_at(id) == 1161.1 end)
    end)

    it("is renewed by a client that reads", function()
        local other = fresh.runner({ ttl = "1h" })
        local id = other:submit("ann", fresh.targets(1))
        local before = expires_at(id)
        local client = fresh.client { ttl = "2h" }
        client:status(id)
        eventually(function() return expires_at(id) > before + 3000 end)
    end)

    it("once lapsed, leaves nothing to read or to renew", function()
        local id = finished()
        clock:advance(100)
        assert.same(EXPIRED, { runner:status(id) })
        assert.same(EXPIRED, { runner:results(id) })
        assert.same(EXPIRED, { runner:wait(id, 1) })
        assert.is_false(runner:touch(id))
        assert.is_false(runner:cancel(id))
        assert.same(EXPIRED, { runner:status(id) })
    end)

    it("of a live job may lapse, and the job runs on", function()
        local id = runner:submit("ann", fresh.targets(2))
        clock:advance(150)
        assert.same(EXPIRED, { runner:status(id) })
        assert.equal(0, fresh.store():purge_expired(2000))
        assert.equal(2, runner:drain(function() return "x" end))
        assert.equal("done", runner:status(id).status)
    end)

    it("once lapsed for long, takes the job with it", function()
        local id = finished()
        clock:advance(3600)
        eventually(function() return select(3, runner:status(id)) == "not_found" end)
        eventually(function() return fresh.sql "select count(*) from outcome" == "0" end)
        assert.equal(0, runner:stats().store_bytes)
        assert.is_true(fresh.store():check())
    end)

    it("of a second lapses in a second", function()
        local quick = fresh.runner { ttl = "1s" }
        local id = quick:submit("ann", fresh.targets(1))
        quick:drain(function() return "x" end)
        assert.equal("done", quick:status(id).status)
        local lapses_at = expires_at(id)
        eventually(function() return core.now() > lapses_at end)
        assert.same(EXPIRED, { quick:status(id) })
    end)
end)
