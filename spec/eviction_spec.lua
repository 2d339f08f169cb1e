-- SPDX-License-Identifier: MIT
--
-- Eviction: results of finished jobs that no longer fit go, the oldest first; the gauge is exact;
-- the file does not outgrow the limit by much.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local lfs = require "lfs"

local KIB = ("x"):rep(1024)

local function finished(runner, caller, kib)
    local id = assert(runner:submit(caller, fresh.targets(1, caller)))
    local content = KIB:rep(kib)
    assert.equal(1, runner:drain(function() return content end))
    return id
end

local function is_there(runner, id)
    return runner:status(id) ~= nil
end

describe("eviction", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("takes nothing while all fits", function()
        local runner = fresh.runner { max_bytes = "100KiB" }
        local ids = {}
        for i = 1, 10 do
            ids[i] = finished(runner, "c" .. i, 10)
        end
        for _, id in ipairs(ids) do
            assert.is_true(is_there(runner, id))
        end
        assert.same({ 102400, 0 }, { runner:stats().store_bytes, runner:stats().evicted_jobs })
    end)

    it("takes the jobs that finished longest ago", function()
        local runner = fresh.runner { max_bytes = "100KiB" }
        local ids = {}
        for i = 1, 15 do
            ids[i] = finished(runner, "c" .. i, 10)
        end
        for i, id in ipairs(ids) do
            assert.same({ i, i > 5 }, { i, is_there(runner, id) })
        end
        assert.same({ 102400, 5 }, { runner:stats().store_bytes, runner:stats().evicted_jobs })
        assert.same({ nil, "unknown job", "not_found" }, { runner:status(ids[1]) })
        assert.is_true(fresh.store():check())
    end)

    it("keeps the newest finished job, even one that is larger than the limit", function()
        local runner = fresh.runner { max_bytes = "10KiB" }
        local small = finished(runner, "ann", 1)
        local large = finished(runner, "bob", 50)
        assert.is_false(is_there(runner, small))
        assert.is_true(is_there(runner, large))
        local next_one = finished(runner, "cid", 1)
        assert.is_false(is_there(runner, large))
        assert.is_true(is_there(runner, next_one))
        assert.equal(1024, runner:stats().store_bytes)
    end)

    it("never takes a live job, whose results count all the same", function()
        local runner = fresh.runner { max_bytes = "10KiB" }
        local old = finished(runner, "ann", 5)
        local newer = finished(runner, "bob", 1)
        local live = runner:submit("cid", fresh.targets(2))
        runner:finish(runner:take(), KIB:rep(50))
        eventually(function() return runner:status(live).targets_done == 1 end)
        assert.is_false(is_there(runner, old))
        assert.is_true(is_there(runner, newer))
        local job, targets = runner:status(live)
        assert.same({ "running", 50 * 1024 }, { job.status, #targets[1].result.content })
        assert.equal(51 * 1024, runner:stats().store_bytes)
    end)

    it("counts what other processes have stored", function()
        local limit = { max_bytes = "50KiB" }
        local one, other = fresh.runner(limit), fresh.runner(limit)
        for i = 1, 10 do
            finished(i % 2 == 0 and one or other, "c" .. i, 10)
        end
        eventually(function()
            finished(one, "more" .. core.now(), 1)
            return one:stats().store_bytes <= 50 * 1024
        end)
        assert.is_true(fresh.store():check())
    end)

    it("gives a file back its size in time", function()
        local runner = fresh.runner { max_bytes = "1MiB" }
        local path = fresh.path "batch.db"
        for i = 1, 30 do
            finished(runner, "c" .. i, 1024)
        end
        eventually(function() return lfs.attributes(path, "size") < 4 * 1024 * 1024 end, 20)
        assert.is_true(fresh.store():check())
    end)

    it("keeps a file near its limit while ten times as much passes through it", function()
        local runner = fresh.runner { max_bytes = "4MiB" }
        local path, most = fresh.path "batch.db", 0
        for i = 1, 400 do
            finished(runner, "c" .. i, 100)
            most = math.max(most, lfs.attributes(path, "size"))
        end
        assert.is_true(most < 16 * 1024 * 1024, "it had bytes: " .. most)
    end)
end)
