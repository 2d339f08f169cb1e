-- SPDX-License-Identifier: MIT
--
-- The HTTP server from listening to its end: addresses, socket files, certificates, stopping.

local h2_client = require "spec.support.h2_client"
local http_server = require "spec.support.http_server"
local lfs = require "lfs"

local eventually, now = http_server.eventually, http_server.now

local servers, folder

local function start(options)
    servers[#servers + 1] = http_server.start(options)
    return servers[#servers]
end

before_each(function()
    local pipe = assert(io.popen("mktemp -d"))
    servers, folder = {}, pipe:read("l")
    pipe:close()
end)

after_each(function()
    for _, server in ipairs(servers) do
        server:stop()
    end
    os.execute("rm -rf " .. folder)
end)

describe("an address", function()
    it("may be of IPv6, or a name", function()
        local six = start { listen = "[::1]:0" }
        assert.matches("^%[::1%]:%d+$", six.address)
        assert.equal("GET /a nil\n", select(2, six:connect():get("/a")))
        six:logged("peer=[::1]:")
        assert.matches("^127%.0%.0%.1:%d+$", start { listen = "localhost:0" }.address)
    end)

    it("that somebody has is refused with the code address", function()
        local first = start()
        local second = start { listen = first.address }
        assert.equal("address: cannot listen on " .. first.address
            .. ": address already in use", second.address)
    end)

    it("that makes no sense is invalid", function()
        for _, text in ipairs { "", "8080", "localhost", "a:b", "::1:80", "127.0.0.1:65536",
            "unix:", "[::1]", "http://127.0.0.1:80" } do
            assert.matches('^invalid: listen must be .*, got "', start { listen = text }.address)
        end
    end)

    it("that cannot be had names why", function()
        assert.matches("^address: cannot listen on 192%.0%.2%.1:80: ",
            start { listen = "192.0.2.1:80" }.address)
        assert.matches("^address: cannot listen on unix:/nowhere/socket: no such file",
            start { listen = "unix:/nowhere/socket" }.address)
    end)
end)

describe("a socket file", function()
    local path, listen

    before_each(function()
        path = folder .. "/batch.sock"
        listen = "unix:" .. path
    end)

    it("is its owner's alone, serves, and is gone at the end", function()
        local server = start { listen = listen }
        assert.equal(listen, server.address)
        assert.equal("rw-------", lfs.attributes(path, "permissions"))
        assert.equal("GET /a nil\n", select(2, server:connect():get("/a")))
        server:logged("peer=unix")
        server:connect():get("/stop")
        assert.is_true(eventually(function() return lfs.attributes(path) == nil end))
    end)

    it("of a dead server is replaced", function()
        local dead = start { listen = listen }
        dead.process:kill()
        dead.process:wait()
        assert.equal("socket", lfs.attributes(path, "mode"))
        local server = start { listen = listen }
        assert.equal("GET /a nil\n", select(2, server:connect():get("/a")))
    end)

    it("on which somebody listens is refused", function()
        local first = start { listen = listen }
        local second = start { listen = listen }
        assert.matches("^address: cannot listen on .*: address already in use$", second.address)
        assert.equal("GET /a nil\n", select(2, first:connect():get("/a")))
    end)

    it("is refused where another file is, and that stays", function()
        local file = assert(io.open(path, "w"))
        file:write("precious")
        file:close()
        assert.matches("^address: .*that file is no socket$", start { listen = listen }.address)
        assert.equal(8, lfs.attributes(path, "size"))
        assert.matches("^address: ", start { listen = "unix:" .. folder }.address)
    end)
end)

describe("with certificates the server", function()
    local certificate, key

    before_each(function()
        certificate, key = http_server.make_certificate(folder, "first")
    end)

    local function start_tls(limits)
        return start { tls_certificate = certificate, tls_key = key, limits = limits }
    end

    it("speaks HTTP/2 by ALPN, else HTTP/1.1", function()
        local server = start_tls()
        local trust = "--cacert " .. certificate .. " "
        assert.matches("^HTTP/2 200 .*GET /a nil\n$", server:curl(trust .. "-i https://{}/a"))
        assert.matches("^HTTP/1.1 200 .*GET /a nil\n$",
            server:curl(trust .. "--http1.1 -i https://{}/a"))
        assert.matches("GET /a nil\n$", server:curl(trust .. "--no-alpn https://{}/a"))
        assert.equal(3000000, #server:curl(trust .. "'https://{}/big?3000000'"))
        assert.equal("chunk 1\nchunk 2\nchunk 3\n",
            server:curl(trust .. "--http1.1 https://{}/chunks"))
    end)

    it("answers parallel requests over one connection", function()
        local server = start_tls()
        server:curl("-Z --cacert " .. certificate .. " https://{}/a https://{}/slow https://{}/b")
        local peers = {}
        for _, path in ipairs { "/a", "/slow", "/b" } do
            peers[server:logged("path=" .. path .. " "):match("peer=(%S+)")] = true
        end
        next(peers)
        assert.is_nil(next(peers, next(peers)))
    end)

    it("speaks no TLS older than 1.2", function()
        local server = start_tls()
        local output = server:curl("-k --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0 https://{}/a")
        assert.matches("curl: %(35%)", output)
    end)

    it("cuts off who does not shake hands in time, or speaks plainly", function()
        local server = start_tls { head_seconds = 0.4 }
        local began_at = now()
        assert.equal("", server:connect():rest())
        local slow = server:connect()
        slow:send("\22\3\1\2\0")
        assert.equal("", slow:rest())
        server:exchange("GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
        assert.is_true(now() - began_at < 10)
        assert.equal("GET /a nil\n", server:curl("-k https://{}/a"))
    end)

    it("takes another certificate for new connections", function()
        local server = start_tls()
        local certificate_2, key_2 = http_server.make_certificate(folder, "second")
        local old, new = "--cacert " .. certificate, "--cacert " .. certificate_2
        local reload = (" 'https://{}/reload?%s,%s'"):format(certificate_2, key_2)
        assert.equal("true nil", server:curl(old .. reload))
        assert.equal("GET /a nil\n", server:curl(new .. " https://{}/a"))
        assert.matches("certificate", server:curl(old .. " https://{}/a"))
    end)

    it("keeps the old certificate when the new one cannot be used, and says why", function()
        local server = start_tls()
        local trust = "--cacert " .. certificate
        local _, other_key = http_server.make_certificate(folder, "second")
        for answer, files in pairs {
            ["nil " .. other_key .. " is not the key of the certificate in " .. certificate] =
                certificate .. "," .. other_key,
            ["nil cannot read /nowhere.pem: No such file or directory"] = "/nowhere.pem," .. key,
            ["nil " .. key .. " holds no certificate in PEM form"] = key .. "," .. key,
            ["nil " .. certificate .. " holds no private key in PEM form"] =
                certificate .. "," .. certificate,
        } do
            assert.equal(answer, server:curl(trust .. " 'https://{}/reload?" .. files .. "'"))
        end
        assert.equal("GET /a nil\n", server:curl(trust .. " https://{}/a"))
    end)

    it("does not start without the key or with a broken file", function()
        assert.equal("invalid: tls_certificate and tls_key go together",
            start { tls_certificate = certificate }.address)
        assert.matches("^invalid: cannot read /nowhere%.key: ",
            start { tls_certificate = certificate, tls_key = "/nowhere.key" }.address)
    end)
end)

describe("a server that stops accepting", function()
    it("says so in its last answers, closes idle connections and takes no new ones", function()
        local server = start()
        local idle, busy, streaming = server:connect(), server:connect(), server:connect()
        idle:get("/a")
        busy:send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n")
        streaming:send("GET /chunks?30 HTTP/1.1\r\nhost: a\r\n\r\n")
        streaming:some()
        local _, _, head = server:connect():get("/stop")
        assert.matches("\r\nconnection: close\r\n", head)
        assert.equal("", idle:rest())
        assert.is_false(pcall(server.connect, server))
        assert.matches("\r\nconnection: close\r\n.*slow\n$", busy:rest())
        assert.matches("chunk 30\n\r\n0\r\n\r\n$", streaming:rest())
        assert.equal(0, server.process:wait())
    end)

    it("sends GOAWAY over HTTP/2 and finishes the answers that it began", function()
        local server = start()
        local idle, busy = h2_client.connect(server.address), h2_client.connect(server.address)
        idle:request(1, "GET", "/a")
        idle:body(1)
        busy:request(1, "GET", "/slow")
        busy:request(3, "GET", "/stop")
        busy:body(3)
        assert.equal(0, idle:goodbye())
        assert.equal(0, busy:goodbye())
        assert.equal("slow\n", busy:body(1))
        assert.is_nil(busy:next())
        assert.equal(0, server.process:wait())
    end)

    it("closes idle connections alone when told to, and goes on", function()
        local server = start()
        local idle, events = server:connect(), server:connect()
        idle:get("/a")
        events:send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n")
        events:some()
        local client = server:connect()
        client:get("/close_idle")
        assert.equal("", idle:rest())
        assert.equal("GET /b nil\n", select(2, client:get("/b")))
        assert.equal("2 2", select(2, client:get("/active")))
    end)

    it("gives up every answer when it is closed, and calls finish for each", function()
        local server = start()
        local over_1, over_2 = server:connect(), h2_client.connect(server.address)
        over_1:send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n")
        over_1:some()
        over_2:request(1, "GET", "/events")
        over_2:await("DATA", 1)
        local unread = server:connect()
        unread:send("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n")
        unread:some()
        server:connect():get("/close")
        over_1:rest()
        assert.equal(0, server.process:wait())
        assert.equal(3, server:n_finished())
    end)
end)
