-- SPDX-License-Identifier: MIT
--
-- The HTTP server as decent clients of HTTP/1 see it, and what its log says about them.

local http_server = require "spec.support.http_server"

local eventually = http_server.eventually

describe("the server", function()
    local server

    setup(function()
        server = http_server.start()
    end)

    teardown(function()
        server:stop()
    end)

    it("tells its real address when any port would do", function()
        assert.matches("^127%.0%.0%.1:[1-9]%d*$", server.address)
    end)

    it("gives the handler the method, the path as sent, and the query behind it", function()
        local client = server:connect()
        local status, body = client:get("/a%20b/c?x=1&y=%3f?z")
        assert.equal(200, status)
        assert.equal("GET /a%20b/c x=1&y=%3f?z\n", body)
        assert.equal("GET /a nil\n", select(2, client:get("/a")))
        assert.equal("GET /a x\n", select(2, client:get("http://host/a?x")))
        client:close()
    end)

    it("answers with a date, the body's length, and the handler's fields", function()
        local client = server:connect()
        local _, _, head = client:get("/a")
        assert.matches("\r\ndate: %a%a%a, %d%d %a%a%a %d%d%d%d %d%d:%d%d:%d%d GMT\r\n", head)
        assert.matches("\r\ncontent%-length: 11\r\n", head)
        assert.matches("\r\ncontent%-type: text/plain\r\n", head)
        client:close()
    end)

    it("joins a field that comes twice and finds none that is absent", function()
        local client = server:connect()
        client:send("GET /header?x-a HTTP/1.1\r\nHost: a\r\nX-A: 1 \r\nx-a:\t2\r\n\r\n")
        assert.equal("1, 2\n", select(2, client:answer()))
        assert.equal("nil\n", select(2, client:get("/header?x-b")))
        client:close()
    end)

    it("answers pipelined requests in order, slow ones too", function()
        local client = server:connect()
        client:send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\n\r\n"
            .. "POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"
            .. "GET /4 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        local bodies = {}
        for i = 1, 4 do
            bodies[i] = select(2, client:answer())
        end
        assert.same({ "slow\n", "GET /2 nil\n", "3 bytes: abc\n", "GET /4 nil\n" }, bodies)
        assert.equal("", client:rest())
        client:close()
    end)

    it("gives the headers alone for HEAD, with the length that GET would have", function()
        local client = server:connect()
        client:send("HEAD /a HTTP/1.1\r\nhost: a\r\n\r\n")
        local status, _, head = client:answer(true)
        assert.equal(200, status)
        assert.matches("\r\ncontent%-length: 12\r\n", head)
        client:send("HEAD /chunks HTTP/1.1\r\nhost: a\r\n\r\n")
        assert.equal(200, (client:answer(true)))
        assert.equal("GET /b nil\n", select(2, client:get("/b")))
        client:close()
    end)

    it("sends no length with 204", function()
        local client = server:connect()
        local status, _, head = client:get("/empty")
        assert.equal(204, status)
        assert.is_nil(head:find("content-length", 1, true))
        client:close()
    end)

    it("closes after an answer on HTTP/1.0, unless asked to keep the connection", function()
        assert.matches("GET /a nil\n$", server:exchange("GET /a HTTP/1.0\r\n\r\n"))
        local client = server:connect()
        client:send("GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
        local _, _, head = client:answer()
        assert.matches("\r\nconnection: keep%-alive\r\n", head)
        client:send("GET /b HTTP/1.0\r\n\r\n")
        assert.equal("GET /b nil\n", select(2, client:answer()))
        client:close()
    end)

    it("reads bodies by length and in chunks, with extensions and trailers", function()
        local client = server:connect()
        client:send("POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello")
        assert.equal("5 bytes: hello\n", select(2, client:answer()))
        client:send("POST /body HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
            .. "5;name=value\r\nhello\r\nA\r\n, worlds 1\r\n0\r\nx-trailer: 1\r\n\r\n")
        assert.equal("15 bytes: hello, worlds 1\n", select(2, client:answer()))
        client:send("POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
        assert.equal("0 bytes: \n", select(2, client:answer()))
        assert.equal(200, (client:get("/a")))
        client:close()
    end)

    it("says 100 Continue to a client that waits for it", function()
        local client = server:connect()
        client:send("POST /body HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n"
            .. "content-length: 5\r\n\r\n")
        assert.equal(100, (client:answer()))
        client:send("hello")
        assert.equal("5 bytes: hello\n", select(2, client:answer()))
        client:close()
    end)

    it("does not ask for a body that it will not read", function()
        local rest = server:exchange("POST /body?3 HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n"
            .. "content-length: 5\r\n\r\n")
        assert.matches("^HTTP/1.1 413 ", rest)
        assert.matches("\r\nconnection: close\r\n", rest)
    end)

    it("keeps the connection when the handler left a small body unread", function()
        local client = server:connect()
        client:send("POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 35\r\n\r\n"
            .. "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n")
        assert.equal("POST /a nil\n", select(2, client:answer()))
        assert.equal("GET /b nil\n", select(2, client:get("/b")))
        client:close()
    end)

    it("closes the connection when a large body was left unread, and the answer arrives", function()
        local client = server:connect()
        client:send("POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 300000\r\n\r\n")
        client:send(("x"):rep(200000))
        local rest = client:rest()
        assert.matches("^HTTP/1.1 413 ", rest)
        assert.matches("too_large\n$", rest)
        client:close()
    end)

    it("sends what a body function gives at once, chunk by chunk", function()
        local client = server:connect()
        client:send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n")
        local text = ""
        while not text:find("\r\n\r\n.*hello") do
            text = text .. client:some()
        end
        assert.matches("\r\ntransfer%-encoding: chunked\r\n", text)
        assert.matches("\r\n\r\n9\r\n: hello\n\n\r\n$", text)
        client:close()
    end)

    it("ends a stream properly, and by closing on HTTP/1.0", function()
        assert.equal("chunk 1\nchunk 2\nchunk 3\n", server:curl("http://{}/chunks"))
        local rest = server:exchange("GET /chunks HTTP/1.0\r\n\r\n")
        assert.matches("\r\n\r\nchunk 1\nchunk 2\nchunk 3\n$", rest)
        assert.is_nil(rest:find("transfer-encoding", 1, true))
    end)

    it("leaves a stream without its end when the body function raises", function()
        local output = server:curl("http://{}/breaks")
        assert.matches("transfer closed with outstanding read data", output)
        server:logged("secret reason")
        server:curl("http://{}/ends_early")
        local line = server:logged("/ends_early")
        assert.matches('^info .* error=no more to be had incomplete=true ', line)
    end)

    it("calls finish once: after the end, when the body raises, when the client goes", function()
        local n_before = server:n_finished()
        server:curl("http://{}/chunks")
        server:curl("http://{}/breaks")
        server:curl("-I http://{}/chunks")
        local client = server:connect()
        client:send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n")
        client:some()
        client:close()
        local other = server:connect()
        other:send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n")
        other:some()
        other:close()
        assert.is_true(eventually(function() return server:n_finished() == n_before + 5 end))
        assert.is_true(eventually(function() return server:curl("http://{}/active") == "1 1" end))
        assert.equal(n_before + 5, server:n_finished())
    end)

    it("tells the handler when its client has hung up", function()
        local n_before = server:n_finished()
        for i, protocol in ipairs { "--http1.1", "--http2-prior-knowledge" } do
            local output = server:curl(protocol .. " --max-time 0.3 http://{}/patient")
            assert.matches("timed out", output)
            assert.is_true(eventually(function() return server:n_finished() == n_before + i end))
        end
        assert.is_true(eventually(function() return server:curl("http://{}/active") == "1 1" end))
    end)

    it("answers 500 when the handler fails, and says why in the log alone", function()
        local answer = server:curl("-i http://{}/raise")
        assert.matches("^HTTP/1.1 500 ", answer)
        assert.matches('\r\n\r\n{"error":{"code":"internal","hint":"the server\'s log has more",'
            .. '"message":"internal error"}}\n$', answer)
        server:logged("secret reason")
        assert.matches("^HTTP/1.1 500 ", server:curl("-i http://{}/nothing"))
        assert.matches("^HTTP/1.1 500 ", server:curl("-i http://{}/split"))
    end)

    it("writes one line for each request to the access log", function()
        server:curl("http://{}/chunks?2")
        local line = server:logged("bytes=16 caller=alice method=GET path=/chunks ")
        assert.matches("^info request ", line)
        for _, field in ipairs { "status=200", "peer=127%.0%.0%.1:%d+", "protocol=HTTP/1%.1",
            "seconds=[%d.e-]+" } do
            assert.matches(field, line)
        end
        server:curl("http://{}/" .. ("y"):rep(1000))
        assert.is_true(#server:logged("path=/yyy") < 500)
        server:curl("-X " .. ("Z"):rep(1000) .. " http://{}/z")
        assert.is_true(#server:logged("path=/z") < 500)
        server:curl("-d aaaa 'http://{}/body?2'")
        assert.matches("code=too_large", server:logged("code=too_large method=POST path=/body "))
    end)

    it("sends a large body to a client that reads in its own time", function()
        local client = server:connect()
        client:send("GET /big?3000000 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert.equal(200, (server:connect():get("/a")))
        local rest = client:rest()
        assert.equal(3000000, #rest:match("\r\n\r\n(.*)$"))
        client:close()
    end)
end)
