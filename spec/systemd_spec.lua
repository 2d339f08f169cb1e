-- SPDX-License-Identifier: MIT
--
-- The service under systemd: what it tells its manager, and the unit that starts it.

local fresh = require "spec.support.fresh"
local socket = require "cqueues.socket"
local systemd = require "batch.systemd"

describe("a service", function()
    local getenv = os.getenv
    local manager_path

    before_each(function()
        fresh.start()
        manager_path = nil
        rawset(os, "getenv", function(name)
            if name == "NOTIFY_SOCKET" then
                return manager_path
            end
            return getenv(name)
        end)
    end)

    after_each(function()
        rawset(os, "getenv", getenv)
        fresh.finish()
    end)

    local function listen()
        manager_path = fresh.path "notify.sock"
        local manager = socket.listen { path = manager_path, type = socket.SOCK_DGRAM }
        manager:listen()
        return fresh.keep(manager)
    end

    it("tells its manager that it is ready", function()
        local manager = listen()
        assert.is_true(systemd.notify("READY=1"))
        assert.equal("READY=1", manager:recv(-100))
    end)

    it("tells several things in one datagram", function()
        local manager = listen()
        assert.is_true(systemd.notify("STOPPING=1\nSTATUS=waiting for 3 fetches"))
        assert.is_true(systemd.notify("READY=1"))
        assert.equal("STOPPING=1\nSTATUS=waiting for 3 fetches", manager:recv(-100))
    end)

    it("has nobody to tell without a manager, and goes on", function()
        assert.is_true(systemd.notify("READY=1"))
        manager_path = ""
        assert.is_true(systemd.notify("READY=1"))
    end)

    it("is told when its manager is not there", function()
        manager_path = fresh.path "nobody.sock"
        assert.same({ nil, "cannot notify " .. manager_path .. ": No such file or directory",
            "notify" }, { systemd.notify("READY=1") })
    end)

    it("refuses an address that it would get wrong", function()
        manager_path = "@/org/example/notify"
        assert.same({ nil, "cannot notify @/org/example/notify: not an absolute path", "notify" },
            { systemd.notify("READY=1") })
        manager_path = "/" .. ("x"):rep(107)
        assert.equal("cannot notify " .. manager_path .. ": the path is too long",
            select(2, systemd.notify("READY=1")))
    end)
end)

describe("the unit for systemd", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    -- The example with programs that there are here, in a file of the same name.
    local function installed_unit()
        local file = assert(io.open("examples/luabatch.service", "rb"))
        local text, count = file:read("*a"):gsub("\nExecStart=%S+", "\nExecStart=/bin/true")
        file:close()
        assert.equal(1, count)
        local path = fresh.path "luabatch.service"
        file = assert(io.open(path, "wb"))
        file:write(text)
        file:close()
        return path
    end

    -- What systemd-analyze prints, and how it ends.
    local function analyze(arguments)
        local pipe = assert(io.popen(
            "command -v systemd-analyze >/dev/null || exit 0; systemd-analyze " .. arguments
            .. " 2>&1; echo $?"))
        local output, status = pipe:read("*a"):match("^(.-)(%d+)\n$")
        pipe:close()
        if not output then
            pending("needs systemd-analyze")
        end
        return output, tonumber(status)
    end

    it("is one that systemd reads without complaint", function()
        local output, status = analyze("verify --man=no --recursive-errors=no " .. installed_unit())
        assert.equal("", output)
        assert.equal(0, status)
    end)

    it("may do little more than it needs", function()
        local output, status = analyze("security --offline=yes --no-pager --threshold=20 "
            .. installed_unit())
        assert.equal(0, status, output)
    end)
end)
