-- SPDX-License-Identifier: MIT
--
-- What the HTTP server does about clients that are broken, slow or mean: it answers where it can,
-- closes, and others do not notice.

local http_server = require "spec.support.http_server"

local eventually, now = http_server.eventually, http_server.now

local POST = "POST /body HTTP/1.1\r\nhost: a\r\n"

-- Sends bytes one by one, with pauses, until the server has closed or the time is up.
local function drip(client, bytes, seconds)
    local began_at = now()
    client:send(bytes)
    repeat
        local is_taken = client:send("x")
        local piece, why = client.socket:xread(-1000, "b", 0.05)
        if piece then
            return now() - began_at, piece .. client:rest()
        end
    until not is_taken or not why or now() - began_at > seconds
    return now() - began_at, ""
end

describe("a malformed request", function()
    local server

    setup(function()
        server = http_server.start()
    end)

    teardown(function()
        server:stop()
    end)

    -- Each is answered with the status and an error in JSON, then the connection is closed.
    local function refuses(status, requests)
        for name, request in pairs(requests) do
            local rest = server:exchange(request)
            assert.matches("^HTTP/1%.1 " .. status .. " ", rest, name)
            assert.matches("\r\nconnection: close\r\n", rest, name)
            local body = rest:match("\r\n\r\n(.*)$")
            assert.matches('^{"error":{"code":"bad_request","hint":"[^"]+","message":"[^"]+"}}\n$',
                body, name)
        end
        assert.equal("GET /a nil\n", server:curl("http://{}/a"))
    end

    it("is refused when its first line is none", function()
        refuses(400, {
            words = "hello\r\n\r\n",
            binary = "\22\3\1\2\0\1\0\1\252\3\3\r\n\r\n",
            no_version = "GET /\r\n\r\n",
            spaces = "GET  / HTTP/1.1\r\nhost: a\r\n\r\n",
            space_in_path = "GET /a b HTTP/1.1\r\nhost: a\r\n\r\n",
            control = "GET /a\1 HTTP/1.1\r\nhost: a\r\n\r\n",
            bytes = "GET /\255 HTTP/1.1\r\nhost: a\r\n\r\n",
            relative = "GET a HTTP/1.1\r\nhost: a\r\n\r\n",
            authority = "CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n",
            lower_case = "GET / http/1.1\r\nhost: a\r\n\r\n",
            method = "G@T / HTTP/1.1\r\nhost: a\r\n\r\n",
        })
        refuses(505, { version = "GET / HTTP/3.0\r\nhost: a\r\n\r\n" })
    end)

    it("is refused when a field is none", function()
        refuses(400, {
            no_colon = "GET / HTTP/1.1\r\nhost: a\r\nwords\r\n\r\n",
            space_before_colon = "GET / HTTP/1.1\r\nhost: a\r\ncontent-length : 3\r\n\r\nabc",
            no_name = "GET / HTTP/1.1\r\nhost: a\r\n: b\r\n\r\n",
            folded = "GET / HTTP/1.1\r\nhost: a\r\nx-a: b\r\n c\r\n\r\n",
            null = "GET / HTTP/1.1\r\nhost: a\r\nx-a: b\0c\r\n\r\n",
            bare_line_feeds = "GET / HTTP/1.1\nhost: a\n\n",
            one_line_feed = "GET / HTTP/1.1\r\nhost: a\nx-a: b\r\n\r\n",
            bare_return = "GET / HTTP/1.1\r\nhost: a\r\nx-a: b\rx-b: c\r\n\r\n",
            no_host = "GET / HTTP/1.1\r\n\r\n",
            two_hosts = "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        })
    end)

    it("is refused when its body's length can be understood in two ways", function()
        refuses(400, {
            word = POST .. "content-length: many\r\n\r\n",
            sign = POST .. "content-length: +3\r\n\r\nabc",
            negative = POST .. "content-length: -1\r\n\r\n",
            hexadecimal = POST .. "content-length: 0x3\r\n\r\nabc",
            fraction = POST .. "content-length: 3.0\r\n\r\nabc",
            empty = POST .. "content-length:\r\n\r\nabc",
            huge = POST .. "content-length: 99999999999999999999\r\n\r\nabc",
            two = POST .. "content-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
            list = POST .. "content-length: 3, 4\r\n\r\nabcd",
            both = POST .. "content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            hidden = POST .. "transfer-encoding: \11chunked\r\n\r\n",
            old = "POST /body HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        })
        refuses(501, {
            unknown = POST .. "transfer-encoding: gzip\r\n\r\n",
            behind = POST .. "transfer-encoding: chunked, gzip\r\n\r\n",
            twice = POST .. "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
        })
        refuses(417, { expectation = POST .. "expect: miracles\r\n\r\n" })
    end)

    it("is refused when its chunks are none", function()
        local chunked = POST .. "transfer-encoding: chunked\r\n\r\n"
        refuses(400, {
            word = chunked .. "hello\r\nworld\r\n0\r\n\r\n",
            empty = chunked .. "\r\n0\r\n\r\n",
            negative = chunked .. "-1\r\nx\r\n0\r\n\r\n",
            prefix = chunked .. "0x1\r\nx\r\n0\r\n\r\n",
            huge = chunked .. "ffffffffffffffffffff\r\nx\r\n0\r\n\r\n",
            longer = chunked .. "1\r\nxyz\r\n0\r\n\r\n",
            bare_line_feed = chunked .. "1\nx\n0\n\n",
            long_extension = chunked .. "1;" .. ("x"):rep(300) .. "\r\nx\r\n0\r\n\r\n",
            endless_size = chunked .. ("0"):rep(300),
            trailers = chunked .. "0\r\n" .. ("a: b\r\n"):rep(5000) .. "\r\n",
        })
    end)

    it("does not let one chunk of four gigabytes into memory", function()
        local client = server:connect()
        client:send(POST .. "transfer-encoding: chunked\r\n\r\nffffffff\r\nxxx")
        assert.matches("^HTTP/1.1 413 .*too_large\n$", client:rest())
        client:close()
    end)

    it("whose body is a byte a chunk leaves other clients their turns", function()
        local client, other, n_chunks = server:connect(), server:connect(), 300000
        client:send("POST /body?1000000 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
            .. ("1\r\nx\r\n"):rep(n_chunks) .. "0\r\n\r\n")
        assert.equal(200, (other:get("/a")))
        assert.is_nil((client.socket:xread(-1, "b", 0)), "the other's answer came after the body's")
        assert.matches("^300000 bytes", select(2, client:answer()))
        client:close()
        other:close()
    end)

    it("may have some empty lines before it, but not nothing else", function()
        local client = server:connect()
        client:send "\r\n\r\n"
        assert.equal(200, (client:get("/a")))
        client:close()
        refuses(400, { empty = ("\r\n"):rep(100000) })
    end)

    it("with too long a first line or too large a head is told so", function()
        local long = "GET /" .. ("x"):rep(13000)
        for status, request in pairs {
            [414] = long .. " HTTP/1.1\r\nhost: a\r\n\r\n",
            [431] = "GET / HTTP/1.1\r\nhost: a\r\nx-a: " .. ("x"):rep(17000) .. "\r\n\r\n",
        } do
            refuses(status, { whole = request })
            refuses(status, { begun = request:sub(1, -3) })
        end
        refuses(431, { many = "GET / HTTP/1.1\r\nhost: a\r\n" .. ("a: b\r\n"):rep(200) .. "\r\n" })
        local client = server:connect()
        assert.equal(200, (client:get("/" .. ("x"):rep(12000))))
        client:close()
    end)

    it("is understood or refused in no time, however many spaces it has", function()
        local spaces, seconds, n_tries = (" "):rep(15000), 1, 0
        while seconds >= 1 and n_tries < 5 do -- a busy machine may need some
            local began_at = now()
            n_tries = n_tries + 1
            for _, field in ipairs { "a: x" .. spaces .. "x ", "connection: x" .. spaces .. "x",
                "connection:" .. spaces .. "x" } do
                local client = server:connect()
                client:send("GET /a HTTP/1.1\r\nhost: a\r\n" .. field .. "\r\n\r\n")
                assert.equal(200, (client:answer()))
                client:close()
            end
            refuses(400, { control = "GET /a HTTP/1.1\r\na:" .. spaces
                .. "\0\r\nhost: a\r\n\r\n" })
            seconds = now() - began_at
        end
        assert.is_true(seconds < 1, seconds)
    end)

    it("is in the access log as well", function()
        refuses(400, { two = POST .. "content-length: 3\r\ncontent-length: 4\r\n\r\nabcd" })
        local line = server:logged("method=POST path=/body ")
        assert.matches("code=bad_request", line)
        assert.matches("status=400", line)
    end)

    it("costs no memory and no other client its answers, whatever it is made of", function()
        local random = 7
        local function next_byte()
            random = (random * 1103515245 + 12345) % 2147483648
            return string.char(math.floor(random / 65536) % 256)
        end
        local function garbage()
            local bytes = {}
            for i = 1, 200 do
                bytes[i] = next_byte()
            end
            return table.concat(bytes)
        end
        local before = tonumber(server:curl("http://{}/memory"))
        for i = 1, 300 do
            local client = server:connect()
            client:send((i % 2 == 0 and "GET / HTTP/1.1\r\nhost: a\r\n" or "") .. garbage())
            client:close()
        end
        assert.equal("GET /a nil\n", server:curl("http://{}/a"))
        assert.is_true(eventually(function() return server:curl("http://{}/active") == "1 1" end))
        assert.is_true(tonumber(server:curl("http://{}/memory")) < before + 500)
    end)
end)

describe("a client that", function()
    local server

    setup(function()
        server = http_server.start { limits = {
            head_seconds = 0.4, body_seconds = 0.4, stalled_seconds = 0.4, idle_seconds = 0.4,
            linger_seconds = 0.4, connections = 20,
        } }
    end)

    teardown(function()
        server:stop()
    end)

    it("sends its head byte by byte is cut off in time", function()
        for _, begin in ipairs { "G", "GET / HTTP/1.1\r\nx-a: ", "\r\n" } do
            local seconds, answer = drip(server:connect(), begin, 20)
            assert.is_true(seconds > 0.3 and seconds < 10, begin .. " took " .. seconds)
            assert.matches("^HTTP/1.1 4%d%d ", answer)
        end
        server:logged("code=timeout")
    end)

    it("sends its body byte by byte is cut off in time", function()
        for _, framing in ipairs { "content-length: 1000\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n3e8\r\n" } do
            local seconds, answer = drip(server:connect(), POST .. framing, 20)
            assert.is_true(seconds > 0.3 and seconds < 10, framing .. " took " .. seconds)
            assert.matches("\r\n\r\ntimeout\n$", answer)
        end
    end)

    it("reads an answer as fast as it comes leaves other clients their turns", function()
        for _, protocol in ipairs { "--http1.1", "--http2-prior-knowledge" } do
            local words = "curl -sN --max-time 6 %s http://%s/endless | (head -c 1; wc -c)"
            local reading = assert(io.popen(words:format(protocol, server.address)))
            assert.equal("x", reading:read(1))
            local began_at = now()
            for _ = 1, 5 do
                local other = server:connect()
                assert.equal(200, (other:get("/a")))
                other:close()
            end
            assert.is_true(now() - began_at < 5, protocol)
            assert.is_true(tonumber(reading:read("*a")) > 1e6)
            reading:close()
        end
    end)

    it("does not send the body that nobody reads is cut off in time", function()
        local client = server:connect()
        client:send("POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n")
        local began_at = now()
        assert.matches("POST /a nil\n$", client:rest())
        assert.is_true(now() - began_at < 10)
        client:close()
    end)

    it("does not read its answer is cut off in time, and what made the answer stops", function()
        local n_before = server:n_finished()
        local client = server:connect()
        client:send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n")
        local other = server:connect()
        other:send("GET /big?20000000 HTTP/1.1\r\nhost: a\r\n\r\n")
        assert.is_true(eventually(function() return server:n_finished() == n_before + 2 end))
        client:close()
        other:close()
    end)

    it("says nothing is cut off in time, before the first request and between two", function()
        local client, began_at = server:connect(), now()
        assert.equal("", client:rest())
        local other = server:connect()
        other:get("/a")
        assert.equal("", other:rest())
        assert.is_true(now() - began_at < 10)
    end)

    it("waits for events is not cut off, however quiet it is", function()
        local client = server:connect()
        client:send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n")
        while not client:some():find("hello") do end
        local piece, why = client.socket:xread(-1, "b", 1.2)
        assert.is_nil(piece)
        assert.equal(require("cqueues.errno").ETIMEDOUT, why)
        client:close()
    end)

    it("comes when there are too many waits until another has gone", function()
        local clients = {}
        for i = 1, 20 do
            clients[i] = server:connect()
            clients[i]:send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n")
            clients[i]:some()
        end
        local late = server:connect()
        late:send("GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
        assert.is_nil((late.socket:xread(-1, "b", 0.3)))
        late.socket:clearerr()
        clients[7]:close()
        assert.equal(200, (late:answer()))
        for _, client in ipairs(clients) do
            client:close()
        end
        late:close()
    end)
end)
