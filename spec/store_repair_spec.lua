-- SPDX-License-Identifier: MIT
--
-- repair() mends what the rows of a store still tell, says what it did, says what it could not do,
-- and leaves alone what a living process holds.

local batch = require "batch"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local sound = require "spec.support.sound"

local ANN, inputs_of = sound.ANN, sound.inputs_of

-- What the table job says of a caller's job, in one line.
local function row_of(caller)
    return fresh.sql(("select status, error, owner, targets_total, targets_done, targets_failed, "
        .. "bytes, finished_at is not null, started_at is not null "
        .. "from job where caller = '%s'"):format(caller))
end

-- Damages the sound store and mends it. Gives what was mended, and what is left, as texts.
local function repair_after(statement)
    assert.equal("", fresh.sql(statement))
    local store = fresh.store()
    assert.is_table(store:check())
    local mended, left = store:repair()
    assert.same(left, store:check())
    store:close()
    return table.concat(mended, "\n"), left == true and "" or table.concat(left, "\n")
end

-- name → { the statement, what was mended, whose job is as it was before }
local MENDED = {
    ["counters"] =
        { "update job set targets_done = 0, targets_failed = 2, bytes = 1 where caller = 'ann'",
            "targets_done is 3 now, targets_failed 1, bytes ", "ann" },
    ["counters of a job that goes on"] =
        { "update job set targets_done = 0 where caller = 'cid'", "targets_done is 1 now", "cid" },
    ["bytes after a result was lost in part"] =
        { "update outcome set content = x'00' where idx = 0 and job = " .. ANN, "bytes " },
    ["the number of targets"] =
        { "update job set targets_total = 2 where caller = 'ann'",
            "targets_total is 3 now", "ann" },
    ["a status that the outcomes deny"] =
        { "update job set status = 'done' where caller = 'ann'",
            "it is partial now, as all of its outcomes say", "ann" },
    ["a live job with all of its outcomes"] =
        { "update job set status = 'running', finished_at = null where caller = 'ann'",
            "it is partial now, as all of its outcomes say", "ann" },
    ["a status that nobody knows"] =
        { "update job set status = 'merry' where caller = 'bob'", "it is cancelled now", "bob" },
    ["a live job whose status nobody knows"] =
        { "update job set status = 'merry' where caller = 'cid'", "it is queued now" },
    ["a failed job whose status nobody knows"] =
        { "update job set status = 'merry', error = 'restart' where caller = 'bob'",
            "it is failed now" },
    ["a cancelled job without its moment"] =
        { "update job set finished_at = null where caller = 'bob'", "finished_at now", "bob" },
    ["a live job with a moment of its end"] =
        { "update job set finished_at = 1 where caller = 'cid'", "no finished_at any more", "cid" },
    ["an error of a job that ended without"] =
        { "update job set error = 'restart' where caller = 'ann'", "it is partial now", "ann" },
    ["an error of a cancelled job"] =
        { "update job set error = 'restart' where caller = 'bob'", "its error is gone", "bob" },
    ["an error of a live job"] =
        { "update job set error = 'restart' where caller = 'cid'", "its error is gone", "cid" },
    ["a failed job that looks live"] =
        { "update job set status = 'running', error = 'restart' where caller = 'bob'",
            "it is failed now, as its error says" },
    ["a job of an owner that is unknown"] =
        { "update job set owner = 77 where caller = 'cid'",
            "it is everybody's, for its owner is unknown" },
    ["a job that runs in nobody's hands"] =
        { "update job set owner = null, status = 'running' where caller = 'cid'",
            "it is queued now" },
    ["a job that runs and has not begun"] =
        { "update job set status = 'running', started_at = null where caller = 'cid'",
            "it has a started_at now" },
    ["calls below 0"] =
        { "update job set attempts = -1, deaths = -7 where caller = 'cid'", "not below 0", "cid" },
    ["an outcome with an idx below 0"] =
        { "insert into outcome (job, idx, error, attempts, started_at, finished_at) values ("
            .. ANN .. ", -1, 'x', 1, 1, 1)", "idx -1 is gone", "ann" },
    ["an outcome beyond the targets"] =
        { "insert into outcome (job, idx, error, attempts, started_at, finished_at) values ("
            .. ANN .. ", 3, 'x', 1, 1, 1)", "idx 3 is gone", "ann" },
    ["inputs of no job"] =
        { "insert into input values (99 << 24 | 5, x'010061')", "gone, from idx 5 on" },
    ["outcomes and inputs whose job is gone"] =
        { "delete from job where caller = 'ann'", "an outcome that belongs to no job is gone" },
    ["a job among the dropped ones"] =
        { "insert into dropped select key from job where caller = 'ann'",
            "not marked as dropped any more", "ann" },
    ["a gauge of live jobs"] = { "update gauge set live_jobs = 7", "counts 1 live jobs" },
    ["a gauge of bytes"] = { "update gauge set finished_bytes = 7", "bytes of finished jobs now" },
    ["a gauge that is gone"] = { "delete from gauge", "counts 1 live jobs" },
    ["an index that is gone"] = { "drop index job_live", "the index job_live is there again" },
    ["an index that does not agree with its table"] = { [[
            drop index job_finished;
            create index job_finished on job (finished_at) where finished_at = 1;
            pragma writable_schema = on;
            update sqlite_schema
            set sql = 'create index job_finished on job (finished_at) where finished_at is not null'
            where name = 'job_finished';
        ]], "the indexes are made anew" },
}

