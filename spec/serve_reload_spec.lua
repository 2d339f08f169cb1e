-- SPDX-License-Identifier: MIT
--
-- A server and its configuration: what SIGHUP changes, what it refuses, and what a server does not
-- start with.

local callers = require "spec.support.tokens"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local make_certificate = require "spec.support.certificate"
local service = require "spec.support.service"

local tokens, bearer = callers.section, callers.bearer

describe("SIGHUP", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("lets new tokens in and removed ones not", function()
        local server = service.start { more = tokens("ann", "bob") }
        local function statuses()
            local list = {}
            for i, name in ipairs { "ann", "bob", "cid" } do
                list[i] = server:curl("/v1/batches", bearer(name)).status
            end
            return list
        end
        assert.same({ 200, 200, 401 }, statuses())
        server:reload { more = tokens("ann", "cid") }
        assert.same({ 200, 401, 200 }, statuses())
    end)

    it("changes the log's level", function()
        local server = service.start { more = tokens "ann" }
        server:curl "/healthz"
        server:await_line "path=/healthz"
        server:reconfigure { log = 'level = "warn"', more = tokens "bob" }
        eventually(function() return server:curl("/v1/batches", bearer "bob").status == 200 end)
        server:curl "/readyz"
        server:reload { more = tokens "ann" }
        server:curl "/metrics"
        server:await_line "path=/metrics"
        assert.is_nil(server:line_with "path=/readyz")
    end)

    it("has new connections get the new certificate", function()
        local certificate, _, section = make_certificate "before"
        local server = service.start { server = section }
        assert.equal(200, server:curl("/healthz", "--cacert " .. certificate).status)
        local old = fresh.path "old.pem"
        os.execute(("cp %s %s"):format(certificate, old))
        make_certificate "after"
        server:reload { server = section }
        assert.equal(200, server:curl("/healthz", "--cacert " .. certificate).status)
        assert.equal(0, server:curl("/healthz", "--cacert " .. old).status)
    end)

    it("keeps all as it was when anything of the new configuration is wrong", function()
        local certificate, key, section = make_certificate()
        local server = service.start { server = section, more = tokens "ann" }
        local good = { server = section, more = tokens "bob" }
        local cases = {
            { "a word that is no TOML", good.more .. "\nnonsense" },
            { "an unknown key", good.more .. "\n[batch]\nworker = 3" },
            { "another address", { server = section .. '\nlisten = "127.0.0.1:1"',
                more = good.more } },
            { "TLS no longer", { more = good.more } },
            { "a certificate that is missing", { server = section:gsub("certificate.pem",
                "missing.pem"), more = good.more } },
            { "a key of another certificate", good, function()
                local twin = fresh.path "twin.pem"
                os.execute(("cp %s %s"):format(certificate, twin))
                make_certificate()
                os.execute(("cp %s %s"):format(twin, certificate))
                return key
            end },
        }
        for _, case in ipairs(cases) do
            local ca = fresh.path "ca.pem"
            os.execute(("cp %s %s"):format(certificate, ca))
            if case[3] then
                case[3]()
            end
            server:reload(case[2])
            assert.is_string(server:line_with "not reloaded, all is as before", case[1])
            assert.equal(200, server:curl("/v1/batches", "--cacert " .. ca .. " "
                .. bearer "ann").status, case[1])
            assert.equal(401, server:curl("/v1/batches", "--cacert " .. ca .. " "
                .. bearer "bob").status, case[1])
        end
        assert.equal(#cases, select(2, server:log():gsub("not reloaded", "")))
    end)

    it("may come often and costs nothing that stays", function()
        local _, _, section = make_certificate()
        local server = service.start { server = section, more = tokens "ann" }
        local function usage()
            local pipe = io.popen(("grep VmRSS /proc/%d/status; ls /proc/%d/fd | wc -l"):format(
                server.pid, server.pid))
            local kib, n_files = pipe:read("*a"):match "(%d+) kB\n(%d+)"
            pipe:close()
            return tonumber(kib), tonumber(n_files)
        end
        local function reload_often(n)
            os.execute(("for i in $(seq %d); do kill -s HUP %d; sleep 0.004; done"):format(n,
                server.pid))
            server:reload { server = section, more = tokens "ann" }
        end
        reload_often(50)
        local kib, n_files = usage()
        reload_often(400)
        local kib_after, n_files_after = usage()
        assert.equal(n_files, n_files_after)
        local n_reloads = select(2, server:log():gsub("reloaded", ""))
        -- Signals that wait are one.
        assert.is_true(n_reloads > (os.getenv "SANITIZER" and 20 or 100), n_reloads)
        if not os.getenv "SANITIZER" then -- it keeps what was freed
            -- A context of TLS has some 35 KiB; those that wait for the collector are few.
            assert.is_true(kib_after - kib < 6144, kib .. " KiB grew to " .. kib_after)
        end
    end)
end)

describe("a server does not start", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local function start_and_fail(config)
        local server = service.launch(config)
        return (server:wait(20)), server:log(), server
    end

    it("with a configuration that is wrong, and names file, line and key: 2", function()
        local cases = {
            { "[batch]\nworkers = 2\n\nworker = 3\n", ":4: .*worker.*workers" },
            { "[batch]\nworkers = 'many'\n", ":2: .*workers" },
            { "[server]\nlisten = 80\n", ":2: .*listen" },
            { "[server\n", ":1" },
            { "[server]\ntls_key = 'k.pem'\n", "tls_certificate" },
        }
        for _, case in ipairs(cases) do
            local code, log, server = start_and_fail(case[1])
            assert.equal(2, code, case[1])
            assert.is_string(log:match(server.config:gsub("%W", "%%%0") .. case[2])
                or log:match(case[2]), log)
            assert.is_nil(io.open(fresh.path "batch.db"))
        end
    end)

    it("with a fetch that is missing: 2", function()
        local code, log = start_and_fail { batch = 'fetch = "no.such.module"' }
        assert.equal(2, code)
        assert.matches("no.such.module", log)
    end)

    it("with certificates that cannot be read: 2", function()
        local code, log = start_and_fail {
            server = 'tls_certificate = "/no/such.pem"\ntls_key = "/no/key.pem"' }
        assert.equal(2, code)
        assert.matches("/no/such.pem", log)
    end)

    it("where everyone would get in: 2, and how to keep them out", function()
        local code, log = start_and_fail { server = 'listen = "0.0.0.0:0"' }
        assert.equal(2, code)
        assert.matches("server.listen = \\\"0.0.0.0:0\\\" lets everyone in who reaches it: add an "
            .. "[[auth.token]], or listen on 127.0.0.1, [::1], localhost or a unix socket", log, 1,
            true)
        local server = service.start { server = 'listen = "0.0.0.0:0"', more = tokens "ann" }
        assert.equal(401, server:curl("/v1/batches").status)
    end)

    it("where the address cannot be had: 3", function()
        local server = service.start()
        local taken = server.base:match "127.*"
        local code, log = start_and_fail { server = ('listen = "%s"'):format(taken),
            batch = ('store = "%s"'):format(fresh.path "other.db") }
        assert.equal(3, code)
        assert.matches("cannot listen on " .. taken .. ": address already in use", log, 1, true)
        code, log = start_and_fail { server = 'listen = "192.0.2.1:8080"', more = tokens "ann" }
        assert.equal(3, code)
        assert.matches("cannot listen on 192.0.2.1:8080: ", log, 1, true)
        code = start_and_fail { server = 'listen = "unix:/no/such/folder/http.sock"' }
        assert.equal(3, code)
    end)
end)

describe("luabatch serve --print-config", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("prints a configuration that a server starts with", function()
        local pipe = assert(io.popen "luabatch serve --print-config")
        local text = pipe:read "*a"
        pipe:close()
        assert.matches('\nlisten = "127.0.0.1:8080"', text, 1, true)
        text = text:gsub('listen = "127.0.0.1:8080"', 'listen = "127.0.0.1:0"')
            :gsub('store = "batch.db"', ('store = "%s"'):format(fresh.path "batch.db"))
        local server = service.start(text)
        assert.equal(200, server:curl("/readyz").status)
    end)
end)
