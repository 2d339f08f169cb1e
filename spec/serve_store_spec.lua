-- SPDX-License-Identifier: MIT
--
-- A server and its store: none, one that does not open, one that is locked, full, or left behind by
-- a killed process.

local core = require "batch.core"
local disk = require "spec.support.disk"
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

    it("ends at once all the same", function()
        local server = service.start { batch = 'store = "/no/such/folder/batch.db"' }
        server:signal "TERM"
        local code, seconds = server:wait()
        assert.equal(0, code)
        assert.is_true(seconds < 3, seconds)
    end)
end)

describe("a server that is started again after kill -9", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local function kill_and_start(config)
        local server = service.start(config)
        local ids = {}
        for i = 1, 4 do
            ids[i] = select(2, server:submit { "say:first#" .. i, "nap:1#" .. i, "say:last" })
        end
        server:await_status(ids[1], "running")
        eventually(function()
            return server:curl("/v1/batches/" .. ids[1]).json().job.targets_done == 1
        end)
        server:signal "KILL"
        assert.equal(137, (server:wait()))
        return service.start(config), ids
    end

    it("has every job that was acknowledged, failed by the restart", function()
        local server, ids = kill_and_start()
        for _, id in ipairs(ids) do
            local job = server:curl("/v1/batches/" .. id).json().job
            assert.same({ "failed", "restart", 3 }, { job.status, job.error, job.targets_total })
        end
        assert.equal("first", server:curl("/v1/batches/" .. ids[1]).json()
            .targets[1].result.content)
        local ended_by_restart = 'batch_jobs_total{outcome="restart"} 4'
        assert.matches("\n" .. ended_by_restart .. "\n", server:curl("/metrics").body, 1, true)
        server:await_status(select(2, server:submit { "say:anew" }), "done")
    end)

    it("goes on with them when it is told to resume", function()
        local server, ids = kill_and_start { batch = 'on_restart = "resume"' }
        for _, id in ipairs(ids) do
            local targets = server:await_status(id, "done").json().targets
            assert.same({ "first", "slept", "last" }, { targets[1].result.content,
                targets[2].result.content, targets[3].result.content })
        end
    end)
end)

describe("a server whose store another process has locked", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    -- Another process that holds the store's lock for so many seconds.
    local function lock(seconds)
        local said = fresh.path "said"
        local other = assert(io.popen(("sqlite3 '%s' >'%s'"):format(fresh.path "batch.db", said),
            "w"))
        other:write(".timeout 5000\nbegin immediate;\n.print locked\n.shell sleep " .. seconds
            .. "\nrollback;\n")
        other:flush()
        eventually(function()
            local file = io.open(said)
            return file and file:read "*a" ~= "" and file:close()
        end)
        return other
    end

    it("answers reads as fast as ever, and takes each submit once it can", function()
        local server = service.start()
        local _, id = server:submit { "say:a" }
        server:await_status(id, "done")
        local other = lock(2)
        local locked_at = core.now()
        local submits = {}
        for i = 1, 16 do
            submits[i] = server:begin("/v1/batches", service.body { "say:b#" .. i })
        end
        local slowest = 0
        repeat
            for _, path in ipairs { "/healthz", "/v1/batches/" .. id, "/v1/batches" } do
                local answer = server:curl(path)
                assert.equal(200, answer.status)
                slowest = math.max(slowest, answer.seconds)
            end
        until core.now() - locked_at > 1.5
        assert.is_true(slowest < 0.1, "an answer took " .. slowest .. " s")
        for _, submit in ipairs(submits) do
            local answer = submit:finish()
            assert.equal(202, answer.status)
            assert.is_true(answer.seconds > 1, "it waited for " .. answer.seconds .. " s only")
        end
        other:close()
        assert.equal(17, #server:curl("/v1/batches").json().jobs)
        if os.getenv "SHOW_FIGURES" then print("slowest", slowest) end
    end)
end)

describe("a server whose disk is full", function()
    local full

    before_each(function()
        fresh.start()
        full = disk.mount "4m"
    end)
    after_each(function()
        fresh.finish()
    end)

    it("refuses submits at once with 507, reads on, and takes them when there is room", function()
        if not full then
            return pending "only root may mount a disk"
        end
        local server = service.start { batch = ('store = "%s/batch.db"'):format(full.path) }
        finally(function()
            server:close()
            full:unmount()
        end)
        local _, id = server:submit { "say:a" }
        server:await_status(id, "done")
        full:fill()
        local answer
        -- What is left of the file's own pages may take a small job or two.
        for i = 1, 20 do
            local urls = {}
            for j = 1, 32 do
                urls[j] = "say:" .. ("b"):rep(500) .. "#" .. i .. "-" .. j
            end
            answer = server:submit(urls)
            if answer.status ~= 202 then
                break
            end
        end
        assert.same({ 507, "store_full" }, refusal(answer))
        assert.is_true(answer.seconds < 1, "it took " .. answer.seconds)
        if os.getenv "SHOW_FIGURES" then print("full", answer.seconds, answer.body) end
        assert.equal(200, server:curl("/v1/batches/" .. id).status)
        assert.equal(503, server:curl("/readyz").status)
        assert.matches("\nbatch_healthy 0\n", server:curl("/metrics").body, 1, true)
        full:free()
        answer, id = server:submit { "say:c" }
        assert.equal(202, answer.status)
        server:await_status(id, "done")
        eventually(function() return server:curl("/readyz").status == 200 end)
    end)
end)
