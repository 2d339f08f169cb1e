-- SPDX-License-Identifier: MIT
--
-- A store that an older version has written is brought to the present shape when it is opened.

local batch = require "batch"
local fresh = require "spec.support.fresh"
local version_1 = require "spec.support.version_1"

local function id_of(key)
    return ("0190a1b2-c3d4-7e5f-8a6b-%012d"):format(key)
end

describe("a store of version 1", function()
    before_each(function()
        fresh.start()
        assert.equal("wal", fresh.sql(version_1))
    end)
    after_each(fresh.finish)

    it("is sound after it has been opened, and has the present version", function()
        assert.is_true(fresh.store():check())
        assert.equal("3", fresh.sql "pragma user_version")
        assert.equal("", fresh.sql "select name from sqlite_schema where name = 'target'")
        assert.equal("ok", fresh.sql "pragma integrity_check")
    end)

    it("keeps what has finished", function()
        local job, targets = fresh.client():status(id_of(1))
        assert.same({ "partial", 3, 1, 11 },
            { job.status, job.targets_done, job.targets_failed, job.bytes })
        assert.same({ "a0", "a1", "ä2" }, { targets[1].url, targets[2].url, targets[3].url })
        assert.same({ { mode = "text" }, {} }, { targets[2].options, targets[3].options })
        assert.same({ content = "on", meta = { t = 1 } }, targets[1].result)
        assert.same({ "no luck", "try again" }, { targets[2].error, targets[2].hint })
    end)

    it("goes on with its live jobs, where they stopped", function()
        local runner = fresh.runner { on_restart = "resume", targets_per_job = 5000 }
        local seen, lengths = {}, {}
        runner:drain(function(target)
            if target.url:find "^https:" then
                lengths[#lengths + 1] = #target.url
            else
                seen[#seen + 1] = target.url .. (target.options.grep or "")
            end
            return target.url
        end)
        table.sort(seen)
        assert.same({ "b0ß", "b1", "c1" }, seen)
        assert.same({ 5000, #"https://example.com/17" + 100000 }, { #lengths, lengths[18] })
        assert.equal("done", runner:status(id_of(2)).status)
        assert.equal("done", runner:status(id_of(3)).status)
        local _, targets = runner:status(id_of(5), { from = 4999 })
        assert.equal("https://example.com/4999", targets[1].result.content)
        runner:close()
        assert.is_true(fresh.store():check())
    end)

    it("clears what was on its way out", function()
        local store = fresh.store()
        store:purge_expired(1)
        assert.equal("0", fresh.sql "select count(*) from outcome where job = 4")
        assert.equal("0", fresh.sql "select count(*) from input where key >> 24 = 4")
        assert.is_true(store:check())
    end)

    it("stays as it is when it cannot be brought to the present shape", function()
        fresh.sql "insert into target values (3, 20000000, 'far', null)"
        local store, message, code = batch.store.open(fresh.path "batch.db")
        assert.same({ nil, "store" }, { store, code })
        assert.matches("cannot store the targets", message, 1, true)
        assert.equal("1\n5010", fresh.sql "pragma user_version; select count(*) from target")
    end)
end)
