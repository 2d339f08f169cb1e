-- SPDX-License-Identifier: MIT
--
-- A server and its store: none at all, and one that does not open yet.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local service = require "spec.support.service"

local function exists(path)
    local file = io.open(path)
    return file and file:close() and true or false
end

-- Status and code of a refusal.
local function refusal(answer)
    return { answer.status, answer.json().error.code }
end

describe("a server whose batch is disabled", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("answers probes and makes no store", function()
        local server = service.start { batch = "disabled = true" }
        assert.same({ 503, "disabled" }, refusal(server:submit { "say:a" }))
        assert.same({ 503, "disabled" }, refusal(server:curl "/v1/batches"))
        assert.same({ 503, "disabled" }, refusal(server:curl "/readyz"))
        assert.equal(200, server:curl("/healthz").status)
        local metrics = server:curl "/metrics"
        assert.equal(200, metrics.status)
        assert.matches("\nbatch_up 0\n", metrics.body, 1, true)
        assert.is_false(exists(fresh.path "batch.db"))
        assert.is_false(exists(fresh.path "batch.db.owners"))
        server:signal "TERM"
        assert.equal(0, (server:wait()))
    end)
end)

describe("a server whose store does not open", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local function check_without(server)
        assert.is_string(server:line_with "the store cannot be opened")
        assert.matches("level=warn", server:line_with "the store cannot be opened")
        local answer = server:submit { "say:a" }
        assert.same({ 503, "store" }, refusal(answer))
        assert.is_string(answer.headers["retry-after"])
        assert.same({ 503, "store" }, refusal(server:curl "/v1/batches"))
        assert.same({ 503, "store" }, refusal(server:curl "/readyz"))
        assert.equal(200, server:curl("/healthz").status)
        assert.matches("\nbatch_up 0\n", server:curl("/metrics").body, 1, true)
    end

    local function check_recovered(server)
        eventually(function() return server:curl("/readyz").status == 200 end)
        local answer, id = server:submit { "say:a" }
        assert.equal(202, answer.status)
        server:await_status(id, "done")
        assert.is_string(server:line_with "the store is open")
    end

    it("serves without it, and with it once its folder is there", function()
        local folder = fresh.path "later"
        local server = service.start { batch = ('store = "%s/batch.db"'):format(folder) }
        check_without(server)
        os.execute("mkdir " .. folder)
        check_recovered(server)
    end)

    it("leaves a file alone that is no store, and takes one in its place", function()
        local path = fresh.path "batch.db"
        local text = ("a letter to aunt ann\n"):rep(200)
        local file = assert(io.open(path, "w"))
        file:write(text)
        file:close()
        local server = service.start()
        check_without(server)
        file = assert(io.open(path))
        assert.equal(text, file:read "*a")
        file:close()
        os.remove(path)
        check_recovered(server)
    end)

    it("answers while another process keeps the store locked, however long", function()
        fresh.client():close()
        local other = assert(io.popen(("sqlite3 '%s'"):format(fresh.path "batch.db"), "w"))
        other:write ".timeout 5000\nbegin immediate;\n"
        other:flush()
        local server = service.start()
        server:await_line "the store cannot be opened"
        local ends_at, spans = core.now() + 3, {}
        repeat
            spans[#spans + 1] = server:curl("/healthz").seconds
        until core.now() > ends_at
        service.check_quick(spans, 0.2, 2)
        assert.same({ 503, "store" }, refusal(server:curl "/v1/batches"))
        other:close()
        check_recovered(server)
    end)

    it("ends at once all the same", function()
        local server = service.start { batch = 'store = "/no/such/folder/batch.db"' }
        server:signal "TERM"
        local code, seconds = server:wait()
        assert.equal(0, code)
        assert.is_true(seconds < 10 * service.SLOWNESS, seconds)
    end)
end)
