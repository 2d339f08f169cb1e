-- SPDX-License-Identifier: MIT
--
-- The HTTP server over HTTP/2: what clients of that get, and what it does about those that are
-- broken, slow or mean.

local h2_client = require "spec.support.h2_client"
local http_server = require "spec.support.http_server"

local eventually = http_server.eventually
local bytes_of, setting = h2_client.bytes_of, h2_client.setting
local unpack = table.unpack or unpack

local NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR = 0x0, 0x1, 0x2
local FLOW_CONTROL_ERROR, REFUSED_STREAM, CALM = 0x3, 0x7, 0xb
local PRIOR = "--http2-prior-knowledge "

local function code_of(frame)
    return frame and h2_client.number_of(frame.payload)
end

describe("over HTTP/2 the server", function()
    local server

    setup(function()
        server = http_server.start { limits = {
            head_seconds = 0.5, body_seconds = 0.5, stalled_seconds = 0.5, idle_seconds = 0.5,
            linger_seconds = 0.3, streams = 10,
        } }
    end)

    teardown(function()
        server:stop()
    end)

    local function connect(settings)
        return h2_client.connect(server.address, settings)
    end

    it("answers as over HTTP/1", function()
        assert.equal("GET /a x\n", server:curl(PRIOR .. "'http://{}/a?x'"))
        assert.equal("5 bytes: hello\n", server:curl(PRIOR .. "-d hello http://{}/body"))
        assert.equal("too_large\n", server:curl(PRIOR .. "-d hello 'http://{}/body?3'"))
        local twice = "-H 'x-a: 1' -H 'x-a: 2' 'http://{}/header?x-a'"
        assert.equal("1, 2\n", server:curl(PRIOR .. twice))
        assert.equal("chunk 1\nchunk 2\nchunk 3\n", server:curl(PRIOR .. "http://{}/chunks"))
        assert.matches("^HTTP/2 204 \r\n", server:curl(PRIOR .. "-i http://{}/empty"))
        assert.matches("\r\ncontent%-length: 12\r\n", server:curl(PRIOR .. "-I http://{}/a"))
        assert.equal(3000000, #server:curl(PRIOR .. "'http://{}/big?3000000'"))
        assert.matches("^HTTP/2 500 .*internal error", server:curl(PRIOR .. "-i http://{}/raise"))
        assert.matches("protocol=HTTP/2", server:logged("path=/chunks "))
    end)

    it("answers many requests on one connection, each when it is ready", function()
        local client = connect()
        client:request(1, "GET", "/slow")
        client:request(3, "GET", "/a")
        assert.equal("GET /a nil\n", client:body(3))
        assert.equal("slow\n", client:body(1))
        client:close()
    end)

    it("resets a stream whose body function raises, so that the client sees it", function()
        local client = connect()
        client:request(1, "GET", "/breaks")
        assert.equal(INTERNAL_ERROR, code_of(client:await("RST_STREAM", 1)))
        client:request(3, "GET", "/ends_early")
        assert.equal(INTERNAL_ERROR, code_of(client:await("RST_STREAM", 3)))
        assert.matches("error=no more to be had", server:logged("/ends_early"))
        client:request(5, "GET", "/a")
        assert.equal("GET /a nil\n", client:body(5))
        client:close()
    end)

    it("calls finish when the client gives up a stream, or goes", function()
        local n_before = server:n_finished()
        local client = connect()
        client:request(1, "GET", "/events")
        assert.equal(": hello\n\n", client:await("DATA", 1).payload)
        client:send("RST_STREAM", 0, 1, bytes_of(8, 4))
        assert.is_true(eventually(function() return server:n_finished() == n_before + 1 end))
        client:request(3, "GET", "/events")
        client:await("DATA", 3)
        client:close()
        assert.is_true(eventually(function() return server:n_finished() == n_before + 2 end))
    end)

    it("tells a client early that it reads no more of a body", function()
        local client = connect()
        client:request(1, "POST", "/body?3", nil, true)
        client:send("DATA", 0, 1, "hello")
        assert.equal("too_large\n", client:body(1))
        assert.equal(NO_ERROR, code_of(client:await("RST_STREAM", 1)))
        client:send("DATA", h2_client.END_STREAM, 1, "on its way already")
        client:request(3, "GET", "/a")
        assert.equal("GET /a nil\n", client:body(3))
        client:close()
    end)

    it("refuses a body that is not as long as its length says", function()
        local client = connect()
        client:request(1, "POST", "/body", { ["content-length"] = "9" }, true)
        client:send("DATA", h2_client.END_STREAM, 1, "hello")
        assert.matches("bad_request", client:body(1))
        client:request(3, "POST", "/body", { ["content-length"] = "three" }, true)
        assert.matches("bad_request", client:body(3))
        client:close()
    end)

    it("answers 431 to a head that is too large and goes on", function()
        local client = connect()
        local more = {}
        for i = 1, 9 do
            more["x-" .. i] = ("x"):rep(2000)
        end
        local block = client:block("GET", "/a", more)
        client:send("HEADERS", h2_client.END_STREAM, 1, block:sub(1, 16000))
        client:send("CONTINUATION", h2_client.END_HEADERS, 1, block:sub(16001))
        assert.matches("header fields are larger", client:body(1))
        client:request(3, "GET", "/a")
        assert.equal("GET /a nil\n", client:body(3))
        client:close()
    end)

    it("keeps to the small header table that a client asks for", function()
        local client = connect(setting(1, 0))
        for id = 1, 9, 2 do
            client:request(id, "GET", "/a")
            local headers = client:await("HEADERS", id)
            -- No field is taken from or put into a table: indexes 62 and up, "01" in front.
            assert.is_nil(headers.payload:find("[\190-\255]", 2))
        end
        client:close()
        assert.equal("GET /a nil\n", server:curl(PRIOR .. "http://{}/a"))
    end)

    it("refuses streams beyond the limit that it announced", function()
        local client = connect()
        assert.matches(setting(3, 10), client:await("SETTINGS").payload, 1, true)
        for id = 1, 21, 2 do
            client:request(id, "GET", "/events")
        end
        local refused = client:await("RST_STREAM")
        assert.same({ 21, REFUSED_STREAM }, { refused.id, code_of(refused) })
        client:close()
    end)

    -- Does it until the server has enough, and gives the code of its goodbye.
    local function annoy(act)
        local client = connect()
        for i = 1, 20000 do
            if not act(client, i) then
                break
            end
        end
        local code = client:goodbye()
        client:close()
        return code
    end

    it("says goodbye to a client that asks for nothing, again and again", function()
        assert.equal(CALM, annoy(function(client)
            return client:send("PING", 0, 0, "12345678")
        end))
        assert.equal(CALM, annoy(function(client)
            return client:send("SETTINGS", 0, 0, "")
        end))
        assert.equal(CALM, annoy(function(client)
            return client:send("PRIORITY", 0, 1, "\0\0\0\3\9")
        end))
        assert.equal(CALM, annoy(function(client, i)
            return client:request(2 * i - 1, "GET", "/events")
                and client:send("RST_STREAM", 0, 2 * i - 1, bytes_of(8, 4))
        end))
        assert.equal(CALM, annoy(function(client, i)
            if i == 1 then
                return client:send("HEADERS", 0, 1, "")
            end
            return client:send("CONTINUATION", 0, 1, "")
        end))
        assert.equal(CALM, annoy(function(client, i)
            if i == 1 then
                return client:request(1, "POST", "/slow", nil, true)
            end
            return client:send("DATA", 0, 1, "")
        end))
        assert.equal("GET /a nil\n", server:curl("http://{}/a"))
    end)

    it("does not take more data into memory than it gave window for", function()
        assert.equal(FLOW_CONTROL_ERROR, annoy(function(client, i)
            if i == 1 then
                return client:request(1, "POST", "/slow", nil, true)
            end
            return client:send("DATA", 0, 1, ("x"):rep(16384))
        end))
    end)

    it("gives back the window of what it read, so that bodies may be longer", function()
        local path = os.tmpname()
        local file = assert(io.open(path, "w"))
        file:write(("x"):rep(1000000))
        file:close()
        local words = PRIOR .. "--data-binary @" .. path .. " 'http://{}/body?2000000'"
        assert.equal("1000000 bytes: xxxxxxxxxxxxxxxxxxxx\n", server:curl(words))
        os.remove(path)
    end)

    it("ends the connection over frames that make no sense, and no other", function()
        local before = tonumber(server:curl("http://{}/memory"))
        for name, frames in pairs {
            first_is_no_settings = false,
            idle_data = { "DATA", 0, 1, "x" },
            idle_reset = { "RST_STREAM", 0, 1, bytes_of(0, 4) },
            idle_window = { "WINDOW_UPDATE", 0, 1, bytes_of(1, 4) },
            even = { "HEADERS", 5, 2, "\130\132\134" },
            zero = { "HEADERS", 5, 0, "\130\132\134" },
            padding = { "HEADERS", 13, 1, "\255\130" },
            no_padding = { "HEADERS", 13, 1, "" },
            table_index = { "HEADERS", 5, 1, "\255\255\255\127" },
            cut_block = { "HEADERS", 5, 1, "\130\132\134\65\127" },
            no_path = { "HEADERS", 5, 1, "\130\134" },
            window = { "WINDOW_UPDATE", 0, 0, bytes_of(0, 4) },
            short_ping = { "PING", 0, 0, "1" },
            settings = { "SETTINGS", 0, 0, "\0\4\255\255\255\255" },
            lonely = { "CONTINUATION", 4, 1, "" },
        } do
            local client = http_server.connect(server.address)
            client:send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            if frames then
                client:send(h2_client.frame("SETTINGS", 0, 0, ""))
                client:send(h2_client.frame(unpack(frames)))
            else
                client:send(h2_client.frame("PING", 0, 0, "12345678"))
            end
            assert.is_true(#client:rest(3) > 0, name)
            client:close()
        end
        assert.equal("GET /a nil\n", server:curl("http://{}/a"))
        assert.is_true(tonumber(server:curl("http://{}/memory")) < before + 500)
    end)

    it("does not bother the log with a client that goes in the middle of a frame", function()
        local n_before = #server.folder:lines("log")
        for n = 1, 20 do
            local client = connect()
            client.client:send(h2_client.frame("HEADERS", 5, 1, "\130\132\134"):sub(1, n - 1))
            client:close()
        end
        server:curl("http://{}/last")
        server:logged("path=/last")
        for _, line in ipairs { unpack(server.folder:lines("log"), n_before + 1) } do
            assert.matches("^info request ", line)
        end
    end)

    it("cuts off who is silent, slow to begin, slow with headers, or with a body", function()
        local silent = connect()
        assert.equal(NO_ERROR, silent:goodbye())
        local slow = http_server.connect(server.address)
        slow:send("PRI * HTTP/2.0\r\n\r\n")
        assert.equal("", slow:rest())
        local headers = connect()
        headers:send("HEADERS", 1, 1, "\130")
        assert.is_not_nil(headers:goodbye())
        local body = connect()
        body:request(1, "POST", "/body", nil, true)
        assert.equal("timeout\n", body:body(1))
    end)

    it("gives up an answer that its client does not take", function()
        local n_before = server:n_finished()
        local windowless = connect(setting(4, 0))
        windowless:request(1, "GET", "/endless")
        local deaf = connect(setting(4, 2 ^ 31 - 1))
        deaf:send("WINDOW_UPDATE", 0, 0, bytes_of(2 ^ 30, 4))
        deaf:request(1, "GET", "/endless")
        assert.is_true(eventually(function() return server:n_finished() == n_before + 2 end))
        windowless:close()
        deaf:close()
    end)

    it("refuses requests that HTTP/1 would have refused", function()
        local client = connect()
        client:request(1, "GET", "/a b")
        assert.matches("bad_request", client:body(1))
        client:request(3, "G T", "/a")
        assert.matches("bad_request", client:body(3))
        client:request(5, "GET", "/a", { ["x-a"] = "1\r\nx-b: 2" })
        assert.matches("bad_request", client:body(5))
        client:request(7, "POST", "/body", { ["transfer-encoding"] = "chunked" })
        assert.matches("bad_request", client:body(7))
        client:request(9, "GET", "/" .. ("x"):rep(13000))
        assert.matches("longer than", client:body(9))
        client:request(11, "GET", "/a", { ["Upper"] = "case" })
        assert.equal(PROTOCOL_ERROR, client:goodbye())
        client:close()
    end)
end)
