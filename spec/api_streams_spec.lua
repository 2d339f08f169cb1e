-- SPDX-License-Identifier: MIT
--
-- Outcomes and events while they come: what is streamed, in which order, and where it resumes.

local cjson = require "cjson"
local core = require "batch.core"
local client = require "spec.support.client"
local notifier = require "batch.notifier"
local worker = require "spec.support.worker"

-- A fetch that waits for a file named in the URL, "gate:PATH#n".
local function gated(target)
    local path = target.url:match "^gate:([^#]*)"
    while path and not io.open(path) do
        require("batch.core").poll_fd(-1, 0.005)
    end
    return target.url
end

local function gate()
    local path = os.tmpname()
    os.remove(path)
    return path, function() io.open(path, "w"):close() end
end

local function parse_events(text)
    local events = {}
    for block in text:gmatch "(.-)\n\n" do
        local event = {}
        for name, value in ("\n" .. block):gmatch "\n(%l+): ([^\n]*)" do
            event[name] = value
        end
        if event.event then
            event.data = cjson.decode(event.data)
            events[#events + 1] = event
        end
    end
    return events
end

local function finished(...)
    local web = client.open { fetch = gated }
    local _, answer = web:submit(...)
    web.runner:wait(answer.id, 10)
    return web, "/v1/batches/" .. answer.id
end

after_each(worker.close_all)

describe("results as JSON Lines", function()
    it("have a line for each outcome, in order", function()
        local web, path = finished("a", "b", "c")
        local response = web:raw("GET " .. path .. "/results?from=1")
        assert.equal("application/jsonl", response.headers["content-type"])
        local seen = {}
        for line in table.concat(client.chunks(response)):gmatch "([^\n]*)\n" do
            local target = cjson.decode(line)
            seen[#seen + 1] = ("%d%s"):format(target.idx, target.result.content)
        end
        assert.same({ "1b", "2c" }, seen)
    end)

    it("without contents are wanted without", function()
        local web, path = finished "a"
        local response = web:raw("GET " .. path .. "/results?results=false")
        local text = table.concat(client.chunks(response))
        assert.is_nil(cjson.decode(text).result)
    end)

    it("of a job without outcomes are none, unless they are followed", function()
        local path, open = gate()
        finally(function() os.remove(path) end)
        local web = client.open { fetch = gated }
        local _, answer = web:submit("gate:" .. path .. "#0", "gate:" .. path .. "#1")
        local address = "GET /v1/batches/" .. answer.id .. "/results"
        assert.same({}, client.chunks(web:raw(address)))
        local response = web:raw(address .. "?follow=true")
        open()
        local text = table.concat(client.chunks(response))
        assert.equal(2, select(2, text:gsub("\n", "\n")))
    end)

    it("larger than memory should hold come in pieces", function()
        local web = client.open {
            fetch = function() return ("x"):rep(1024 * 1024) end, max_bytes = 2 ^ 40,
        }
        local urls = {}
        for i = 1, 20 do
            urls[i] = "u" .. i
        end
        local _, answer = web:submit((unpack or table.unpack)(urls))
        web.runner:wait(answer.id, 20)
        local n_bytes, longest = 0, 0
        for chunk in web:raw("GET /v1/batches/" .. answer.id .. "/results").body do
            n_bytes = n_bytes + #chunk
            longest = math.max(longest, #chunk)
        end
        assert.is_true(n_bytes > 20 * 1024 * 1024)
        assert.is_true(longest < 2 * 1024 * 1024, longest)
    end)

    it("break off when the server shuts down, so that none is missed unseen", function()
        local path, open = gate()
        finally(function()
            open()
            worker.close_all()
            os.remove(path)
        end)
        local web = client.open { fetch = gated }
        local _, answer = web:submit("gate:" .. path)
        local response = web:raw("GET /v1/batches/" .. answer.id .. "/results?follow=true")
        web.api:close()
        assert.has_error(response.body, "the server is shutting down")
    end)
end)

describe("events", function()
    it("have each target with its idx, and last the job", function()
        local web, path = finished("a", "b")
        local response = web:raw("GET " .. path .. "/events")
        assert.equal("text/event-stream", response.headers["content-type"])
        local events = parse_events(table.concat(client.chunks(response)))
        assert.same({ "target", "target", "job" },
            { events[1].event, events[2].event, events[3].event })
        assert.same({ "0", "1", nil }, { events[1].id, events[2].id, events[3].id })
        assert.equal("b", events[2].data.result.content)
        assert.equal("done", events[3].data.status)
    end)

    it("resume exactly behind the last one", function()
        local web, path = finished("a", "b", "c")
        for last, expected in pairs { ["0"] = "1 2 job", ["1"] = "2 job", ["2"] = "job" } do
            local response = web:raw("GET " .. path .. "/events", nil, { ["last-event-id"] = last })
            local seen = {}
            for i, event in ipairs(parse_events(table.concat(client.chunks(response)))) do
                seen[i] = event.id or event.event
            end
            assert.equal(expected, table.concat(seen, " "))
        end
    end)

    it("do not resume behind what is no id", function()
        local web, path = finished "a"
        for _, last in ipairs { "x", "-1", "1.0", "1e3", "0x1", "1 ", ("9"):rep(40) } do
            local status, answer = web:send("GET " .. path .. "/events", nil,
                { ["last-event-id"] = last })
            assert.same({ 400, "bad_request" }, { status, answer.error.code })
        end
    end)

    it("begin at once, and come while the job runs", function()
        local path, open = gate()
        finally(function() os.remove(path) end)
        local web = client.open { fetch = gated }
        local _, answer = web:submit("a", "gate:" .. path)
        local response = web:raw("GET /v1/batches/" .. answer.id .. "/events")
        local first = parse_events(table.concat(client.chunks(response, 1)))
        if #first == 0 then
            first = parse_events(table.concat(client.chunks(response, 1)))
        end
        assert.same({ "0" }, { first[1].id })
        open()
        local rest = parse_events(table.concat(client.chunks(response)))
        assert.same({ "1", "job" }, { rest[1].id, rest[2].event })
    end)

    it("end with a job that was cancelled", function()
        local path, open = gate()
        finally(function()
            open()
            worker.close_all()
            os.remove(path)
        end)
        local web = client.open { fetch = gated }
        local _, answer = web:submit("gate:" .. path)
        local response = web:raw("GET /v1/batches/" .. answer.id .. "/events")
        client.chunks(response, 1)
        assert.is_true(web.runner:cancel(answer.id))
        local events = parse_events(table.concat(client.chunks(response)))
        assert.same({ "job", "cancelled" }, { events[1].event, events[1].data.status })
    end)

    it("break off when the job goes away", function()
        local clock = core.clock(1e9)
        local web = client.open { fetch = gated, ttl = 100, clock = clock }
        local path, open = gate()
        finally(function() os.remove(path) end)
        local _, answer = web:submit("gate:" .. path)
        local response = web:raw("GET /v1/batches/" .. answer.id .. "/events")
        client.chunks(response, 1)
        open()
        web.runner:wait(answer.id, 10)
        clock:advance(101)
        assert.has_error(response.body, "expired")
    end)
end)

describe("a client that goes while it waits", function()
    -- Coroutines wait by yielding, as under a server, which never resumes one whose client has
    -- gone.
    local function new_condition()
        return { wait = coroutine.yield, signal = function() end }
    end

    it("ends a wait, too", function()
        local web = client.open { executor = "manual" }
        local _, answer = web:submit "a"
        local n_looks, began_at = 0, core.now()
        local response = web.api:handle {
            method = "GET", path = "/v1/batches/" .. answer.id, query = "wait=20",
            header = function() return "Bearer alice" end,
            is_gone = function()
                n_looks = n_looks + 1
                return true
            end,
        }
        assert.same({ 200, 1 }, { response.status, n_looks })
        assert.is_true(core.now() - began_at < 10)
    end)

    for address, n_before in pairs { ["/events"] = 1, ["/results?follow=true"] = 0 } do
        it("leaves nothing behind that waits: " .. address, function()
            local path, open = gate()
            finally(function()
                open()
                worker.close_all()
                os.remove(path)
            end)
            local web = client.open { fetch = gated }
            local _, answer = web:submit("gate:" .. path)
            web.notifier = notifier.new(web.runner, new_condition)
            web.api:attach(web.runner, web.notifier)
            for _ = 1, 3 do
                local response = web:raw("GET /v1/batches/" .. answer.id .. address)
                local reading = coroutine.wrap(function()
                    client.chunks(response, n_before + 1)
                end)
                reading()
                assert.equal("notifier (1 waiting)", tostring(web.notifier))
                response.finish()
                assert.equal("notifier (0 waiting)", tostring(web.notifier))
                response.finish()
            end
        end)
    end
end)
