-- SPDX-License-Identifier: MIT
--
-- luabatch serve from the outside: each endpoint by curl, over every way there is to reach it.

local cjson = require "cjson"
local core = require "batch.core"
local fresh = require "spec.support.fresh"
local make_certificate = require "spec.support.certificate"
local process = require "spec.support.process"
local service = require "spec.support.service"

local UNKNOWN = "/v1/batches/01900000-0000-7000-8000-000000000000"

-- LuaJIT's unpack ends at 8,000 values, and lua-http has one for each byte of a header's field.
local LONG = rawget(_G, "jit") and 7680 or 10240

-- The ways to a server: its configuration, words for curl, the HTTP that is spoken.
local WAYS = {
    ["HTTP/1.1"] = function()
        return nil, "", "1.1"
    end,
    ["HTTP/2"] = function()
        return nil, "--http2-prior-knowledge", "2"
    end,
    ["HTTP/2 by TLS"] = function()
        local certificate, _, section = make_certificate()
        return section, "--cacert " .. certificate, "2"
    end,
    ["HTTP/1.1 by TLS"] = function()
        local certificate, _, section = make_certificate()
        return section, "--http1.1 --cacert " .. certificate, "1.1"
    end,
    ["a unix socket"] = function()
        return ('listen = "unix:%s"'):format(fresh.path "http.sock"), "", "1.1"
    end,
}

