-- SPDX-License-Identifier: MIT
--
-- Bodies and headers as servers send them, right and wrong: compressed, cut off, endless, lying.

local cqueues = require "cqueues"

local http = require("batch.core").http
local canned_servers = require "spec.support.canned"

local TEXT = ("All work and no play makes Jack a dull boy.\n"):rep(500)

describe("a body", function()
    local canned, clients
    setup(function()
        canned = canned_servers.start()
    end)
    teardown(function()
        canned:stop()
    end)

    before_each(function()
        clients = {}
    end)
    after_each(function()
        for _, client in ipairs(clients) do
            client:close()
        end
    end)

    local function get(url, fields, options)
        local settings = { allow = { "127.0.0.0/8" } }
        for name, value in pairs(fields or {}) do
            settings[name] = value
        end
        local client = assert(http.new(settings))
        table.insert(clients, client)
        return client:get(url, options or { timeout = 30 })
    end

    local function refusal(...)
        local answer, message, _, kind = get(...)
        assert.is_nil(answer)
        return { kind, message }
    end

    -- The trailer of zlib's format.
    local function adler32(text)
        local a, b = 1, 0
        for i = 1, #text do
            a = (a + text:byte(i)) % 65521
            b = (b + a) % 65521
        end
        return string.char(math.floor(b / 256), b % 256, math.floor(a / 256), a % 256)
    end

    local function packed(coding)
        local commands = { br = "brotli -c", zstd = "zstd -qc" }
        local bytes = canned:filter(commands[coding] or "gzip -nc", TEXT)
        if coding == "deflate" then
            return "\x78\x9c" .. bytes:sub(11, -9) .. adler32(TEXT)
        elseif coding == "raw deflate" then
            return bytes:sub(11, -9)
        end
        return bytes
    end

    for _, coding in ipairs { "gzip", "deflate", "raw deflate", "br", "zstd" } do
        local field = ("content-encoding: %s\r\n"):format(coding:match "%S+$")

        it("in " .. coding .. " is unpacked", function()
            local bytes = packed(coding)
            local answer = assert(get(canned:put_body("packed", bytes, field)))
            assert.same(TEXT, answer.body)
            assert.same(#bytes, answer.bytes)
        end)

        it("in " .. coding .. " that is cut off is an error", function()
            local bytes = packed(coding)
            local sentence = ("the body was cut off: its %s data is incomplete"):format(
                coding:match "%S+$")
            for _, len in ipairs { 1, math.floor(#bytes / 2), #bytes - 1 } do
                local url = canned:put_body("cut", bytes:sub(1, len), field)
                assert.same({ "connect", sentence }, refusal(url))
            end
        end)

        it("in " .. coding .. " has its limit after it is unpacked", function()
            local url = canned:put_body("packed", packed(coding), field)
            assert.same(TEXT, assert(get(url, { max_body = #TEXT })).body)
            assert.same("too_large", refusal(url, { max_body = #TEXT - 1 })[1])
        end)
    end

    it("that is empty is whole in any coding", function()
        local url = canned:put_body("empty", "", "content-encoding: gzip\r\n")
        assert.same("", assert(get(url)).body)
    end)

    it("may be packed twice, under one name or two fields", function()
        local twice = canned:filter("brotli -c", packed "gzip")
        local url = canned:put_body("twice", twice, "content-encoding: gzip, br\r\n")
        assert.same(TEXT, assert(get(url)).body)
        local fields = "content-encoding: gzip\r\ncontent-encoding: br\r\n"
        assert.same(TEXT, assert(get(canned:put_body("twice", twice, fields))).body)
    end)

    it("in a coding that nobody knows is an error that names it", function()
        local url = canned:put_body("odd", "abc", "content-encoding: compress\r\n")
        assert.same(
            { "protocol", "the body cannot be decompressed: its coding 'compress' is not known" },
            refusal(url))
    end)

    it("that is not what its header says is an error", function()
        local url = canned:put_body("plain", "plain text", "content-encoding: gzip\r\n")
        assert.same({ "protocol", "the body cannot be decompressed: its gzip data is damaged" },
            refusal(url))
    end)

    it("that unpacks to more than anybody can hold is refused early", function()
        local bomb = canned:filter("sh -c 'head -c 200000000 /dev/zero | gzip -1 | gzip -1'", "")
        local begun = os.clock()
        local url = canned:put_body("bomb", bomb, "content-encoding: gzip, gzip\r\n")
        assert.same({ "too_large", "body larger than 16 MiB ([fetch] max_body)" }, refusal(url))
        assert.is_true(os.clock() - begun < 2)
    end)

    it("shorter than its length is an error", function()
        local head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"
        assert.same({ "connect", "the connection ended before the body was complete" },
            refusal(canned:put("short", head .. "x")))
        assert.same({ "connect", "the connection ended before the body was complete" },
            refusal(canned:put("none", head)))
    end)

    it("longer than its length ends where that says", function()
        local answer = assert(get(canned:put("long", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"
            .. "abcdef")))
        assert.same("abc", answer.body)
    end)

    it("in chunks is an error when the last one is missing", function()
        local head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        assert.same("abc", assert(get(canned:put("chunks", head .. "3\r\nabc\r\n0\r\n\r\n"))).body)
        for _, chunks in ipairs { "3\r\nabc\r\n", "5\r\nabc", "" } do
            assert.same("connect", refusal(canned:put("chunks", head .. chunks))[1])
        end
        assert.is_truthy(refusal(canned:put("chunks", head .. "many\r\nabc\r\n")))
    end)

    it("with a length that is no number is an error", function()
        for _, length in ipairs { "-1", "99999999999999999999999", "many" } do
            local head = ("HTTP/1.1 200 OK\r\ncontent-length: %s\r\n\r\n"):format(length)
            local answer, message = get(canned:put("odd", head .. "abc"), nil, { timeout = 2 })
            assert.is_true(answer == nil and message ~= "" or answer.body == "abc")
        end
    end)

    it("with a length beyond the limit is refused before it comes", function()
        local head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\nx"
        local begun = cqueues.monotime()
        assert.same("too_large", refusal(canned:put("large", head) .. "?hold")[1])
        assert.is_true(cqueues.monotime() - begun < 4)
    end)

    it("that comes a byte at a time is ended by the time-out", function()
        local url = canned:put_body("slow", ("x"):rep(1000))
        local begun = cqueues.monotime()
        assert.same({ "timeout", "timed out after 0.5 s" },
            refusal(url .. "?drip=0.05", nil, { timeout = 0.5 }))
        assert.is_true(cqueues.monotime() - begun < 10)
    end)

    it("that never ends is ended by the time-out", function()
        local url = canned:put("held", "HTTP/1.1 200 OK\r\n\r\nabc")
        assert.same("timeout", refusal(url .. "?hold", nil, { timeout = 0.3 })[1])
        assert.same("abc", assert(get(url)).body)
    end)

    it("of a redirect is not looked at", function()
        local there = canned:put_body("there", "here")
        local moved = "HTTP/1.1 302 Found\r\ncontent-encoding: gzip\r\nlocation: "
            .. there .. "\r\ncontent-length: 5\r\n\r\nno zip"
        assert.same("here", assert(get(canned:put("moved", moved))).body)
    end)
end)

describe("an answer", function()
    local canned, client
    setup(function()
        canned = canned_servers.start()
        client = assert(http.new { allow = { "127.0.0.0/8" }, timeout = 30 })
    end)
    teardown(function()
        client:close()
        canned:stop()
    end)

    local function refusal(url)
        local answer, message, _, kind = client:get(url)
        assert.is_nil(answer)
        return { kind, message }
    end

    it("with ten thousand headers is read", function()
        local fields = {}
        for i = 1, 10000 do
            fields[i] = ("x-%d: %d\r\n"):format(i, i)
        end
        local begun = os.clock()
        local url = canned:put_body("many", "abc", table.concat(fields))
        assert.same("abc", assert(client:get(url)).body)
        assert.is_true(os.clock() - begun < 2)
    end)

    it("with megabytes of headers is an error that says so", function()
        local field = ("x-a: %s\r\n"):format(("y"):rep(1000))
        for name, fields in pairs { many = field:rep(2000),
            one = ("x-a: %s\r\n"):format(("y"):rep(1000000)) } do
            assert.same({ name, { "protocol", "the headers of the answer are too large" } },
                { name, refusal(canned:put_body("large", "abc", fields)) })
        end
    end)

    it("that is no HTTP is an error", function()
        for _, bytes in ipairs { "220 smtp.example.org ESMTP\r\n", "\0\1\2\3", "hello\n" } do
            assert.is_truthy(({ protocol = 1, connect = 1 })[refusal(canned:put("x", bytes))[1]])
        end
        assert.same({ "connect", "the server closed the connection without an answer" },
            refusal(canned:put("x", "")))
    end)

    it("that points to itself is an error after so many redirects", function()
        local loop = "HTTP/1.1 302 Found\r\nlocation: loop\r\ncontent-length: 0\r\n\r\n"
        assert.same({ "redirects", "too many redirects (5)" }, refusal(canned:put("loop", loop)))
    end)

    it("that points elsewhere is under the same rules as the URL", function()
        local wrong = {
            ["file:///etc/passwd"] = { "url", "scheme 'file' is not allowed" },
            ["data:text/plain,x"] = { "url", "scheme 'data' is not allowed" },
            ["ftp://127.0.0.1/"] = { "url", "scheme 'ftp' is not allowed" },
            ["//10.0.0.1/"] = { "guard", "address not allowed" },
            ["http://user@127.0.0.1/"] = { "url", "user names in URLs are not allowed" },
            ["http://127.0.0.1:25/"] = { "url", "port 25 is not allowed" },
        }
        for location, found in pairs(wrong) do
            local moved = "HTTP/1.1 301 Moved\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n"
            local url = canned:put("moved", moved:format(location))
            assert.same({ location, found }, { location, refusal(url) })
        end
    end)
end)
