-- SPDX-License-Identifier: MIT
--
-- The HTTP API as nginx serves it below a prefix: every endpoint, streams, large bodies, clients
-- that go away, and very many that wait.

local cjson = require "cjson"
local core = require "batch.core"
local cqueues = require "cqueues"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local nginx = require "spec.support.nginx"
local openresty = require "spec.support.openresty"
local web = require "spec.support.web"

local as, body = openresty.as, openresty.body
local SLOWNESS = nginx.SLOWNESS
local JOBS = "/api/v1/batches"

-- A start is a change, which answers a wait. The worker that has the job shows it before it is
-- stored, and the others see it then: so the store is asked.
local function await_start(id)
    local client = fresh.client()
    eventually(function() return client:status(id).status == "running" end)
end

describe("nginx", function()
    local server

    before_each(fresh.start)
    after_each(fresh.finish)

    local function submit(urls, headers)
        local answer = assert(server:request("POST", JOBS, body(urls), headers or as "ann"))
        return answer, answer.body:match '"id":"([^"]+)"'
    end

    local function get(path, caller)
        return server:get("/api" .. path, as(caller or "ann"))
    end

    local function await_end(id)
        return eventually(function()
            local answer = get("/v1/batches/" .. id .. "?wait=10")
            return answer:json().job.finished_at and answer
        end, 20)
    end

    it("takes, lists, shows, streams and cancels jobs below its prefix", function()
        server = openresty.start()
        local answer, id = submit({ "say:a", "fail:b", "say:c" },
            as("ann", { ["x-class"] = "gold" }))
        assert.same({ 202, "/api/v1/batches/" .. id }, { answer.status, answer.headers.location })
        local page = await_end(id):json()
        assert.same({ "partial", "ann", "gold" },
            { page.job.status, page.job.caller, page.job.class })
        assert.same({ "a", "b", "c" }, { page.targets[1].result.content, page.targets[2].error,
            page.targets[3].result.content })
        local again = submit { "say:a", "fail:b", "say:c" }
        assert.same({ 200, true, id }, { again.status, again:json().reused, again:json().id })
        assert.same(id, get("/v1/batches?status=partial"):json().jobs[1].id)

        local results = get("/v1/batches/" .. id .. "/results?from=1")
        assert.same("application/jsonl", results.headers["content-type"])
        assert.same({ 1, 2 }, { cjson.decode(results.body:match "^[^\n]+").idx,
            cjson.decode(results.body:match "([^\n]+)\n$").idx })
        local events = get("/v1/batches/" .. id .. "/events").body:gsub("data: [^\n]*", "data")
        assert.same("retry: 1000\n\nid: 0\nevent: target\ndata\n\nid: 1\nevent: target\ndata"
            .. "\n\nid: 2\nevent: target\ndata\n\nevent: job\ndata\n\n", events)

        local _, other = submit { "doze:30" }
        local cancelled = server:request("DELETE", JOBS .. "/" .. other, nil, as "ann")
        assert.same({ 200, "cancelled" }, { cancelled.status, cancelled:json().status })
        local twice = server:request("DELETE", JOBS .. "/" .. other, nil, as "ann")
        assert.same({ 409, "already_finished" }, { twice.status, twice:json().error.code })
        assert.same({}, server:complaints())
    end)

    it("answers probes and tells its figures and its description", function()
        server = openresty.start()
        assert.same({ 200, 200 }, { get("/healthz").status, get("/readyz").status })
        assert.matches("\nbatch_live_jobs 0\n", get("/metrics").body)
        assert.matches("\nbatch_live_jobs 0\n", server:get("/metrics").body)
        local description = get("/openapi.json"):json()
        assert.truthy(description.paths["/api/v1/batches"] or description.servers)
    end)

    it("lets nobody in whom caller does not name, and shows nobody another's jobs", function()
        server = openresty.start()
        local strangers = server:request("POST", JOBS, body { "say:a" },
            { ["content-type"] = "application/json" })
        assert.same({ 401, "Bearer", "unauthorized" }, { strangers.status,
            strangers.headers["www-authenticate"], strangers:json().error.code })
        local _, id = submit { "say:a" }
        local hidden, unknown = get("/v1/batches/" .. id, "bob"),
            get("/v1/batches/01900000-0000-7000-8000-000000000000", "bob")
        assert.same({ 404, unknown.body }, { hidden.status, hidden.body })
        assert.same({}, get("/v1/batches", "bob"):json().jobs)
    end)

    it("takes false for nobody, as nil, and says what else a caller may not be", function()
        server = openresty.start { locations = [[
            location /odd/ { content_by_lua_block {
                require("batch.openresty").serve { prefix = "/odd", caller = function()
                    return loadstring("return " .. ngx.unescape_uri(ngx.var.http_x_caller))()
                end }
            } }
        ]] }
        submit { "say:a" }
        for _, nobody in ipairs { "false", "nil", "nil, 'gold'" } do
            local answer = server:request("GET", "/odd/v1/batches", nil, as(nobody))
            assert.same({ 401, "who are you?" }, { answer.status, answer:json().error.message })
        end
        assert.same(200, server:request("GET", "/odd/v1/batches", nil, as "7").status)
        local broken = server:request("GET", "/odd/v1/batches", nil, as "{}")
        assert.same({ 500, "internal" }, { broken.status, broken:json().error.code })
        assert.truthy(server:line_with "caller must return a name, or nil for nobody, got a table")
    end)

    it("refuses options that it does not know, and those of a wrong type", function()
        local function location(name, options)
            return ([[location /%s/ { content_by_lua_block {
                require("batch.openresty").serve(%s) } }]]):format(name, options)
        end
        server = openresty.start { locations = location("typo", '{ prefx = "/typo" }')
            .. location("text", '{ prefix = "/text", max_body = "1MiB" }')
            .. location("list", '"/list"') }
        for path, line in pairs {
            typo = "serve: unknown option 'prefx': did you mean 'prefix'?",
            text = "serve: max_body must be a number, got string",
            list = "serve: options must be a table, got string",
        } do
            assert.equal(500, server:get("/" .. path .. "/v1/batches").status)
            assert.truthy(server:line_with(line), line)
        end
    end)

    it("lets whom nobody names in from this machine, but no page of a browser", function()
        server = openresty.start { locations = [[location /here/ {
            content_by_lua_block { require("batch.openresty").serve { prefix = "/here" } } }]] }
        local path = "/here/v1/batches"
        assert.equal(200, server:get(path).status)
        local rebound = server:request("GET", path, nil, { host = "page.example" })
        assert.same({ 401, "unauthorized" }, { rebound.status, rebound:json().error.code })
    end)

    it("answers HEAD as GET, without the text", function()
        server = openresty.start()
        local _, id = submit { "say:a" }
        local whole = await_end(id)
        local head = server:request("HEAD", JOBS .. "/" .. id, nil, as "ann")
        assert.same({ 200, tostring(#get("/v1/batches/" .. id).body), "" },
            { head.status, head.headers["content-length"], head.body })
        assert.truthy(whole)
        local stream = server:request("HEAD", JOBS .. "/" .. id .. "/results", nil, as "ann")
        assert.same({ 200, "" }, { stream.status, stream.body })
    end)

    it("refuses what is wrong as the stand-alone server does", function()
        server = openresty.start { batch = { targets_per_job = 3, jobs_per_caller = 1 } }
        local function refusal(text, headers)
            local answer = server:request("POST", JOBS, text, headers or as "ann")
            return answer.status .. " " .. answer:json().error.code
        end
        assert.same("400 bad_json", refusal "{")
        assert.same("400 bad_request", refusal "[]")
        assert.same("422 invalid", refusal '{"targets": []}')
        assert.same("422 too_many_targets", refusal(body { "a:", "b:", "c:", "d:" }))
        assert.same("415 unsupported_media_type",
            refusal(body { "say:a" }, as("ann", { ["content-type"] = "text/plain" })))
        submit { "nap:20" }
        assert.same("429 caller_busy", refusal(body { "say:a" }))
        local method = server:request("PUT", JOBS, "x", as "ann")
        assert.same({ 405, "GET, HEAD, POST" }, { method.status, method.headers.allow })
        assert.same(404, get("/v2").status)
        assert.same(400, get("/v1/batches?limit=many").status)
    end)

    it("reads a body that nginx has put into a file, and refuses one that is too large", function()
        server = openresty.start()
        local urls = {}
        for i = 1, 300 do
            urls[i] = "say:" .. ("x"):rep(1000) .. "#" .. i
        end
        local answer, id = submit(urls)
        assert.same({ 202, 300 }, { answer.status, answer:json().targets_total })
        assert.truthy(server:line_with "a client request body is buffered to a temporary file")
        assert.same(300, await_end(id):json().job.targets_done)
        for i = 1, 1200 do
            urls[i] = "say:" .. ("x"):rep(1000) .. "#" .. i
        end
        answer = submit(urls)
        assert.same({ 413, "too_large" }, { answer.status, answer:json().error.code })
    end)

    it("streams what there is, and what comes, to whoever follows", function()
        server = openresty.start()
        local _, id = submit { "say:first", "nap:0.5", "say:last" }
        local follower = server:begin("GET", JOBS .. "/" .. id .. "/results?follow=true", nil,
            as "ann")
        local listener = server:begin("GET", JOBS .. "/" .. id .. "/events", nil, as "ann")
        assert.same("first", cjson.decode(follower:line()).result.content)
        assert.same("running", get("/v1/batches/" .. id):json().job.status)
        assert.same({ 1, 2 },
            { cjson.decode(follower:line()).idx, cjson.decode(follower:line()).idx })
        assert.is_nil(follower:line())
        assert.is_nil(follower.is_broken)
        assert.matches("event: job\n", listener:finish().body)
        local resumed = server:request("GET", JOBS .. "/" .. id .. "/events", nil,
            as("ann", { ["last-event-id"] = "1" }))
        assert.same({ "2" }, { resumed.body:match "id: (%d+)\n" })
    end)

    it("answers a wait at the next change, and when the time is up", function()
        server = openresty.start()
        local _, id = submit { "nap:3", "nap:20" }
        local nothing = get("/v1/batches/" .. id .. "?wait=0.5")
        assert.same(400, nothing.status) -- whole seconds, as everywhere
        await_start(id)
        nothing = get("/v1/batches/" .. id .. "?wait=1")
        assert.is_true(nothing.seconds > 0.9 and nothing.seconds < 10 * SLOWNESS)
        assert.same(0, nothing:json().job.targets_done)
        assert.same(1, get("/v1/batches/" .. id .. "?wait=20"):json().job.targets_done)
    end)

    it("holds no thread, and little else, for five hundred who wait and listen", function()
        server = openresty.start { workers = 1 }
        local _, id = submit { "nap:3" }
        await_start(id)
        local pid = server:workers()[1]
        local function status_of(name)
            local file = assert(io.open(("/proc/%d/status"):format(pid)))
            local text = file:read "*a"
            file:close()
            return tonumber(text:match(name .. ":%s*(%d+)"))
        end
        local n_threads, kilobytes = status_of "Threads", status_of "VmRSS"
        local all, n_told, slowest = {}, 0, nil
        for i = 1, 500 do
            local path = i % 2 == 0 and "?wait=30&results=false" or "/events"
            all[i] = function()
                local answer = server:get(JOBS .. "/" .. id .. path, as "ann")
                n_told = n_told + (answer.body:find '"done"' and 1 or 0)
            end
        end
        all[501] = function()
            cqueues.sleep(1)
            slowest = server:get("/hello").seconds
            assert.same(n_threads, status_of "Threads")
            assert.is_true(status_of "VmRSS" - kilobytes < 64 * 1024 * SLOWNESS)
        end
        web.together(all)
        assert.same(500, n_told)
        assert.is_true(slowest < 0.5 * SLOWNESS, "an answer took " .. slowest .. " s")
        assert.same({}, server:complaints())
    end)

    it("is done with a client that goes away, at once or at the next outcome", function()
        for _, directive in ipairs { "lua_check_client_abort on;", "" } do
            server = openresty.start { workers = 1, http = directive,
                locations = "location = /connections { stub_status; }" }
            local _, id = submit { "say:first", "nap:0.6#" .. directive, "nap:0.2", "nap:0.2",
                "nap:20" }
            local followers = {}
            for i, path in ipairs { "/results?follow=true", "/events" } do
                followers[i] = server:begin("GET", JOBS .. "/" .. id .. path, nil, as "ann")
                assert.truthy(followers[i]:line())
            end
            local function n_active()
                return tonumber(server:get("/connections").body:match "Active connections: (%d+)")
            end
            local n_before, left_at = n_active(), core.monotime()
            for _, follower in ipairs(followers) do
                follower:close()
            end
            eventually(function() return n_active() == n_before - 2 end)
            local seconds = core.monotime() - left_at
            assert.is_true(directive == "" or seconds < 0.5 * SLOWNESS, seconds)
            assert.same({}, server:complaints())
            assert.same("hello", server:get("/hello").body)
            server:close()
        end
    end)
end)
