-- SPDX-License-Identifier: MIT
--
-- What those see who watch over a server, and what those see who should not: callers, log, metrics,
-- readiness.

local batch = require "batch"
local callers = require "spec.support.tokens"
local cjson = require "cjson"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local promtool = require "spec.support.promtool"
local service = require "spec.support.service"
local socket = require "cqueues.socket"

local bearer = callers.bearer
local UNKNOWN = "/v1/batches/01900000-0000-7000-8000-000000000000"

describe("callers of a server", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("see their own jobs alone, and cannot tell another's from an unknown one", function()
        local server = service.start { more = callers.section("ann", "bob") }
        local answer, id = server:submit({ "say:secret" }, bearer "ann")
        assert.equal(202, answer.status)
        server:await_status(id, "done", bearer "ann")
        local path = "/v1/batches/" .. id
        for _, request in ipairs {
            { "", "" }, { "?wait=1", "" }, { "/results", "" }, { "/events", "" },
            { "", "-X DELETE " },
        } do
            local others = server:curl(path .. request[1], request[2] .. bearer "bob")
            local unknown = server:curl(UNKNOWN .. request[1], request[2] .. bearer "bob")
            assert.same({ 404, unknown.body }, { others.status, others.body })
            assert.equal(unknown.headers["content-type"], others.headers["content-type"])
        end
        assert.same({}, server:curl("/v1/batches", bearer "bob").json().jobs)
        assert.equal(1, #server:curl("/v1/batches", bearer "ann").json().jobs)
        local _, other = server:submit({ "say:secret" }, bearer "bob")
        assert.are_not.equal(id, other)
    end)

    it("are asked for their token, but not by probes", function()
        local server = service.start { more = callers.section "ann" }
        for _, header in ipairs { "", bearer "bob", "-H 'authorization: Basic YTpi'" } do
            local answer = server:curl("/v1/batches", header)
            assert.same({ 401, "unauthorized" }, { answer.status, answer.json().error.code })
            assert.equal("Bearer", answer.headers["www-authenticate"])
        end
        for _, path in ipairs { "/healthz", "/readyz", "/metrics", "/openapi.json" } do
            assert.equal(200, server:curl(path).status, path)
        end
        assert.equal("3.", server:curl("/openapi.json").json().openapi:sub(1, 2))
    end)
end)

describe("a server without tokens", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    -- As a browser sends it whose page's own name has come to lead to 127.0.0.1.
    local REBOUND = "-H 'host: page.example:8080' "

    it("answers no page of another site in a browser, whatever name leads here", function()
        local server = service.start()
        for _, words in ipairs { "", "--http2-prior-knowledge " } do
            local answer, id = server:submit({ "say:a" }, REBOUND .. words)
            assert.same({ 401, "unauthorized" }, { answer.status, answer.json().error.code })
            assert.is_nil(id)
            assert.equal(401, server:curl("/v1/batches", REBOUND .. words).status)
        end
        local simple = "-d '{}' -H 'content-type: text/plain' -H 'origin: http://page.example'"
        assert.equal(415, server:curl("/v1/batches", simple).status)
        local preflight = server:curl("/v1/batches", "-X OPTIONS -H 'origin: http://page.example'")
        assert.equal(405, preflight.status)
        assert.is_nil(preflight.headers["access-control-allow-origin"])
        assert.same({}, server:curl("/v1/batches").json().jobs)
        assert.equal(200, server:curl("/healthz", REBOUND).status)
    end)

    it("on a unix socket does not mind what it is called", function()
        local server = service.start {
            server = 'listen = "unix:' .. fresh.path "batch.sock" .. '"' }
        assert.equal(200, server:curl("/v1/batches", REBOUND).status)
    end)
end)

describe("a server's log", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local function count(text, pattern)
        return select(2, text:gsub(pattern, ""))
    end

    it("has a line for each request, and no token in any", function()
        local server = service.start { more = callers.section "ann", log = 'level = "debug"' }
        local token = "token-of-ann"
        server:curl("/v1/batches", bearer "ann")
        server:curl("/v1/batches?token=" .. token, bearer "ann")
        server:curl("/v1/batches", bearer "ann" .. "x")
        server:curl("/v1/batches", bearer "ann" .. " --http2-prior-knowledge")
        server:curl("/v1/batches", "-H 'authorization: " .. token .. "'")
        server:curl("/v1/none", "-u ann:" .. token)
        server:curl "/healthz"
        server:await_line "path=/healthz"
        local log = server:log()
        assert.equal(7, count(log, 'message="request"'), log)
        assert.equal(3, count(log, "caller=ann"), log)
        assert.equal(2, count(log, "code=unauthorized"), log)
        assert.equal(0, count(log, token), log)
        assert.equal(1, count(log, "protocol=HTTP/2"), log)
    end)

    it("is JSON where that is wanted", function()
        local server = service.start { log = 'format = "json"' }
        server:curl "/healthz"
        local line = cjson.decode(server:await_line '"path":"/healthz"')
        assert.same({ "info", "request", 200, "GET" },
            { line.level, line.message, line.status, line.method })
        assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", line.time)
    end)

    it("may go to a reader that has ended", function()
        local script, pipe = fresh.path "deaf.sh", fresh.path "stderr.pipe"
        local file = assert(io.open(script, "w"))
        file:write(("mkfifo %s\nhead -n 1 <%s >&2 &\nexec \"$@\" 2>%s\n"):format(pipe, pipe, pipe))
        file:close()
        local server = service.start(nil, "sh " .. script)
        for _ = 1, 3 do
            assert.equal(200, server:curl("/healthz").status)
        end
        local _, id = server:submit { "say:a" }
        server:await_status(id, "done")
        server:signal "HUP"
        assert.equal(200, server:curl("/readyz").status)
        server:signal "TERM"
        assert.equal(0, (server:wait()))
    end)
end)

describe("a server's metrics", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("count what it has done, as promtool likes it", function()
        local server = service.start()
        local _, id = server:submit { "say:a", "fail:b" }
        server:await_status(id, "partial")
        local answer = server:curl "/metrics"
        assert.matches("^text/plain; version=0.0.4", answer.headers["content-type"])
        assert.matches('\nbatch_jobs_total{outcome="partial"} 1\n', answer.body, 1, true)
        assert.matches('\nbatch_targets_total{outcome="failed"} 1\n', answer.body, 1, true)
        assert.matches("\nbatch_up 1\n", answer.body, 1, true)
        assert.matches('\nbatch_build_info{version="' .. batch._VERSION:match "%S+$" .. '"} 1\n',
            answer.body, 1, true)
        if not promtool.is_here then
            return pending "needs promtool"
        end
        local output, is_content = promtool.run("check metrics", answer.body)
        assert.equal("", output)
        assert.is_true(is_content)
    end)
end)

describe("a server's manager", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("is told when it is ready, and when it ends", function()
        local path = fresh.path "notify.sock"
        local manager = socket.listen { path = path, type = socket.SOCK_DGRAM }
        manager:listen()
        fresh.keep(manager)
        local server = service.launch(nil, "NOTIFY_SOCKET=" .. path)
        local function receive()
            return eventually(function() return manager:recv(-100) end)
        end
        assert.equal("READY=1", receive())
        assert.is_string(server:line_with 'message="listening"')
        server:signal "TERM"
        assert.equal("STOPPING=1", receive())
        assert.equal(0, (server:wait()))
    end)

    it("gets over a manager that is not there", function()
        local server = service.start(nil, "NOTIFY_SOCKET=/no/such.sock")
        assert.is_string(server:await_line "cannot notify")
        assert.equal(200, server:curl("/readyz").status)
    end)
end)
