-- SPDX-License-Identifier: MIT
--
-- check() proves a store sound, and names what is wrong in one that was damaged behind its back.

local fresh = require "spec.support.fresh"
local sound = require "spec.support.sound"

-- What check says after the statement has damaged a sound store.
local function faults_after(statement)
    assert.equal("", fresh.sql(statement))
    local store = fresh.store()
    local faults = store:check()
    store:close()
    assert.is_table(faults)
    return table.concat(faults, "\n")
end

local ANN, inputs_of = sound.ANN, sound.inputs_of

-- name → { the statement, what the faults must say }
local DAMAGES = {
    ["a count of outcomes that is wrong"] =
        { "update job set targets_done = 1 where caller = 'ann'",
            "targets_done is 1, the rows say 3" },
    ["a count of failures that is wrong"] =
        { "update job set targets_failed = 2 where caller = 'ann'",
            "targets_failed is 2, the rows say 1" },
    ["a count of targets that is wrong"] =
        { "update job set targets_total = 4 where caller = 'ann'",
            "targets_total is 4, the rows say 3" },
    ["bytes that are no sum"] =
        { "update job set bytes = bytes + 1 where caller = 'ann'", "bytes is " },
    ["a result that has changed"] =
        { "update outcome set content = x'00' where idx = 0 and job = " .. ANN, "bytes is " },
    ["an outcome that is gone"] =
        { "delete from outcome where idx = 0 and job = " .. ANN, "targets_done is 3" },
    ["an outcome beyond targets_done"] =
        { "insert into outcome (job, idx, content, attempts, started_at, finished_at) "
            .. "select key, 1, x'00', 1, 1, 1 from job where caller = 'cid'",
            "targets_done is 1, the rows say 2" },
    ["an outcome out of order"] =
        { "update outcome set idx = 7 where idx = 2 and job = " .. ANN, "by the last idx" },
    ["a target that is gone"] =
        { "delete from input where key = " .. inputs_of("ann", 0),
            "targets_total is 3, the rows say 0" },
    ["inputs that are gone from the middle"] =
        { "delete from input where key = " .. inputs_of("eve", 1),
            "inputs from idx 1 on are missing" },
    ["the last inputs gone"] =
        { "delete from input where key = " .. inputs_of("eve", 2),
            "targets_total is 3, the rows say 2" },
    ["inputs that overlap"] =
        { "update input set packed = cast(packed || packed as blob) where key = "
            .. inputs_of("eve", 0), "inputs from idx 1 on are there twice" },
    ["inputs that moved to another place"] =
        { "update input set key = key + 7 where key = " .. inputs_of("eve", 2),
            "inputs from idx 2 on are missing" },
    ["inputs that are cut short"] =
        { "update input set packed = substr(packed, 1, length(packed) - 1) where key = "
            .. inputs_of("ann", 0), "inputs from idx 2 on cannot be read" },
    ["inputs of noise"] =
        { "update input set packed = x'ffffffffffffff' where key = " .. inputs_of("ann", 0),
            "inputs from idx 0 on cannot be read" },
    ["inputs without a byte"] =
        { "update input set packed = x'' where key = " .. inputs_of("ann", 0),
            "inputs from idx 0 on cannot be read" },
    ["inputs of no job"] =
        { "insert into input values (99 << 24, x'010061')", "rows belong to no job" },
    ["outcomes of no job"] = { "delete from job where caller = 'ann'", "rows belong to no job" },
    ["a status that the outcomes deny"] =
        { "update job set status = 'done' where caller = 'ann'",
            "status 'done' does not agree with 3 of 3 outcomes, 1 failed" },
    ["a status that nobody knows"] =
        { "update job set status = 'merry' where caller = 'ann'", "unknown status 'merry'" },
    ["a finished job without its moment"] =
        { "update job set finished_at = null where caller = 'bob'", "finished_at" },
    ["a live job with all of its outcomes"] =
        { "update job set status = 'running', finished_at = null where caller = 'ann'",
            "all outcomes are there" },
    ["a gauge of live jobs that is wrong"] =
        { "update gauge set live_jobs = 7", "the gauge counts 7 live jobs, the rows say 1" },
    ["a gauge of bytes that is wrong"] =
        { "update gauge set finished_bytes = 7", "the gauge counts 7 bytes of finished jobs" },
    ["an outcome with an idx below 0"] =
        { "update outcome set idx = -1 where idx = 0 and job = " .. ANN, "idx -1 is no target's" },
    ["an outcome beyond the targets"] =
        { "update outcome set idx = 3 where idx = 2 and job = " .. ANN,
            "idx 3 lies beyond targets_total" },
    ["an outcome that is both"] =
        { "update outcome set error = 'no' where idx = 0 and job = " .. ANN,
            "idx 0 has both content and an error" },
    ["an outcome that is nothing"] =
        { "update outcome set content = null where idx = 2 and job = " .. ANN,
            "idx 2 has neither content nor an error" },
    ["meta of a failure"] =
        { "update outcome set meta = '{}' where idx = 1 and job = " .. ANN,
            "idx 1 has both meta and an error" },
    ["a hint of a success"] =
        { "update outcome set hint = 'why' where idx = 0 and job = " .. ANN,
            "idx 0 has both content and a hint" },
    ["an outcome of no call"] =
        { "update outcome set attempts = 0 where idx = 0 and job = " .. ANN, "has 0 attempts" },
    ["outcomes in another order than their targets"] =
        { "update outcome set seq = 900 where idx = 0 and job = " .. ANN,
            "idx 1 was stored before that of the target before it" },
    ["a target that has changed"] =
        { "update input set packed = cast(replace(packed, 'u2', 'u9') as blob) where key = "
            .. inputs_of("ann", 0), "its targets are not those that were submitted" },
    ["a caller that has changed"] =
        { "update job set caller = 'eva' where caller = 'eve'",
            "its targets are not those that were submitted" },
    ["a done job with an error"] =
        { "update job set error = 'restart' where caller = 'ann'",
            "status 'partial' does not agree with an error" },
    ["a running job of nobody"] =
        { "update job set owner = null where caller = 'cid'; "
            .. "update job set status = 'running' where caller = 'cid'",
            "it is running without an owner" },
    ["a running job that has not begun"] =
        { "update job set status = 'running', owner = 1, started_at = null where caller = 'cid'",
            "it is running without started_at" },
    ["a live job of an unknown owner"] =
        { "update job set owner = 77 where caller = 'cid'", "its owner 77 is unknown" },
    ["calls below 0"] =
        { "update job set attempts = -1 where caller = 'cid'", "below 0" },
    ["an id that is none"] = { "update job set id = 'x' where caller = 'cid'", "that is no id" },
    ["a job among the dropped ones"] =
        { "insert into dropped select key from job where caller = 'ann'",
            "it is marked as dropped" },
    ["an index that is gone"] = { "drop index job_live", "the index job_live is missing" },
    ["a gauge that is gone"] = { "delete from gauge", "the gauge row is missing" },
}

