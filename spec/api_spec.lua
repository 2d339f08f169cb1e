-- SPDX-License-Identifier: MIT
--
-- The HTTP API by the letter: each request, its answer, its status and code. No socket is opened.

local cjson = require "cjson"
local core = require "batch.core"
local client = require "spec.support.client"
local worker = require "spec.support.worker"

local UNKNOWN = "01234567-0123-7123-8123-0123456789ab"

local function echo(target)
    return { content = target.url, meta = { length = #target.url } }
end

-- Fetches wait until the file is there.
local function gated(target)
    local path = target.url:match "^gate:(.*)$"
    while path and not io.open(path) do
        require("batch.core").poll_fd(-1, 0.005)
    end
    return target.url
end

-- Every error is of one shape, and tells what may be done about it.
-- A gate that opens at the end of the test, and its runner closes.
local function shut_gate()
    local path = os.tmpname()
    os.remove(path)
    finally(function()
        io.open(path, "w"):close()
        worker.close_all()
        os.remove(path)
    end)
    return path
end

local function code_of(status, answer)
    if answer.error then
        local fault = answer.error
        assert(#fault.code > 0 and #fault.message > 0 and #fault.hint > 0)
        assert(next(answer, "error") == nil)
    end
    return status, answer.error and answer.error.code
end

after_each(worker.close_all)

describe("a submit over HTTP", function()
    it("is accepted with its address", function()
        local web = client.open { fetch = echo }
        local status, answer, response = web:submit("a", "b")
        assert.equal(202, status)
        assert.equal("/v1/batches/" .. answer.id, response.headers.location)
        assert.same({ false, 2, "queued" }, { answer.reused, answer.targets_total, answer.status })
        assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", answer.expires_at)
        assert.equal("alice", response.caller)
    end)

    it("that is known is 200 and the same job", function()
        local web = client.open { fetch = echo }
        local _, first = web:submit("a")
        local status, again, response = web:submit("a")
        assert.same({ 200, first.id, true }, { status, again.id, again.reused })
        assert.equal("/v1/batches/" .. first.id, response.headers.location)
    end)

    it("carries options, and the caller's class", function()
        local web = client.open { fetch = echo }
        local _, answer = web:send("POST /v1/batches",
            '{"targets":[{"url":"a","options":{"mode":"raw","x":[1,{"y":null}]}}]}')
        local job, targets = web.runner:status(answer.id)
        assert.same({ "alice", "user" }, { job.caller, job.class })
        assert.equal("raw", targets[1].options.mode)
    end)

    it("has an address below the prefix", function()
        local web = client.open({ fetch = echo }, "/api")
        local _, answer, response = web:submit("a")
        assert.equal("/api/v1/batches/" .. answer.id, response.headers.location)
    end)

    for name, body in pairs {
        ["broken"] = '{"targets":[', ["empty"] = "", ["with NaN"] = '{"targets":[NaN]}',
        ["with hexadecimal"] = '{"targets":[{"url":"a","options":{"n":0x10}}]}',
        ["with a number that overflows"] = '{"targets":[{"url":"a","options":{"n":1e999}}]}',
        ["not UTF-8"] = '{"targets":[{"url":"\255"}]}',
        ["with half a character"] = '{"targets":[{"url":"\\ud800"}]}',
        ["nested 10,000 deep"] = ("["):rep(10000) .. ("]"):rep(10000),
        ["with a key twice"] = '{"targets":[{"url":"a"}],"targets":[]}',
        ["followed by something"] = '{"targets":[{"url":"a"}]} {}',
    } do
        it(name .. " is bad_json", function()
            local web = client.open { fetch = echo }
            assert.same({ 400, "bad_json" }, { code_of(web:send("POST /v1/batches", body)) })
        end)
    end

    for name, body in pairs {
        ["that is a list"] = "[]", ["that is a number"] = "7", ["without targets"] = "{}",
        ["whose targets are text"] = '{"targets":"a"}', ["of null"] = '{"targets":null}',
        ["whose targets are an object"] = '{"targets":{"url":"a"}}',
        ["whose targets are an empty object"] = ' {"targets" : {} } ',
        ["with a mistyped field"] = '{"target":[{"url":"a"}]}',
    } do
        it(name .. " is bad_request", function()
            local web = client.open { fetch = echo }
            assert.same({ 400, "bad_request" }, { code_of(web:send("POST /v1/batches", body)) })
        end)
    end

    for name, body in pairs {
        ["of nothing"] = '{"targets":[]}', ["of a number"] = '{"targets":[7]}',
        ["without a URL"] = '{"targets":[{}]}',
        ["with a URL of null"] = '{"targets":[{"url":null}]}',
        ["with options of text"] = '{"targets":[{"url":"a","options":"x"}]}',
        ["with a mode of numbers"] = '{"targets":[{"url":"a","options":{"mode":1}}]}',
    } do
        it(name .. " is invalid", function()
            local web = client.open { fetch = echo }
            assert.same({ 422, "invalid" }, { code_of(web:send("POST /v1/batches", body)) })
        end)
    end

    it("that is too large, or of another type, or compressed, is refused", function()
        local web = client.open { fetch = echo }
        local body = cjson.encode { targets = { { url = ("x"):rep(65536) } } }
        assert.same({ 413, "too_large" }, { code_of(web:send("POST /v1/batches", body)) })
        local wrong = {
            { ["content-type"] = "text/plain" }, { ["content-type"] = false },
            { ["content-type"] = "application/jsonp" }, { ["content-encoding"] = "gzip" },
            { ["content-type"] = "application/json; charset=latin1" },
        }
        for _, headers in ipairs(wrong) do
            assert.same({ 415, "unsupported_media_type" },
                { code_of(web:send("POST /v1/batches", '{"targets":[{"url":"a"}]}', headers)) })
        end
        local fine = { ["content-type"] = 'Application/JSON; charset="UTF-8"' }
        assert.equal(202, (web:send("POST /v1/batches", '{"targets":[{"url":"a"}]}', fine)))
    end)

    it("that is refused for a cap tells what the cap is called and what to do", function()
        local web = client.open { fetch = echo, targets_per_job = 2 }
        local _, answer = web:submit("a", "b", "c")
        assert.same({
            code = "too_many_targets",
            hint = "a job has at most targets_per_job targets: submit several jobs",
            message = "too many targets",
        }, answer.error)
    end)

    it("meets the caps", function()
        local gate = shut_gate()
        local web = client.open { fetch = gated, targets_per_job = 2, jobs_total = 2 }
        assert.same({ 422, "too_many_targets" }, { code_of(web:submit("a", "b", "c")) })
        assert.equal(202, (web:submit("gate:" .. gate)))
        local status, answer, response = web:submit("other")
        assert.same({ 429, "caller_busy" }, { code_of(status, answer) })
        assert.matches("jobs_per_caller", answer.error.hint, 1, true)
        assert.matches("^%d+$", response.headers["retry-after"])
        web.caller = "bob"
        assert.equal(202, (web:submit("gate:" .. gate)))
        web.caller = "root"
        status, answer = web:submit "other"
        assert.same({ 429, "busy" }, { code_of(status, answer) })
        assert.matches("jobs_total", answer.error.hint, 1, true)
    end)
end)

describe("a job over HTTP", function()
    local function finished(fields, ...)
        fields.fetch = fields.fetch or echo
        local web = client.open(fields)
        local _, answer = web:submit(...)
        web.runner:wait(answer.id, 10)
        return web, answer.id
    end

    it("is read with its targets and results", function()
        local web, id = finished({}, "a", "bc")
        local status, page = web:send("GET /v1/batches/" .. id)
        assert.equal(200, status)
        assert.equal(cjson.null, page.next)
        local job, targets = page.job, page.targets
        assert.same({ id, "done", "alice", "user", 2, 2, 0 }, { job.id, job.status, job.caller,
            job.class, job.targets_total, job.targets_done, job.targets_failed })
        assert.same({ 1, "bc", "done", 1, {} }, { targets[2].idx, targets[2].url,
            targets[2].status, targets[2].attempts, targets[2].options })
        assert.same({ content = "bc", meta = { length = 2 } }, targets[2].result)
        local text = web:raw("GET /v1/batches/" .. id).body
        assert.matches('"finished_at":"20%d%d%-%d%d%-%d%dT[%d:]+%.%d%d%dZ"', text)
    end)

    it("is read by the page, and without results", function()
        local web, id = finished({}, "a", "b", "c")
        local _, page = web:send("GET /v1/batches/" .. id .. "?from=1&limit=1&results=false")
        assert.same({ 1, 1, 2 }, { #page.targets, page.targets[1].idx, page.next })
        assert.is_nil(page.targets[1].result)
        _, page = web:send("GET /v1/batches/" .. id .. "?from=2&limit=1")
        assert.equal(cjson.null, page.next)
        _, page = web:send("GET /v1/batches/" .. id .. "?limit=0")
        assert.same({ 0, 0 }, { #page.targets, page.next })
        _, page = web:send("GET /v1/batches/" .. id .. "?from=9")
        assert.same({ 0, cjson.null }, { #page.targets, page.next })
    end)

    it("tells content that is no UTF-8 as base64, and NUL as text", function()
        local web, id = finished({ fetch = function(target)
            return target.url == "a" and "\0\255" or "\0ü<&>"
        end }, "a", "b")
        local _, page = web:send("GET /v1/batches/" .. id)
        assert.same({ content = "AP8=", encoding = "base64", meta = {} }, page.targets[1].result)
        assert.same({ content = "\0ü<&>", meta = {} }, page.targets[2].result)
    end)

    it("tells errors with hints", function()
        local web, id = finished({ fetch = function() return nil, "no", "try yes" end }, "a")
        local _, page = web:send("GET /v1/batches/" .. id)
        assert.same({ "failed", "no", "try yes" }, { page.targets[1].status,
            page.targets[1].error, page.targets[1].hint })
        assert.equal("failed", page.job.status)
    end)

    it("of another caller is as unknown as one that never was", function()
        local web, id = finished({}, "a")
        web.caller = "bob"
        for _, line in ipairs { "GET /v1/batches/%s", "GET /v1/batches/%s/results",
            "GET /v1/batches/%s/events", "DELETE /v1/batches/%s" } do
            local theirs = web:raw(line:format(id))
            local nobodys = web:raw(line:format(UNKNOWN))
            assert.same({ 404, nobodys.body }, { theirs.status, theirs.body })
            assert.matches('"code":"not_found"', theirs.body, 1, true)
        end
        web.caller = "root"
        assert.equal(200, (web:send("GET /v1/batches/" .. id)))
    end)

    it("with an id that is none is unknown", function()
        local web = client.open { fetch = echo }
        local expected = web:raw("GET /v1/batches/" .. UNKNOWN).body
        for _, id in ipairs { "%2e%2e", "..", "a%00b", UNKNOWN .. "%00", ("x"):rep(10240), "%zz",
            UNKNOWN:upper(), "%c3%28", "1" } do
            local response = web:raw("GET /v1/batches/" .. id)
            assert.same({ 404, expected }, { response.status, response.body })
        end
    end)

    it("whose lease has lapsed is 410", function()
        local clock = core.clock(1e9)
        local web, id = finished({ ttl = 100, clock = clock }, "a")
        clock:advance(101)
        assert.same({ 410, "expired" }, { code_of(web:send("GET /v1/batches/" .. id)) })
        assert.same({ 410, "expired" }, { code_of(web:send("DELETE /v1/batches/" .. id)) })
    end)

    it("whose lease has lapsed while it waits can be cancelled", function()
        local gate = shut_gate()
        local clock = core.clock(1e9)
        local web = client.open { fetch = gated, ttl = 100, clock = clock }
        local _, answer = web:submit("gate:" .. gate)
        clock:advance(101)
        assert.same({ 410, "expired" }, { code_of(web:send("GET /v1/batches/" .. answer.id)) })
        assert.equal(200, (web:send("DELETE /v1/batches/" .. answer.id)))
        assert.same({ 410, "expired" }, { code_of(web:send("DELETE /v1/batches/" .. answer.id)) })
    end)

    for query in pairs { ["from=-1"] = 1, ["limit=1e9"] = 1, ["wait=-1"] = 1, ["from="] = 1,
        ["results=no"] = 1, ["wait=1.5"] = 1, ["from=0x1"] = 1, ["limit=%20"] = 1 } do
        it("asked for with " .. query .. " is bad_request", function()
            local web, id = finished({}, "a")
            local line = ("GET /v1/batches/%s?%s"):format(id, query)
            assert.same({ 400, "bad_request" }, { code_of(web:send(line)) })
        end)
    end

    it("is waited for until it changes", function()
        local gate = os.tmpname()
        os.remove(gate)
        finally(function() os.remove(gate) end)
        local web = client.open { fetch = gated }
        local _, answer = web:submit("gate:" .. gate)
        local _, page = web:send("GET /v1/batches/" .. answer.id .. "?wait=1")
        assert.equal("running", page.job.status)
        local began = os.time()
        os.execute(("(sleep 0.2; touch %s) &"):format(gate))
        _, page = web:send("GET /v1/batches/" .. answer.id .. "?wait=20")
        assert.same({ "done", 1 }, { page.job.status, page.job.targets_done })
        assert.is_true(os.time() - began < 10)
        _, page = web:send("GET /v1/batches/" .. answer.id .. "?wait=20")
        assert.equal("done", page.job.status)
        assert.is_true(os.time() - began < 10)
    end)

    it("is cancelled once", function()
        local gate = shut_gate()
        local web = client.open { fetch = gated }
        local _, answer = web:submit("gate:" .. gate)
        local status, cancelled = web:send("DELETE /v1/batches/" .. answer.id)
        assert.same({ 200, { id = answer.id, status = "cancelled" } }, { status, cancelled })
        assert.same({ 409, "already_finished" },
            { code_of(web:send("DELETE /v1/batches/" .. answer.id)) })
    end)

    it("that is done cannot be cancelled", function()
        local web, id = finished({}, "a")
        assert.same({ 409, "already_finished" }, { code_of(web:send("DELETE /v1/batches/" .. id)) })
    end)
end)

describe("the list of jobs over HTTP", function()
    it("has the caller's own, newest first, by the page", function()
        local web = client.open { fetch = echo, jobs_per_caller = 9 }
        local ids = {}
        for i = 1, 5 do
            local _, answer = web:submit("u" .. i)
            web.runner:wait(answer.id, 10)
            table.insert(ids, 1, answer.id)
        end
        web.caller = "bob"
        web:submit("theirs")
        web.caller = "alice"
        local found, path = {}, "GET /v1/batches?limit=2"
        local line = path
        repeat
            local status, page = web:send(line)
            assert.equal(200, status)
            for _, job in ipairs(page.jobs) do
                found[#found + 1] = job.id
            end
            line = page.next ~= cjson.null and path .. "&before=" .. page.next
        until not line
        assert.same(ids, found)
        local _, page = web:send("GET /v1/batches?limit=5")
        assert.equal(cjson.null, page.next)
        _, page = web:send("GET /v1/batches?status=failed")
        assert.same({ jobs = {}, next = cjson.null }, page)
        web.caller = "root"
        assert.equal(6, #select(2, web:send("GET /v1/batches")).jobs)
    end)

    it("refuses an unknown status, a limit and a place to go on that are none", function()
        local web = client.open { fetch = echo }
        for _, query in ipairs { "status=dead", "status=", "limit=-1", "limit=x", "before=",
            "before=7", "before=" .. UNKNOWN:upper(), "before=" .. UNKNOWN .. "0" } do
            assert.same({ 400, "bad_request" }, { code_of(web:send("GET /v1/batches?" .. query)) })
        end
    end)
end)

describe("the API", function()
    it("asks for a token, but not where operators look", function()
        local web = client.open { fetch = echo }
        for _, headers in ipairs { { authorization = false }, { authorization = "Bearer eve" } } do
            local status, answer, response = web:send("GET /v1/batches", nil, headers)
            assert.same({ 401, "unauthorized" }, { code_of(status, answer) })
            assert.equal("Bearer", response.headers["www-authenticate"])
            for _, path in ipairs { "/healthz", "/readyz", "/metrics", "/openapi.json" } do
                assert.equal(200, web:raw("GET " .. path, nil, headers).status)
            end
        end
    end)

    it("names the methods that are allowed", function()
        local web = client.open { fetch = echo }
        local status, answer, response = web:send("PUT /v1/batches")
        assert.same({ 405, "method_not_allowed" }, { code_of(status, answer) })
        assert.equal("GET, HEAD, POST", response.headers.allow)
        response = web:raw("POST /v1/batches/" .. UNKNOWN)
        assert.equal("GET, HEAD, DELETE", response.headers.allow)
        response = web:raw("POST /metrics")
        assert.equal("GET, HEAD", response.headers.allow)
    end)

    it("takes no word of its own for a method", function()
        local web = client.open { fetch = echo }
        for _, method in ipairs { "path", "allow", "get", "HEADS" } do
            for _, path in ipairs { "/v1/batches", "/healthz" } do
                local response = web.api:handle { method = method, path = path,
                    header = function() return "Bearer alice" end }
                assert.same({ 405, "method_not_allowed" }, { response.status, response.code })
            end
        end
    end)

    it("answers in UTF-8, whatever a module's check says", function()
        local web = client.open { fetch = { fetch = echo, check = function()
            return nil, "caf\233 \195"
        end } }
        local status, answer = web:send("POST /v1/batches", '{"targets":[{"url":"a"}]}')
        assert.same({ 422, "invalid" }, { code_of(status, answer) })
        assert.matches("caf\239\191\189 \239\191\189$", answer.error.message)
    end)

    it("answers HEAD with what GET has, for its length, and begins no stream", function()
        local web = client.open { fetch = echo }
        local _, answer = web:submit("a")
        web.runner:wait(answer.id, 10)
        for _, path in ipairs { "/v1/batches", "/healthz", "/v1/batches/x" } do
            local head, get = web:raw("HEAD " .. path), web:raw("GET " .. path)
            assert.same({ get.status, get.body }, { head.status, head.body })
        end
        for _, what in ipairs { "/results?follow=true", "/events" } do
            local response = web:raw("HEAD /v1/batches/" .. answer.id .. what)
            assert.same({ 200, {} }, { response.status, client.chunks(response) })
        end
    end)

    it("knows no other address", function()
        local web = client.open { fetch = echo }
        for _, path in ipairs { "/", "/v1", "/v1/batches/", "/v1/batches/x/y", "//v1/batches",
            "/v1/batches/" .. UNKNOWN .. "/", "/v1/batches/" .. UNKNOWN .. "/results/x" } do
            assert.same({ 404, "not_found" }, { code_of(web:send("GET " .. path)) })
        end
    end)

    it("says that it is disabled, or that its store cannot be opened", function()
        local web = client.open()
        for code, why in pairs { disabled = false, store = "no such file" } do
            web.api:detach(code, why or nil)
            for _, line in ipairs { "GET /v1/batches", "POST /v1/batches", "GET /readyz" } do
                local status, answer = web:send(line)
                assert.same({ 503, code }, { code_of(status, answer) })
                local is_told = line ~= "GET /readyz" and why ~= false
                assert.equal(is_told, answer.error.hint == why)
            end
            assert.equal(200, (web:send("GET /healthz")))
            assert.matches("batch_up 0\n", web:raw("GET /metrics").body, 1, true)
        end
    end)

    it("refuses submits while it closes, and still tells of jobs", function()
        local web = client.open { fetch = echo }
        local _, answer = web:submit("a")
        web.runner:wait(answer.id, 10)
        web.api:close()
        local status, refused = web:submit("b")
        assert.same({ 503, "closing" }, { code_of(status, refused) })
        assert.equal(200, (web:send("GET /v1/batches/" .. answer.id .. "?wait=10")))
        assert.same({ 503, "closing" }, { code_of(web:send("GET /readyz")) })
    end)

    it("lets nobody wait for a live job while it closes", function()
        local web = client.open { fetch = gated }
        local gate = shut_gate()
        local _, answer = web:submit("gate:" .. gate)
        web.api:close()
        local path = "GET /v1/batches/" .. answer.id
        assert.same({ 503, "closing" }, { code_of(web:send(path .. "?wait=10")) })
        assert.equal(200, (web:send(path)))
    end)

    it("describes itself: every route, every code", function()
        local web = client.open { fetch = echo }
        local status, description = web:send("GET /openapi.json")
        assert.equal(200, status)
        assert.matches("^3%.", description.openapi)
        local paths = {}
        for path in pairs(description.paths) do
            paths[#paths + 1] = path
        end
        table.sort(paths)
        assert.same({ "/healthz", "/metrics", "/openapi.json", "/readyz", "/v1/batches",
            "/v1/batches/{id}", "/v1/batches/{id}/events", "/v1/batches/{id}/results" }, paths)
        local submit = description.paths["/v1/batches"].post
        for _, number in ipairs { "200", "202", "400", "401", "413", "415", "422", "429", "503",
            "507" } do
            assert.is_table(submit.responses[number], number)
        end
        local events = description.paths["/v1/batches/{id}/events"].get
        local last = events.parameters[#events.parameters]
        assert.same({ "header", "Last-Event-ID" }, { last["in"], last.name })
    end)
end)