-- name → { the statement, what is left }
local LEFT = {
    ["an outcome that is gone from the middle"] =
        { "delete from outcome where idx = 1 and job = " .. ANN, "targets_done is 3" },
    ["the last outcome of a job that has ended"] =
        { "delete from outcome where idx = 2 and job = " .. ANN, "the rows say 2" },
    ["an outcome that is both"] =
        { "update outcome set error = 'no' where idx = 0 and job = " .. ANN, "has both content" },
    ["an outcome that is nothing"] =
        { "update outcome set content = null where idx = 2 and job = " .. ANN, "has neither" },
    ["outcomes in another order than their targets"] =
        { "update outcome set seq = 900 where idx = 0 and job = " .. ANN, "was stored before" },
    ["inputs that are gone"] =
        { "delete from input where key = " .. inputs_of("eve", 2), "targets_total is 3" },
    ["inputs that have changed"] =
        { "update input set packed = cast(replace(packed, 'u2', 'u9') as blob) where key = "
            .. inputs_of("ann", 0), "not those that were submitted" },
    ["a done job without its moment and its outcomes"] =
        { "update job set status = 'done', finished_at = null where caller = 'bob'",
            "does not agree with finished_at" },
}

describe("repair", function()
    before_each(function()
        fresh.start()
        sound.fill()
    end)
    after_each(fresh.finish)

    it("has nothing to do in a sound store", function()
        assert.same({ {}, true }, { fresh.store():repair() })
    end)

    for name, damage in pairs(MENDED) do
        it("mends " .. name, function()
            local before = damage[3] and row_of(damage[3])
            local mended, left = repair_after(damage[1])
            assert.matches(damage[2], mended, 1, true)
            assert.equal("", left)
            if before then
                assert.equal(before, row_of(damage[3]))
            end
        end)
    end

    for name, damage in pairs(LEFT) do
        it("makes nothing up for " .. name .. ", and says so", function()
            local rows = fresh.sql "select count(*) from outcome"
            local _, left = repair_after(damage[1])
            assert.matches(damage[2], left, 1, true)
            assert.is_true(tonumber(fresh.sql "select count(*) from outcome") >= rows - 1)
        end)
    end

    it("mends many faults at once, and what it mended works", function()
        fresh.sql("delete from gauge; drop index job_unowned; "
            .. "update job set targets_done = 0, owner = 77 where caller = 'cid'; "
            .. "update job set status = 'merry' where caller = 'ann'")
        local mended, left = fresh.store():repair()
        assert.is_true(left)
        assert.is_true(#mended >= 5)
        local runner = fresh.runner { on_restart = "resume" }
        local urls = {}
        runner:drain(function(target) urls[#urls + 1] = target.url return "x" end)
        assert.same({ "u2" }, urls)
    end)

    it("touches no page of a file that is broken", function()
        fresh.sql "pragma wal_checkpoint(truncate)"
        fresh.sql "update gauge set live_jobs = 9"
        fresh.sql "pragma wal_checkpoint(truncate)"
        local path = fresh.path "batch.db"
        local root = tonumber(fresh.sql "select rootpage from sqlite_schema where name = 'input'")
        local file = assert(io.open(path, "r+b"))
        file:seek("set", (root - 1) * 4096)
        file:write(("\255\7"):rep(2048))
        file:close()
        local mended, left = fresh.store():repair()
        assert.same({}, mended, left)
        assert.is_table(left)
        assert.equal("9", fresh.sql "select live_jobs from gauge")
    end)
end)

describe("repair beside a runner that lives", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("leaves the jobs alone that it has, and mends the others", function()
        sound.fill()
        local runner = fresh.runner { on_restart = "resume" }
        local id = runner:submit("zoe", fresh.targets(3))
        local task = runner:take()
        while task.job ~= id do
            runner:finish(task, "x")
            eventually(function() task = runner:take() return task ~= nil end)
        end
        fresh.sql("update job set targets_done = 2, bytes = 5 where caller = 'zoe'; "
            .. "update job set bytes = 5 where caller = 'ann'")
        local mended, left = fresh.store():repair()
        assert.matches("bytes", mended[1], 1, true)
        assert.is_nil(table.concat(mended):find(id, 1, true))
        assert.matches(id, table.concat(left), 1, true)
        assert.matches("2|5$", fresh.sql(
            "select targets_done, bytes from job where caller = 'zoe'"))
        fresh.sql "update job set targets_done = 0, bytes = 0 where caller = 'zoe'"
        runner:finish(task, "x")
        runner:drain(function() return "x" end)
        assert.equal("done", runner:status(id).status)
        assert.is_true(fresh.store():check())
    end)

    it("does not hold up its work, and the counts stay exact", function()
        local runner = fresh.keep(assert(batch.new {
            store = fresh.path "batch.db", workers = 2, durability = "normal",
            jobs_per_caller = 100, jobs_total = 100, targets_per_job = 1000,
            fetch = function(target) return target.url end,
        }))
        local ids = {}
        for i = 1, 20 do
            ids[i] = assert(runner:submit("c" .. i, fresh.targets(200)))
        end
        local store = fresh.store()
        for _ = 1, 10 do
            fresh.sql ".timeout 5000\nupdate gauge set finished_bytes = 1"
            local mended, left = store:repair()
            assert.same({ 1, true }, { #mended, left })
        end
        for _, id in ipairs(ids) do
            assert.equal("done", runner:wait(id, 20).status)
        end
        assert.is_true(store:check())
    end)
end)