describe("check", function()
    before_each(function()
        fresh.start()
        sound.fill()
    end)
    after_each(fresh.finish)

    it("says true of a sound store", function()
        assert.is_true(fresh.store():check())
    end)

    it("says true while another process has jobs at work", function()
        local runner = fresh.runner()
        runner:submit("dan", fresh.targets(1))
        local task = runner:take()
        assert.is_true(fresh.store():check())
        runner:finish(task, "x")
    end)

    for name, damage in pairs(DAMAGES) do
        it("finds " .. name, function()
            assert.matches(damage[2], faults_after(damage[1]), 1, true)
        end)
    end

    it("is not needed to learn that inputs are damaged: reading them says so", function()
        local id = fresh.sql "select id from job where caller = 'eve'"
        local function refusal()
            local client = fresh.client()
            local job, message, code = client:status(id)
            client:close()
            assert.same({ nil, "store" }, { job, code })
            return message
        end
        fresh.sql("update input set packed = x'ff' where key = " .. inputs_of("eve", 1))
        assert.matches("from idx 1 on are damaged", refusal(), 1, true)
        fresh.sql("delete from input where key = " .. inputs_of("eve", 1))
        assert.matches("has none with idx 1", refusal(), 1, true)
    end)

    it("finds an index that does not agree with its table", function()
        local faults = faults_after [[
            pragma writable_schema = on;
            create table spare (job, idx);
            create unique index spare_target on spare (job, idx);
            update sqlite_schema set rootpage =
                (select rootpage from sqlite_schema where name = 'spare_target')
            where name = 'outcome_target';
            delete from sqlite_schema where name = 'spare_target';
        ]]
        assert.matches("outcome_target", faults, 1, true)
    end)

    it("lists the faults of a file with broken pages, and the process lives", function()
        fresh.sql "pragma wal_checkpoint(truncate)"
        local path = fresh.path "batch.db"
        local root = tonumber(fresh.sql "select rootpage from sqlite_schema where name = 'outcome'")
        local file = assert(io.open(path, "r+b"))
        file:seek("set", (root - 1) * 4096)
        file:write(("\255\7"):rep(2048))
        file:close()
        local faults = fresh.store():check()
        assert.is_table(faults)
        assert.is_true(#faults > 0)
    end)
end)
