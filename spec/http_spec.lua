-- SPDX-License-Identifier: MIT
--
-- The client below the built-in pipeline: headers, redirects, limits, cancelling, sentences.

local cqueues = require "cqueues"
local json = require "cjson"
local socket = require "cqueues.socket"

local http = require("batch.core").http
local interpreter = require "spec.support.interpreter"
local sites = require "spec.support.site"

local LOOPBACK = { "127.0.0.0/8", "::1" }

local clients = {}

local function opened(options)
    local client = assert(http.new(options))
    table.insert(clients, client)
    return client
end

local function client_with(fields)
    local options = { allow = LOOPBACK }
    for name, value in pairs(fields or {}) do
        options[name] = value
    end
    return opened(options)
end

after_each(function()
    for i = #clients, 1, -1 do
        table.remove(clients, i):close()
    end
end)

-- The kind of refusal, or the status of the answer.
local function verdict(client, url)
    local answer, message, _, kind = client:get(url, { timeout = 30 })
    return answer and answer.status or kind, message
end

describe("a client", function()
    local site, base
    setup(function()
        site = sites.start()
        base = site.base
    end)
    teardown(function()
        site:stop()
    end)

    it("gets a page from an allowed network", function()
        local client = client_with()
        local answer = assert(client:get(base .. "/pages/2"))
        assert.same({ 200, base .. "/pages/2", "text/html; charset=utf-8", #answer.body },
            { answer.status, answer.url, answer.content_type, answer.bytes })
        assert.is_truthy(answer.body:find("This is page 2", 1, true))
        assert.is_true(answer.seconds > 0 and answer.seconds < 5)
    end)

    it("forgives spaces around a URL, and escapes those within", function()
        local client = client_with()
        local answer = assert(client:get("  " .. base .. "/?a=b c\195\188 "))
        assert.same({ 200, base .. "/?a=b+c%c3%bc" }, { answer.status, answer.url })
    end)

    it("finds the guard's deny stronger than its allow", function()
        local client = client_with { deny = { "127.0.0.1" } }
        assert.same("guard", (verdict(client, base .. "/")))
    end)

    it("gets a page under an international name", function()
        local client = client_with()
        assert.same(200, (verdict(client, (base:gsub("127.0.0.1", "bücher.localhost")))))
    end)

    it("ignores the proxies of the environment", function()
        local script = ([[local http = require("batch.core").http
            local client = http.new { allow = { "127.0.0.0/8" } }
            print(client:get("%s/").status)]]):format(base)
        local command = ("http_proxy=http://127.0.0.1:2/ all_proxy=http://127.0.0.1:2/ "
            .. "LUA_PATH='%s' LUA_CPATH='%s' %s -e '%s'"):format(
            package.path, package.cpath, interpreter, script)
        local pipe = io.popen(command)
        assert.same("200", pipe:read "*l")
        pipe:close()
    end)

    it("sends further headers, and its own name", function()
        local client = client_with { user_agent = "a spec" }
        local headers = { ["X-Test"] = "a, b", ["X-Empty"] = "" }
        local fields = json.decode(assert(client:get(base .. "/echo", { headers = headers })).body)
        assert.same({ "a, b", "", "a spec" },
            { fields["x-test"], fields["x-empty"], fields["user-agent"] })
    end)

    it("refuses headers that would break the request", function()
        local client = client_with()
        local wrong = {
            { "Host", "x" }, { "content-length", "0" }, { "Transfer-Encoding", "chunked" },
            { "Connection", "close" }, { "Proxy-Authorization", "x" }, { "X", "a\r\nHost: b" },
            { "X", "a\0b" }, { "X\n", "a" }, { "", "a" }, { "X Y", "a" }, { "X:", "a" },
        }
        for _, header in ipairs(wrong) do
            local headers = { [header[1]] = header[2] }
            local _, _, _, kind = client:get(base .. "/echo", { headers = headers })
            assert.same({ header, "header" }, { header, kind })
        end
    end)

    describe("that is redirected", function()
        local function redirect_to(url)
            return base .. "/redirect-to?url=" .. url:gsub("[^%w]", function(c)
                return ("%%%02x"):format(c:byte())
            end)
        end

        it("says where it ended", function()
            local client = client_with()
            assert.same(base .. "/pages/1", assert(client:get(base .. "/moved")).url)
        end)

        it("follows as often as it may", function()
            local client = client_with()
            assert.same(200, (verdict(client, base .. "/redirect?n=5")))
            assert.same({ "redirects", "too many redirects (5)" },
                { verdict(client, base .. "/redirect?n=6") })
        end)

        it("asks the guard about every hop", function()
            local client = client_with()
            local elsewhere = { "http://10.0.0.1/", "http://[fd00::1]/", "http://0xa9fea9fe/" }
            for _, url in ipairs(elsewhere) do
                assert.same({ "guard", "address not allowed" },
                    { verdict(client, redirect_to(url)) })
            end
        end)

        it("takes a redirect to nowhere for an answer", function()
            local client = client_with()
            assert.same(302, (verdict(client, redirect_to "")))
        end)

        it("holds the rules of URLs at every hop", function()
            local client = client_with()
            local wrong = {
                ["file:///etc/passwd"] = "scheme 'file' is not allowed",
                ["gopher://127.0.0.1/"] = "scheme 'gopher' is not allowed",
                [base:gsub("//", "//user:secret@")] = "user names in URLs are not allowed",
                ["http://127.0.0.1:6667/"] = "port 6667 is not allowed",
            }
            for url, sentence in pairs(wrong) do
                assert.same({ "url", sentence }, { verdict(client, redirect_to(url)) })
            end
        end)

        it("keeps Authorization and Cookie for the host that they were meant for", function()
            local client = client_with()
            local headers = { Authorization = "Bearer secret", Cookie = "a=b", ["X-Other"] = "c" }
            local function seen_after(url)
                local answer = assert(client:get(redirect_to(url), { headers = headers }))
                local fields = json.decode(answer.body)
                return { fields.authorization, fields.cookie or json.null, fields["x-other"] }
            end
            assert.same({ "Bearer secret", "a=b", "c" }, seen_after(base .. "/echo"))
            local elsewhere = base:gsub("127.0.0.1", "localhost")
            assert.same({ nil, json.null, "c" }, seen_after(elsewhere .. "/echo"))
        end)
    end)

    describe("with limits", function()
        it("names the limit that a body passes", function()
            local client = client_with { max_body = 1024 }
            assert.same(200, (verdict(client, base .. "/big?bytes=1024")))
            assert.same({ "too_large", "body larger than 1 KiB ([fetch] max_body)" },
                { verdict(client, base .. "/big?bytes=1025") })
        end)

        it("counts a body as it is after decompression", function()
            local client = client_with { max_body = 16 * 1024 }
            local answer = assert(client:get(base .. "/gzip?bytes=10000"))
            assert.same(("a"):rep(#answer.body), answer.body)
            assert.is_true(answer.bytes < 200)
            assert.same("too_large", (verdict(client, base .. "/gzip?bytes=100000")))
        end)

        it("ends a request that takes too long", function()
            local client = client_with()
            local begun = cqueues.monotime()
            local _, message, hint, kind =
                client:get(base .. "/slow?seconds=5", { timeout = 0.2 })
            assert.same({ "timed out after 0.2 s", "[fetch] timeout sets the limit", "timeout" },
                { message, hint, kind })
            assert.is_true(cqueues.monotime() - begun < 4)
        end)
    end)

    describe("that is cancelled", function()
        it("ends at once", function()
            local client = client_with()
            local pipe = io.popen "sleep 0.3; echo now"
            local signal = socket.dup(pipe)
            local begun = cqueues.monotime()
            local _, message, _, kind =
                client:get(base .. "/slow?seconds=5", { cancel_fd = signal:pollfd() })
            assert.same({ "cancelled", "cancelled" }, { message, kind })
            assert.is_true(cqueues.monotime() - begun < 4)
            assert.same("now", pipe:read "*l") -- it was not read
            signal:close()
            pipe:close()
        end)

        it("does not even begin when it already was", function()
            local client = client_with()
            local ours, theirs = socket.pair()
            theirs:write "x"
            theirs:flush()
            local _, message = client:get(base .. "/", { cancel_fd = ours:pollfd() })
            assert.same("cancelled", message)
        end)

        it("can be used for the next request", function()
            local client = client_with()
            local ours, theirs = socket.pair()
            client:get(base .. "/slow?seconds=5", { timeout = 0.05, cancel_fd = ours:pollfd() })
            theirs:write "x"
            theirs:flush()
            client:get(base .. "/slow?seconds=5", { cancel_fd = ours:pollfd() })
            assert.same(200, (verdict(client, base .. "/")))
        end)
    end)

    describe("reads Retry-After", function()
        local function retry_after(text)
            local client = client_with()
            local query = text and "?retry-after=" .. text:gsub("[ ,:]", function(c)
                return ("%%%02x"):format(c:byte())
            end) or ""
            return assert(client:get(base .. "/status/503" .. query)).retry_after
        end

        it("in seconds", function()
            assert.same(120, retry_after "120")
            assert.same(0, retry_after "0")
        end)

        it("as a date", function()
            local seconds = retry_after(os.date("!%a, %d %b %Y %H:%M:%S GMT", os.time() + 90))
            assert.is_true(seconds >= 88 and seconds <= 91)
            assert.same(0, retry_after "Wed, 21 Oct 2015 07:28:00 GMT")
        end)

        it("and does without", function()
            assert.is_nil(retry_after(nil))
            assert.is_nil(retry_after "soon")
        end)
    end)

    describe("says in plain words", function()
        it("that nothing listens", function()
            local client = client_with()
            assert.same({ "connect", "connection refused" },
                { verdict(client, "http://127.0.0.1:2/") })
        end)

        it("that a name does not exist", function()
            local client = client_with()
            assert.same({ "resolve", "could not resolve host nosuch.invalid" },
                { verdict(client, "http://nosuch.invalid/") })
        end)

        it("that a server does not speak TLS", function()
            local client = client_with()
            assert.same("tls", (verdict(client, (base:gsub("^http", "https")))))
        end)

        it("that a certificate cannot be trusted", function()
            local secure = sites.start "--scheme https"
            local client = client_with()
            local found = { verdict(client, secure.base .. "/") }
            secure:stop()
            assert.same({ "tls", "the certificate is self-signed" }, found)
        end)
    end)
end)

describe("http.new", function()
    it("refuses what it does not know, by name", function()
        local wrong = {
            { { colour = 1 }, "unknown field 'colour'" },
            { { timeout = -1 }, "timeout must be a number of seconds from 0 to 86400, got -1" },
            { { max_redirects = 1.5 }, "max_redirects must be an integer from 0 to 100, got 1.5" },
            { { max_body = "1" }, "max_body must be an integer from 0 to 1073741824, got 1" },
            { { allow = "all" }, "allow must be a list of networks, got a string" },
            { { deny = { "10.0.0.0/33" } },
                'deny: "10.0.0.0/33" is no network: its prefix must be from 0 to 32' },
            { { allow = { "example.org" } },
                'allow: "example.org" is no network such as "10.0.0.0/8" or "fd00::/8"' },
            { { user_agent = "a\r\nb" },
                "user_agent must be a line of text of less than 256 bytes" },
        }
        for _, row in ipairs(wrong) do
            assert.same({ nil, row[2], "invalid" }, { http.new(row[1]) })
        end
    end)

    it("gives a client that can be closed twice, and raises when it is used then", function()
        local client = assert(http.new {})
        client:close()
        client:close()
        assert.has_error(function()
            client:get "http://example.org/"
        end, "attempt to use a closed http client")
    end)
end)
