-- SPDX-License-Identifier: MIT
--
-- Upkeep of a store that others work on: a backup is one moment of it, whole; what is purged and
-- evicted goes back to the disk.

local batch = require "batch"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local lfs = require "lfs"
local process = require "spec.support.process"

-- Submits, fetches and cancels without end, and notes what was acknowledged.
local WRITES = [[
local name = "writer" .. core.monotime()
local runner = assert(batch.new(settings { on_restart = "resume", workers = 2,
    fetch = function(target) return target.url .. ("x"):rep(2000) end }))
for i = 1, math.huge do
    local id = assert(runner:submit(name .. i, urls("u", 4)))
    note("submitted", id)
    if i % 5 == 0 then
        runner:cancel(id)
    else
        assert(runner:wait(id, 20))
        note("ended", id)
    end
end
]]

describe("a backup while four processes write", function()
    local folder

    before_each(function()
        folder = process.folder()
        for _ = 1, 4 do
            folder:start(WRITES)
        end
    end)
    after_each(function() folder:remove() end)

    it("is sound, and holds all that was acknowledged before it began", function()
        local store = assert(batch.store.open(folder.store))
        for round = 1, 4 do
            eventually(function() return #folder:lines "ended" >= 30 * round end, 30)
            local submitted, ended = folder:lines "submitted", folder:lines "ended"
            local path = folder.path .. "/copy" .. round
            assert.is_true(store:backup(path))
            local copy = assert(batch.store.open(path))
            assert.is_true(copy:check())
            copy:close()
            local client = assert(batch.client { store = path })
            for _, id in ipairs(submitted) do
                assert.is_table((client:status(id, { results = false })), id)
            end
            for _, id in ipairs(ended) do
                assert.equal("done", client:status(id, { results = false }).status)
            end
            client:close()
        end
        assert.is_true(store:check())
        store:close()
    end)
end)

describe("space", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local function size()
        return lfs.attributes(fresh.path "batch.db", "size")
    end

    local function fill(config)
        local runner = fresh.runner(config)
        for i = 1, 100 do
            assert(runner:submit("c" .. i, fresh.targets(1)))
        end
        runner:drain(function() return ("x"):rep(100000) end)
        runner:close()
        fresh.sql "pragma wal_checkpoint(truncate)"
        assert.is_true(size() > 10e6)
    end

    -- The eighth of the file that may stay free for what comes next is of the rest.
    it("is given back by a purge of what has lapsed", function()
        fill { ttl = "1ms" }
        assert.equal(100, fresh.store():purge_expired(4e9))
        fresh.sql "pragma wal_checkpoint(truncate)"
        assert.is_true(size() < 200000, "it has bytes: " .. size())
        assert.is_true(fresh.store():check())
    end)

    it("is given back by an eviction, but for what stays", function()
        fill {}
        assert.equal(90, fresh.store():evict_oldest(1000000))
        fresh.sql "pragma wal_checkpoint(truncate)"
        assert.is_true(size() < 1400000, "it has bytes: " .. size())
        assert.is_true(fresh.store():check())
    end)
end)
