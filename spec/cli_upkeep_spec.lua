-- SPDX-License-Identifier: MIT
--
-- `luabatch check`, `backup` and `purge` as an operator sees them, on stores that this process has
-- filled.

local batch = require "batch"
local cjson = require "cjson"
local shell = require "spec.support.shell"

local luabatch = shell.luabatch

-- Leaves a store with finished jobs of one target each.
local function fill_store(name, n_jobs, ttl)
    local runner = assert(batch.new {
        store = shell.path(name), executor = "manual", durability = "normal", ttl = ttl,
        jobs_per_caller = 100, jobs_total = 100,
    })
    for i = 1, n_jobs do
        assert(runner:submit("spec", { { url = "http://page/" .. i } }))
    end
    runner:drain(function() return ("x"):rep(1000) end)
    runner:close()
end

local function damage(name, statement)
    local client = assert(io.popen("sqlite3 " .. shell.quote(shell.path(name)), "w"))
    client:write(statement or "update job set targets_failed = 7", ";")
    client:close()
end

before_each(shell.start)
after_each(shell.finish)

describe("luabatch check", function()
    it("prints ok for a sound store", function()
        fill_store("luabatch.db", 3)
        assert.same({ 0, "ok\n", "" }, { luabatch "check" })
    end)

    it("looks where --store says", function()
        fill_store("other.db", 1)
        assert.same({ 0, "ok\n", "" }, { luabatch "check --store other.db" })
    end)

    it("prints each fault on a line and ends with 1", function()
        fill_store("luabatch.db", 2)
        damage "luabatch.db"
        local code, out, err = luabatch "check"
        assert.same({ 1, "" }, { code, err })
        assert.equal(4, select(2, out:gsub("[^\n]+\n", "")))
    end)

    it("answers machines in JSON", function()
        fill_store("luabatch.db", 1)
        local _, out = luabatch "check --json"
        assert.equal('{"faults":[],"ok":true}\n', out)
        damage "luabatch.db"
        local code
        code, out = luabatch "check --json"
        local answer = cjson.decode(out)
        assert.same({ 1, false, 2 }, { code, answer.ok, #answer.faults })
    end)
end)

describe("luabatch check --repair", function()
    it("says what it has mended, and ends with 0 when nothing is left", function()
        fill_store("luabatch.db", 2)
        damage "luabatch.db"
        local code, out, err = luabatch "check --repair"
        assert.same({ 0, "" }, { code, err })
        assert.match("^mended: job [%x-]+: targets_done is 1 now, targets_failed 0, bytes 1000\n"
            .. "mended: job [^\n]+\nok\n$", out)
        assert.same({ 0, "ok\n", "" }, { luabatch "check" })
        assert.same({ 0, "ok\n", "" }, { luabatch "check --repair" })
    end)

    it("prints what it cannot mend, and ends with 1", function()
        fill_store("luabatch.db", 1)
        damage("luabatch.db", "delete from outcome")
        local code, out, err = luabatch "check --repair"
        assert.same({ 1, "" }, { code, err })
        assert.match("targets_done is 1, the rows say 0\n", out, 1, true)
        local again
        code, again = luabatch "check"
        assert.same({ 1, out }, { code, again })
    end)

    it("answers machines in JSON", function()
        fill_store("luabatch.db", 1)
        damage "luabatch.db"
        local code, out = luabatch "check --repair --json"
        local answer = cjson.decode(out)
        assert.same({ 0, true, 1, 0 }, { code, answer.ok, #answer.mended, #answer.faults })
    end)
end)

describe("luabatch backup", function()
    it("copies a store while a runner has it open", function()
        local runner = assert(batch.new {
            store = shell.path("luabatch.db"), executor = "manual", durability = "normal",
        })
        local id = runner:submit("spec", { { url = "http://page/" } })
        local code, out, err = luabatch "backup copy.db"
        runner:close()
        assert.same({ 0, "" }, { code, err })
        assert.match("^copy.db: [%d.]+ KiB in [%d.]+ s\n$", out)
        local copy = assert(batch.client { store = shell.path("copy.db") })
        assert.equal("queued", copy:status(id).status)
        copy:close()
    end)

    it("tells machines the size and the seconds", function()
        fill_store("luabatch.db", 1)
        local _, out = luabatch "backup --json copy.db"
        local answer = cjson.decode(out)
        assert.same({ "copy.db", #shell.read("copy.db") }, { answer.path, answer.bytes })
        assert.is_true(answer.seconds >= 0)
    end)

    it("overwrites nothing", function()
        fill_store("luabatch.db", 1)
        shell.write("copy.db", "of last week")
        local code, out, err = luabatch "backup copy.db"
        assert.same({ 2, "" }, { code, out })
        assert.match("copy.db exists", err, 1, true)
        assert.equal("of last week", shell.read("copy.db"))
    end)

    it("leaves nothing where it cannot write", function()
        fill_store("luabatch.db", 1)
        local code, _, err = luabatch "backup nowhere/copy.db"
        assert.equal(3, code)
        assert.match("cannot back up to nowhere/copy.db: No such file", err, 1, true)
    end)
end)

describe("luabatch purge", function()
    it("drops the jobs whose lease has lapsed, and says how many", function()
        fill_store("luabatch.db", 3, "1ms")
        assert.same({ 0, "dropped 3 jobs\n", "" }, { luabatch "purge" })
        assert.same({ 0, "dropped 0 jobs\n", "" }, { luabatch "purge" })
    end)

    it("keeps the others", function()
        fill_store("luabatch.db", 3)
        assert.same({ 0, '{"dropped":0}\n', "" }, { luabatch "purge --json" })
    end)
end)

for _, command in ipairs { "check", "backup copy.db", "purge" } do
    describe("luabatch " .. command .. " without a store", function()
        it("ends with 3, says so, and makes none", function()
            local code, out, err = luabatch(command)
            assert.same({ 3, "" }, { code, out })
            assert.match("luabatch.db: No such file or directory (--store names another)", err, 1,
                true)
            assert.is_nil(shell.read("luabatch.db"))
            assert.is_nil(shell.read("copy.db"))
        end)

        it("does not take any file for one", function()
            shell.write("notes.txt", ("no store\n"):rep(1000))
            local code, out, err = luabatch(command .. " --store notes.txt")
            assert.same({ 3, "" }, { code, out })
            assert.match("notes.txt", err, 1, true)
        end)
    end)
end

it("an answer that cannot be written is an error", function()
    fill_store("luabatch.db", 1)
    local code, _, err = shell.run("luabatch check >/dev/full")
    assert.equal(3, code)
    assert.match("cannot write standard output: No space left", err, 1, true)
end)