describe("a server", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    for name, way in pairs(WAYS) do
        it("takes, lists, shows, streams and cancels jobs over " .. name, function()
            local section, words, http = way()
            local server = service.start { server = section }
            local answer, id = server:submit({ "say:a", "fail:b", "say:c" }, words)
            assert.same({ 202, http }, { answer.status, answer.http })
            assert.equal("/v1/batches/" .. id, answer.headers.location)
            server:await_status(id, "partial", words)

            local again = server:submit({ "say:a", "fail:b", "say:c" }, words)
            assert.same({ 200, true, id },
                { again.status, again.json().reused, again.json().id })

            local page = server:curl("/v1/batches/" .. id .. "?from=1&limit=1", words).json()
            assert.same({ 1, 1, "b", 2 },
                { #page.targets, page.targets[1].idx, page.targets[1].error, page.next })

            local whole = server:curl("/v1/batches/" .. id, words)
            local head = server:curl("/v1/batches/" .. id, "--head " .. words)
            assert.same({ 200, ("%d"):format(#whole.body) },
                { head.status, head.headers["content-length"] })

            local _, other = server:submit({ "nap:30" }, words)
            local jobs = server:curl("/v1/batches?status=running&limit=5", words).json().jobs
            assert.same({ 1, other }, { #jobs, jobs[1].id })
            local cancelled = server:curl("/v1/batches/" .. other, "-X DELETE " .. words)
            assert.same({ 200, { id = other, status = "cancelled" } },
                { cancelled.status, cancelled.json() })
            assert.equal(409, server:curl("/v1/batches/" .. other, "-X DELETE " .. words).status)

            local lines = {}
            local results = server:curl("/v1/batches/" .. id .. "/results?from=1", words)
            for line in results.body:gmatch "[^\n]+" do
                lines[#lines + 1] = cjson.decode(line)
            end
            assert.same({ 1, 2, "c" }, { lines[1].idx, lines[2].idx, lines[2].result.content })

            local events = server:curl("/v1/batches/" .. id .. "/events", words)
            assert.equal("text/event-stream", events.headers["content-type"])
            local shape = events.body:gsub("data: [^\n]*", "data")
            assert.equal("retry: 1000\n\nid: 0\nevent: target\ndata\n\nid: 1\nevent: target\ndata"
                .. "\n\nid: 2\nevent: target\ndata\n\nevent: job\ndata\n\n", shape)

            assert.equal(404, server:curl(UNKNOWN, words).status)
            assert.equal(404, server:curl("/v1/batches/" .. ("x"):rep(LONG), words).status)
            server:signal "TERM"
            assert.equal(0, (server:wait()))
        end)
    end

    it("streams what there is, and what comes, to whoever follows", function()
        local server = service.start()
        local gate = fresh.path "gate"
        local _, id = server:submit { "say:first", "await:" .. gate, "say:last" }
        local follower = server:begin("/v1/batches/" .. id .. "/results?follow=true")
        local listener = server:begin("/v1/batches/" .. id .. "/events")
        assert.equal("first", cjson.decode(follower:line()).result.content)
        assert.equal("id: 0", listener:line_with "^id")
        os.execute("touch " .. gate)
        assert.equal(1, cjson.decode(follower:line()).idx)
        assert.equal(2, cjson.decode(follower:line()).idx)
        assert.is_nil(follower:line())
        assert.same({ 200, 0 }, { follower:finish().status, follower.exit or 0 })
        assert.equal("id: 1", listener:line_with "^id")
        assert.equal("id: 2", listener:line_with "^id")
        assert.equal("event: job", listener:line_with "^event: job")
        assert.equal(0, listener:finish().exit)
    end)

    it("resumes events behind the last one that a client has seen", function()
        local server = service.start()
        local _, id = server:submit { "say:a", "say:b", "say:c", "say:d" }
        server:await_status(id, "done")
        for last = 0, 3 do
            local ids = {}
            local body = server:curl("/v1/batches/" .. id .. "/events",
                "-H 'last-event-id: " .. last .. "'").body
            for idx in body:gmatch "id: (%d+)\n" do
                ids[#ids + 1] = tonumber(idx)
            end
            local expected = {}
            for idx = last + 1, 3 do
                expected[#expected + 1] = idx
            end
            assert.same(expected, ids)
            assert.matches("event: job\n", body)
        end
    end)

    it("answers a wait at the next change, and when the time is up", function()
        local server = service.start()
        local gate = fresh.path "gate"
        local _, id = server:submit { "await:" .. gate, "nap:20" }
        server:await_status(id, "running")
        local nothing = server:curl("/v1/batches/" .. id .. "?wait=1")
        assert.equal(0, nothing.json().job.targets_done)
        assert.is_true(nothing.seconds >= 1 and nothing.seconds < 10 * service.SLOWNESS,
            nothing.seconds)

        local waiting = server:begin("/v1/batches/" .. id .. "?wait=20")
        waiting:await_taken()
        local changed_at = core.now()
        os.execute("touch " .. gate)
        local answer = waiting:finish()
        assert.equal(1, answer.json().job.targets_done)
        local seconds = core.now() - changed_at
        assert.is_true(seconds < 5 * service.SLOWNESS, "woken after " .. seconds .. " s")

        waiting = server:begin("/v1/batches/" .. id .. "?wait=20")
        waiting:await_taken()
        changed_at = core.now()
        server:curl("/v1/batches/" .. id, "-X DELETE")
        assert.equal("cancelled", waiting:finish().json().job.status)
        seconds = core.now() - changed_at
        assert.is_true(seconds < 5 * service.SLOWNESS, "woken after " .. seconds .. " s")
    end)

    it("tells whoever waits what another process on the store does", function()
        local folder = process.folder()
        finally(function() folder:remove() end)
        local server = service.start { batch = ('store = "%s"'):format(folder.store) }
        folder:start [[
            local runner = assert(batch.new(settings { executor = "manual", fetch = print }))
            local function take()
                local task = runner:take()
                while not task do
                    core.poll_fd(-1, 0.001)
                    task = runner:take()
                end
                return task
            end
            note("ids", (assert(runner:submit("local", urls("elsewhere", 2)))))
            for i = 1, 2 do
                local task = take()
                while not io.open(folder .. "/go" .. i) do
                    core.poll_fd(-1, 0.001)
                end
                note("done", ("%.6f"):format(core.now()))
                runner:finish(task, "by another")
            end
            while not io.open(folder .. "/end") do
                core.poll_fd(-1, 0.01)
            end
            runner:close()
        ]]
        process.eventually(function() return folder:lines("ids")[1] end)
        local id = folder:lines("ids")[1]
        local function finish_next(i)
            os.execute(("touch %s/go%d"):format(folder.path, i))
        end
        local function since_done(i)
            return core.now() - process.eventually(function() return folder:lines("done")[i] end)
        end

        local listener = server:begin("/v1/batches/" .. id .. "/events")
        local waiting = server:begin("/v1/batches/" .. id .. "?wait=20")
        listener:line()
        waiting:await_taken()
        finish_next(1)
        assert.equal("id: 0", listener:line_with "^id")
        local seconds = since_done(1)
        assert.is_true(seconds < 5 * service.SLOWNESS, "an event came after " .. seconds .. " s")
        assert.equal(1, waiting:finish().json().job.targets_done)

        waiting = server:begin("/v1/batches/" .. id .. "?wait=20")
        waiting:await_taken()
        finish_next(2)
        assert.equal("done", waiting:finish().json().job.status)
        seconds = since_done(2)
        assert.is_true(seconds < 5 * service.SLOWNESS, "a wait ended after " .. seconds .. " s")
        assert.equal("event: job", listener:line_with "^event: job")
        listener:finish()
        os.execute("touch " .. folder.path .. "/end")
    end)

    it("serves a job that another process submits", function()
        local folder = process.folder()
        finally(function() folder:remove() end)
        local server = service.start { batch = ('store = "%s"'):format(folder.store) }
        folder:start [[
            local client = assert(batch.client(settings {}))
            note("ids", (assert(client:submit("local", { { url = "say:carried" } }))))
            client:close()
        ]]
        process.eventually(function() return folder:lines("ids")[1] end)
        local answer = server:await_status(folder:lines("ids")[1], "done")
        assert.equal("carried", answer.json().targets[1].result.content)
    end)
end)
