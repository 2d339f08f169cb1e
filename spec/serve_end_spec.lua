-- SPDX-License-Identifier: MIT
--
-- How a server ends: what signals do, what clients see of it, and the exit code.

local core = require "batch.core"
local fresh = require "spec.support.fresh"
local service = require "spec.support.service"

-- The process has ended before the grace, which is 30 s, has begun to matter.
local QUICKLY = 10 * service.SLOWNESS

-- A process that does not wait for its threads leaves them to the leak checks.
local UNWATCHED = [[LSAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="$TSAN_OPTIONS:report_thread_leaks=0"]]

describe("a server that is told to end", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    -- A server that works until the gate opens, whatever it is told; its job's id, and open.
    local function busy_server()
        local gate, server = fresh.path "gate", service.start()
        local _, id = server:submit { "hold:" .. gate, "say:never" }
        server:await_status(id, "running")
        return server, id, function() io.open(gate, "w"):close() end
    end

    local function ends(server, signal)
        server:signal(signal)
        return server:wait(20)
    end

    it("ends at once with 0 when nothing runs", function()
        for _, signal in ipairs { "TERM", "INT" } do
            local server = service.start()
            local code, seconds = ends(server, signal)
            assert.equal(0, code)
            assert.is_true(seconds < QUICKLY, seconds)
            assert.matches("reason=SIG" .. signal, server:line_with "shutting down")
        end
    end)

    it("ends with 0 when its fetches heed the word, and stores what they give", function()
        local server, holder, open = busy_server()
        local _, napper = server:submit { "nap:30" }
        server:await_status(napper, "running")
        server:signal "TERM"
        server:await_line "shutting down"
        open()
        local code, seconds = server:wait(20)
        assert.equal(0, code)
        assert.is_true(seconds < QUICKLY, seconds)
        local client = fresh.client()
        local job, targets = client:status(holder)
        assert.same({ 1, "held" }, { job.targets_done, targets[1].result.content })
        assert.equal(0, client:status(napper).targets_done)
    end)

    it("ends with 1 when a fetch outlives the grace", function()
        local server = service.start({ server = 'shutdown_grace = "1s"' }, UNWATCHED)
        local _, id = server:submit { "toil:20" }
        server:await_status(id, "running")
        local code, seconds = ends(server, "TERM")
        assert.equal(1, code)
        assert.is_true(seconds >= 0.9 and seconds < 1 + QUICKLY, seconds)
        assert.is_string(server:line_with "the grace ran out")
    end)

    it("ends at once with 1 at a second signal", function()
        local server = service.start(nil, UNWATCHED)
        local _, id = server:submit { "toil:20" }
        server:await_status(id, "running")
        server:signal "TERM"
        server:await_line "shutting down"
        core.poll_fd(-1, 0.1)
        local code, seconds = ends(server, "INT")
        assert.equal(1, code)
        assert.is_true(seconds < QUICKLY, seconds)
    end)

    it("takes a signal that comes to it and to its group for one, as timeout sends it", function()
        for _ = 1, 5 do
            local server = service.start(nil, "timeout --preserve-status 60")
            assert.equal(0, (ends(server, "TERM")))
            assert.is_nil(server:line_with "second signal")
        end
    end)

    it("ends waits and streams, and breaks off what would look complete", function()
        local server = service.start()
        local _, id = server:submit { "say:a", "nap:30" }
        server:await_status(id, "running")
        local waiting = server:begin("/v1/batches/" .. id .. "?wait=25")
        local listener = server:begin("/v1/batches/" .. id .. "/events")
        local listener_2 = server:begin("/v1/batches/" .. id .. "/events",
            "--http2-prior-knowledge")
        local follower = server:begin("/v1/batches/" .. id .. "/results?follow=true")
        for _, request in ipairs { listener, listener_2 } do
            assert.equal("id: 0", request:line_with "^id")
        end
        follower:line()
        waiting:await_taken()
        assert.equal(0, (ends(server, "TERM")))
        local answer = waiting:finish()
        assert.same({ 200, 1 }, { answer.status, answer.json().job.targets_done })
        assert.equal(0, listener:finish().exit)
        assert.equal(0, listener_2:finish().exit)
        local PARTIAL_FILE = 18
        assert.equal(PARTIAL_FILE, follower:finish().exit)
        assert.matches(' error="the server is shutting down" incomplete=true .*/results ',
            server:line_with "incomplete=true")
        assert.is_nil(server:line_with "level=error")
    end)

    it("refuses submits and answers reads as long as there is work to end", function()
        local server, id, open = busy_server()
        server:signal "TERM"
        server:await_line "shutting down"
        local refused = server:submit { "say:late" }
        assert.same({ 503, "closing" }, { refused.status, refused.json().error.code })
        assert.is_string(refused.headers["retry-after"])
        assert.equal(200, server:curl("/v1/batches/" .. id).status)
        assert.equal(200, server:curl("/healthz").status)
        local readiness = server:curl("/readyz")
        assert.same({ 503, "closing" }, { readiness.status, readiness.json().error.code })
        open()
        assert.equal(0, (server:wait(20)))
        assert.equal(1, fresh.client { on_restart = "resume" }:status(id).targets_done)
    end)

    it("waits for a store that another process has locked, and loses no outcome", function()
        local server, id, open = busy_server()
        local other = fresh.lock()
        server:signal "TERM"
        server:await_line "shutting down"
        open()
        core.poll_fd(-1, 1.5)
        assert.is_nil(server:exit_code())
        other:close()
        assert.equal(0, (server:wait(20)))
        local store = fresh.store()
        assert.is_true(store:check())
        assert.equal(1, fresh.client():status(id).targets_done)
    end)

    it("loses no submit that it has acknowledged, and answers all that have come", function()
        local server = service.start()
        local other = fresh.lock()
        local submits = {}
        for i = 1, 8 do
            submits[i] = server:begin("/v1/batches", service.body { "say:a#" .. i })
        end
        for _, submit in ipairs(submits) do
            submit:await_taken()
        end
        server:signal "TERM"
        core.poll_fd(-1, 0.5)
        other:close()
        local taken = {}
        for _, submit in ipairs(submits) do
            local answer = submit:finish()
            assert.is_true(answer.status == 202 or answer.status == 503, answer.status)
            taken[#taken + 1] = answer.status == 202 and answer.json().id or nil
        end
        assert.equal(0, (server:wait(20)))
        local client = fresh.client()
        assert.equal(#taken, #client:jobs())
        for _, id in ipairs(taken) do
            assert.is_table(client:status(id))
        end
    end)

    it("leaves a socket file behind for nobody", function()
        local path = fresh.path "http.sock"
        local server = service.start { server = ('listen = "unix:%s"'):format(path) }
        assert.is_true(os.execute("test -S " .. path) and true)
        assert.equal(0, (ends(server, "TERM")))
        assert.is_nil(io.open(path))
    end)
end)
