-- SPDX-License-Identifier: MIT
--
-- Posting to the operator's own endpoints, and what their addresses are exempt from.

local socket = require "cqueues.socket"

local http = require("batch.core").http
local canned_servers = require "spec.support.canned"

local canned, client

local function opened(fields)
    client = assert(http.new(fields))
    return client
end

setup(function()
    canned = canned_servers.start()
end)
teardown(function()
    canned:stop()
end)
after_each(function()
    client:close()
end)

local function redirect(name, status, location)
    local answer = "HTTP/1.1 %d Elsewhere\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n"
    return canned:put(name, answer:format(status, location))
end

describe("a post", function()
    before_each(function()
        opened { allow = { "127.0.0.0/8" }, timeout = 30 }
    end)

    local function post(url, fields)
        return assert(client:post(url, fields)).body
    end

    it("sends the body with the headers given, and no others of its own", function()
        local headers = { ["Content-Type"] = "application/json", Authorization = "Bearer key" }
        local sent = post(canned.base .. "/echo", { body = '{"a":1}', headers = headers })
        assert.same("POST /echo HTTP/1.1", sent:match "^[^\r]*")
        assert.is_truthy(sent:find("\r\nAuthorization: Bearer key\r\n", 1, true))
        assert.is_truthy(sent:find("\r\nContent-Type: application/json\r\n", 1, true))
        assert.is_truthy(sent:find("\r\nContent-Length: 7\r\n", 1, true))
        assert.same('{"a":1}', sent:match "\r\n\r\n(.*)$")
        sent = post(canned.base .. "/echo", { body = "a=b" })
        assert.is_nil(sent:find "Content%-Type")
    end)

    it("sends any bytes, many or none", function()
        for _, body in ipairs { "", "a\0b\255", ("x"):rep(3000000) } do
            local sent = post(canned.base .. "/echo", { body = body })
            assert.is_true(sent:match "\r\n\r\n(.*)$" == body)
            assert.is_nil(sent:find "Expect") -- which a client waits a second for
        end
    end)

    it("is followed by gets as ever", function()
        post(canned.base .. "/echo", { body = "x" })
        local sent = assert(client:get(canned.base .. "/echo")).body
        assert.same("GET", sent:match "^%u+")
        assert.is_nil(sent:find "Content%-Length")
    end)

    it("is repeated by the redirects that ask for it, and else becomes a get", function()
        local methods = { [301] = "GET", [302] = "GET", [303] = "GET", [307] = "POST",
            [308] = "POST" }
        for status, method in pairs(methods) do
            local url = redirect("moved", status, "/echo")
            local sent = post(url, { body = "abc" })
            assert.same({ status, method }, { status, sent:match "^%u+" })
            assert.same(method == "POST" and "abc" or "", sent:match "\r\n\r\n(.*)$")
        end
    end)

    it("keeps its key from other hosts", function()
        local elsewhere = canned.base:gsub("127.0.0.1", "127.1.0.1") -- where nobody listens
        local url = redirect("moved", 307, elsewhere .. "/echo")
        local answer, _, _, kind = client:post(url, { body = "x" })
        assert.same({ nil, "connect" }, { answer, kind })
        local here = redirect("moved", 307, (canned.base:gsub("127.0.0.1", "localhost")) .. "/echo")
        local sent = post(here, { body = "x", headers = { Authorization = "Bearer key" } })
        assert.is_nil(sent:find("Bearer key", 1, true))
    end)

    it("gives the answer whatever its status", function()
        local busy = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\n"
            .. "content-length: 2\r\n\r\nno"
        local answer = assert(client:post(canned:put("busy", busy), { body = "x" }))
        assert.same({ 429, 7, "no" }, { answer.status, answer.retry_after, answer.body })
    end)

    it("ends when its time is up, or when it is cancelled", function()
        local url = canned:put("held", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n") .. "?hold"
        local _, _, _, kind = client:post(url, { body = "x", timeout = 0.2 })
        assert.same("timeout", kind)
        local ours, theirs = socket.pair()
        theirs:write "x"
        theirs:flush()
        _, _, _, kind = client:post(url, { body = "x", cancel_fd = ours:pollfd() })
        assert.same("cancelled", kind)
    end)

    it("refuses the same headers as a get", function()
        for _, name in ipairs { "Host", "Content-Length", "Transfer-Encoding", "Expect" } do
            local fields = { body = "x", headers = { [name] = "1" } }
            local _, _, _, kind = client:post(canned.base .. "/echo", fields)
            assert.same({ name, "header" }, { name, kind })
        end
    end)

    it("has to have a body", function()
        assert.has_error(function()
            client:post(canned.base .. "/echo", {})
        end)
    end)
end)

describe("an exempt address", function()
    local function verdict(method, url, fields)
        fields = fields or {}
        fields.body, fields.timeout = "x", 30
        local answer, _, _, kind = client[method](client, url, fields)
        return answer and answer.status or kind
    end

    it("is reached though it is not public, by requests that ask for it", function()
        opened { exempt = { canned.base .. "/echo" } }
        assert.same(200, verdict("post", canned.base .. "/echo", { exempt = true }))
        assert.same(200, verdict("get", canned.base .. "/echo?x=y", { exempt = true }))
        assert.same("guard", verdict("post", canned.base .. "/echo"))
        assert.same("guard", verdict("get", canned.base .. "/echo"))
    end)

    it("opens no other path, port or host", function()
        opened { exempt = { canned.base .. "/echo" } }
        for _, url in ipairs {
            canned.base .. "/", canned.base .. "/echoes", canned.base .. "/echo/../other",
            canned.base .. "/echo/%2e%2e/other", "http://127.0.0.1:8080/echo",
            (canned.base:gsub("127.0.0.1", "localhost")) .. "/echo",
        } do
            assert.same({ url, "guard" }, { url, verdict("get", url, { exempt = true }) })
        end
    end)

    it("leaves no connection behind for others", function()
        opened { exempt = { canned.base } }
        for _ = 1, 3 do
            assert.same(200, verdict("get", canned.base .. "/echo", { exempt = true }))
            assert.same("guard", verdict("get", canned.base .. "/echo"))
        end
    end)

    it("is stronger than deny, which is about what users ask for", function()
        opened { exempt = { canned.base }, deny = { "127.0.0.0/8" } }
        assert.same(200, verdict("get", canned.base .. "/echo", { exempt = true }))
    end)

    it("does not exempt where it redirects to", function()
        opened { exempt = { canned.base } }
        local url = redirect("moved", 302, "/echo")
        assert.same("guard", verdict("get", url, { exempt = true }))
        client:close()
        opened { exempt = { canned.base }, allow = { "127.0.0.1" } }
        assert.same(200, verdict("get", url, { exempt = true }))
    end)

    it("has to be a URL, in a list", function()
        opened {}
        local wrong = {
            { { "nonsense" }, "exempt: 'nonsense' is no URL" },
            { { "ftp://a.example/" }, "exempt: scheme 'ftp' is not allowed" },
            { "http://a.example/", "exempt must be a list of URLs, got a string" },
        }
        for _, row in ipairs(wrong) do
            assert.same({ nil, row[2], "invalid" }, { http.new { exempt = row[1] } })
        end
    end)
end)
