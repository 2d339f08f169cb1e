-- SPDX-License-Identifier: MIT
--
-- The store alone: its questions, its upkeep, its copies. What check finds stands in
-- store_check_spec, what cannot be opened in store_open_spec.

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local lfs = require "lfs"

-- Submits a job of one target per content and finishes it.
local function finished(runner, caller, contents)
    local id = assert(runner:submit(caller, fresh.targets(#contents, caller .. "-")))
    runner:drain(function(target)
        return contents[tonumber(target.url:match("%d+$"))]
    end)
    return id
end

describe("a store", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("is a file for its user alone", function()
        fresh.store()
        assert.equal("rw-------", lfs.attributes(fresh.path "batch.db", "permissions"))
        assert.equal("rw-------", lfs.attributes(fresh.path "batch.db.owners", "permissions"))
    end)

    it("knows a job by caller and key until its lease lapses", function()
        local clock = core.clock(1000)
        local runner, store = fresh.runner({ ttl = 60 }, clock), fresh.store()
        local targets = fresh.targets(2)
        local id = assert(runner:submit("ann", targets))
        local key = batch.idem_key("ann", targets)
        assert.equal(id, store:job_by_idem("ann", key, 1000))
        assert.equal(id, store:job_by_idem("ann", key, 1059.999))
        assert.is_nil(store:job_by_idem("ann", key, 1060))
        assert.is_nil(store:job_by_idem("bob", key, 1000))
        assert.is_nil(store:job_by_idem("ann", ("0"):rep(64), 1000))
        assert.is_nil(store:job_by_idem("ann", "no key", 1000))
    end)

    it("counts live jobs by caller and in all", function()
        local runner, store = fresh.runner(), fresh.store()
        assert.equal(0, store:live_jobs_total())
        local first = runner:submit("ann", fresh.targets(1))
        runner:submit("ann", fresh.targets(2))
        runner:submit("bob", fresh.targets(1))
        assert.same({ 2, 1, 0, 3 }, { store:live_jobs "ann", store:live_jobs "bob",
            store:live_jobs "nobody", store:live_jobs_total() })
        runner:cancel(first)
        assert.same({ 1, 2 }, { store:live_jobs "ann", store:live_jobs_total() })
    end)

    it("fails the jobs of dead processes and leaves those of living ones", function()
        local client, runner, store = fresh.client(), fresh.runner(), fresh.store()
        local alive = runner:submit("ann", fresh.targets(1))
        local other = fresh.runner()
        local dead = other:submit("bob", fresh.targets(2))
        other:finish(other:take(), "done")
        eventually(function() return client:status(dead).targets_done == 1 end)
        other:close()
        assert.equal(1, store:mark_in_flight_failed("restart", 1234.5))
        local job, targets = client:status(dead)
        assert.same({ "failed", "restart", 1234.5 }, { job.status, job.error, job.finished_at })
        assert.same({ "done", "pending" }, { targets[1].status, targets[2].status })
        assert.equal("queued", client:status(alive).status)
        assert.equal(0, store:mark_in_flight_failed("restart", 1235))
        assert.equal("invalid", select(3, store:mark_in_flight_failed("\255", 1236)))
    end)

    it("drops the jobs that finished longest ago until the rest fits", function()
        local clock = core.clock(1000)
        local runner, store = fresh.runner({}, clock), fresh.store()
        local ids = {}
        for i, caller in ipairs { "ann", "bob", "cid", "dan" } do
            clock:advance(1)
            ids[i] = finished(runner, caller, { ("x"):rep(100) })
        end
        local live = runner:submit("eve", fresh.targets(1))
        assert.equal(0, store:evict_oldest(400))
        assert.equal(0, store:evict_oldest(math.huge))
        assert.equal(2, store:evict_oldest(399 - 100))
        assert.same({ nil, "unknown job", "not_found" }, { runner:status(ids[1]) })
        assert.same({ nil, "unknown job", "not_found" }, { runner:status(ids[2]) })
        assert.equal("done", runner:status(ids[3]).status)
        assert.equal(200, runner:stats().store_bytes)
        assert.equal(1, store:evict_oldest(0))
        assert.equal(0, store:evict_oldest(-1))
        assert.equal("done", runner:status(ids[4]).status)
        assert.equal("queued", runner:status(live).status)
        assert.equal(100, runner:stats().store_bytes)
        assert.is_true(store:check())
    end)

    it("purges the finished jobs whose lease has lapsed, and no live one", function()
        local clock = core.clock(1000)
        local runner, store = fresh.runner({ ttl = 10 }, clock), fresh.store()
        local old = finished(runner, "ann", { "x" })
        clock:advance(5)
        local new = finished(runner, "bob", { "x", "y" })
        local live = runner:submit("cid", fresh.targets(1))
        assert.equal(0, store:purge_expired(1009.9))
        assert.equal(1, store:purge_expired(1010))
        assert.same({ nil, "unknown job", "not_found" }, { runner:status(old) })
        assert.equal("done", runner:status(new).status)
        assert.equal(1, store:purge_expired(math.huge))
        assert.equal("queued", runner:status(live).status)
        assert.equal(0, store:purge_expired(-math.huge))
        assert.is_true(store:check())
    end)

    it("gives the space of what it dropped back to the disk", function()
        local runner, store = fresh.runner { max_bytes = "1GiB" }, fresh.store()
        for i = 1, 8 do
            finished(runner, "ann" .. i, { ("x"):rep(500000), ("y"):rep(500000) })
        end
        fresh.sql "pragma wal_checkpoint(truncate)"
        assert.is_true(lfs.attributes(fresh.path "batch.db", "size") > 8e6)
        assert.equal(7, store:evict_oldest(0))
        fresh.sql "pragma wal_checkpoint(truncate)"
        assert.is_true(lfs.attributes(fresh.path "batch.db", "size") < 2e6)
    end)

    it("writes little when it drops much", function()
        local runner, store = fresh.runner { max_bytes = "1GiB" }, fresh.store()
        local content = ("x"):rep(2 ^ 20)
        local large = {}
        for i = 1, 20 do
            large[i] = content
        end
        finished(runner, "ann", large)
        finished(runner, "bob", { "x" })
        assert.equal(1, store:evict_oldest(0))
        assert.is_true(lfs.attributes(fresh.path "batch.db-wal", "size") < 10 * 2 ^ 20)
    end)

    it("says what is wrong with an argument to the programmer", function()
        local store = fresh.store()
        assert.has_error(function() store:job_by_idem() end)
        assert.has_error(function() store:live_jobs() end)
        assert.has_error(function() store:evict_oldest "many" end)
        assert.has_error(function() store:evict_oldest(0 / 0) end)
        assert.has_error(function() store:purge_expired() end)
        assert.has_error(function() store:mark_in_flight_failed() end)
        assert.has_error(function() store:backup() end)
        assert.has_error(function() store.check() end)
        assert.has_error(function() batch.store.open() end)
    end)

    it("may be closed twice, and does nothing then", function()
        local store = assert(batch.store.open(fresh.path "batch.db"))
        assert.is_true(store:close())
        assert.is_true(store:close())
        assert.has_error(function() store:check() end, "attempt to use a closed store")
        assert.has_error(function() batch.new { store = store, fetch = print } end,
            "attempt to use a closed store")
    end)

    it("is shared with the runners that are given it", function()
        for _, path in ipairs { ":memory:", fresh.path "shared.db" } do
            local store = fresh.store(path)
            local runner = fresh.runner { store = store }
            local client = fresh.client { store = store }
            local id = client:submit("ann", fresh.targets(1))
            assert.equal(1, store:live_jobs_total())
            assert.equal(1, runner:drain(function() return "seen" end))
            local _, targets = client:status(id)
            assert.equal("seen", targets[1].result.content)
            assert.is_true(store:check())
        end
    end)

    it("in memory is another one each time", function()
        local one, other = fresh.runner { store = ":memory:" }, fresh.runner { store = ":memory:" }
        local id = one:submit("ann", fresh.targets(1))
        assert.equal("queued", one:status(id).status)
        assert.is_nil(other:status(id))
    end)
end)

describe("a backup", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("holds what the store held, and is a store", function()
        for i, path in ipairs { ":memory:", fresh.path "batch.db" } do
            local store, copy = fresh.store(path), fresh.path("copy" .. i)
            local runner = fresh.runner { store = store }
            local id = finished(runner, "ann", { "one\0", "two" })
            assert.is_true(store:backup(copy))
            assert.equal("rw-------", lfs.attributes(copy, "permissions"))
            local opened = fresh.client { store = copy }
            assert.same({ runner:status(id) }, { opened:status(id) })
            assert.is_true(fresh.store(copy):check())
            assert.equal("wal", fresh.sql("pragma journal_mode", copy))
        end
    end)

    it("never overwrites a file", function()
        local store, path = fresh.store(), fresh.path "taken"
        assert(io.open(path, "w")):close()
        assert.same({ nil, "cannot back up to " .. path .. ": File exists", "store" },
            { store:backup(path) })
        assert.equal(0, lfs.attributes(path, "size"))
        assert.equal("store", select(3, store:backup(fresh.path "no/such/folder")))
    end)
end)
