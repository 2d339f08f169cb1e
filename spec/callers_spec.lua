-- SPDX-License-Identifier: MIT
--
-- Who is let in by which header, and where nobody needs one.

local callers = require "batch.callers"
local config = require "batch.config"

-- Of sha256sum, not of the library that is tested.
local ALICE = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90" -- alice
local BOB = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9" -- bob
local ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" -- abc

local UNKNOWN = "the token is unknown"
local MALFORMED = "the Authorization header must be 'Bearer' and one token"

local function two_callers()
    return assert(callers.new {
        { caller = "alice", class = "user", sha256 = ALICE },
        { caller = "bob", class = "", sha256 = BOB },
    })
end

-- Everything that identify says.
local function said(header)
    return { two_callers():identify(header) }
end

describe("a caller", function()
    it("is known by the token", function()
        assert.same({ "alice", "user" }, said "Bearer alice")
        assert.same({ "bob", "" }, said "Bearer bob")
    end)

    it("may write the scheme as it likes, and more than one space", function()
        for _, header in ipairs { "bearer alice", "BEARER alice", "bEaReR   alice" } do
            assert.same({ "alice", "user" }, said(header))
        end
    end)

    it("may have two tokens, while one takes the other's place", function()
        local both = assert(callers.new {
            { caller = "alice", class = "", sha256 = ALICE },
            { caller = "alice", class = "", sha256 = ABC },
        })
        assert.equal("alice", both:identify "Bearer alice")
        assert.equal("alice", both:identify "Bearer abc")
    end)

    it("may use every character that a token may have", function()
        local token = "AZaz09-._~+/=="
        local pipe = assert(io.popen("printf %s '" .. token .. "' | sha256sum"))
        local hash = pipe:read("*a"):match "^%x+"
        pipe:close()
        local one = assert(callers.new { { caller = "c", class = "", sha256 = hash:upper() } })
        assert.equal("c", one:identify("Bearer " .. token))
    end)

    it("comes from a configuration as it is read", function()
        local full = assert(config.parse(
            ('[[auth.token]]\ncaller = "alice"\nsha256 = "%s"'):format(ALICE:upper())))
        local known = assert(callers.new(full.auth.token))
        assert.is_true(known:has_tokens())
        assert.same({ "alice", "" }, { known:identify "Bearer alice" })
    end)
end)

describe("a stranger", function()
    it("without a header is asked for a token", function()
        for _, header in ipairs { false, "" } do
            assert.same({ nil, "a token is needed", "unauthorized" }, said(header or nil))
        end
    end)

    it("with a token that nobody has is refused", function()
        for _, token in ipairs {
            "Alice", "alic", "alicee", "alice=", "a", ALICE, ALICE:upper(), "user", "local",
            ("a"):rep(1024),
        } do
            assert.same({ nil, UNKNOWN, "unauthorized" }, said("Bearer " .. token))
        end
    end)

    for _, header in ipairs {
        "alice", "Bearer", "Bearer ", "Beareralice", "Bearer\talice", "Bearer  ", "Basic alice",
        "Basic YWxpY2U6", "Bearer alice bob", "Bearer alice, Bearer bob", "Bearer alice,",
        "Bearer bob,Bearer alice", "Bearer alice\n", "Bearer alice\0", "\0Bearer alice",
        "Bearer \0alice", "Bearer al\0ice", "Bearer alice\r\nx: y", " Bearer alice",
        "Bearer alice ",
        'Bearer "alice"', "Bearer token=alice", "Bearer =alice", "Bearer ===", "Bearer al=ice",
        "Bearer alïce", "Bearer\194\160alice", "Bearer alice\255", "Bearer %61lice", "Bearer a'--",
        "Bearer ../alice;", "Bearer: alice", "BearerBearer alice", "Bearer Bearer alice",
        "Token alice", "Bearer [%w]", "Bearer *", "Bearer alice#", "Bearer alice?",
    } do
        it(("is refused with %q"):format(header), function()
            assert.same({ nil, MALFORMED, "unauthorized" }, said(header))
        end)
    end

    it("cannot make the server hash without end", function()
        assert.equal(MALFORMED, said("Bearer " .. ("a"):rep(1025))[2])
        assert.equal(MALFORMED, said("Bearer" .. (" "):rep(2 ^ 20) .. "alice")[2])
        assert.equal(MALFORMED, said(("Bearer alice"):rep(2 ^ 16))[2])
    end)

    it("is not told what was sent", function()
        for _, header in ipairs { "Bearer s3cret", "Basic s3cret", "Bearer s3cret s3cret" } do
            assert.is_nil(said(header)[2]:find("s3cret", 1, true))
        end
    end)

    it("does not get in with a hash that differs in one bit", function()
        for place = 1, 64 do
            local digit = tonumber(ALICE:sub(place, place), 16)
            local other = ("%x"):format(digit % 2 == 0 and digit + 1 or digit - 1)
            local hash = ALICE:sub(1, place - 1) .. other .. ALICE:sub(place + 1)
            local near = assert(callers.new { { caller = "c", class = "", sha256 = hash } })
            assert.is_nil((near:identify "Bearer alice"))
        end
    end)
end)

describe("without any token", function()
    it("everybody is the same caller", function()
        local nobody = assert(callers.new {})
        assert.is_false(nobody:has_tokens())
        for _, header in ipairs { false, "", "Bearer alice", "Basic x", ("x"):rep(2 ^ 20) } do
            assert.same({ "local", "" }, { nobody:identify(header or nil) })
        end
    end)

    it("whoever asks for another host is refused: it may be a page in a browser", function()
        local nobody = assert(callers.new {})
        for _, host in ipairs {
            "127.0.0.1", "127.0.0.1:8080", "127.3.2.1:1", "localhost", "LocalHost:8080", "[::1]",
            "[::1]:8080", "localhost:",
        } do
            assert.equal("local", (nobody:identify(nil, host)), host)
        end
        for _, host in ipairs {
            "example.com", "example.com:8080", "127.0.0.1.example.com", "localhost.example.com",
            "127.1", "0.0.0.0:8080", "[::]:8080", "192.0.2.1", "", ":8080", "::1", "localhost:8:8",
            "127.0.0.1, example.com", "localhost\0", "[::1]x",
        } do
            local caller, message, code, hint = nobody:identify("Bearer alice", host)
            assert.is_nil(caller, host)
            assert.equal("unauthorized", code)
            assert.matches("^without tokens only requests to this machine's own address", message)
            assert.matches("localhost", hint)
        end
    end)

    it("what a request is for does not matter to who has a token", function()
        assert.equal("alice", (two_callers():identify("Bearer alice", "example.com")))
    end)

    local REACHED_BY_NOBODY = {
        "127.0.0.1:8080", "127.0.0.1:0", "127.255.255.254:1", "[::1]:8080", "localhost:8080",
        "LocalHost:1", "unix:/run/batch.sock", "unix:batch.sock",
    }
    local REACHED_BY_OTHERS = {
        "0.0.0.0:8080", "[::]:8080", "192.0.2.1:80", "10.0.0.1:80", "example.com:80", "*:80",
        "127.0.0.1.example.com:80", "127.0.0.256:80", "127.0.0:80", "127.1:80", "0127.0.0.1:80",
        "127.0.0.01:80", "128.0.0.1:80", "localhost.example.com:80", "xlocalhost:80",
        "[::ffff:127.0.0.1]:80", "[::1%eth0]:80", "[fe80::1]:80", "::1:80", "0:80", "1127.0.0.1:80",
    }

    it("a server may listen where no other machine reaches it", function()
        for _, listen in ipairs(REACHED_BY_NOBODY) do
            assert.is_true(callers.check_listen(listen, false), listen)
        end
    end)

    it("a server may not listen elsewhere, and is told what to do", function()
        for _, listen in ipairs(REACHED_BY_OTHERS) do
            local is_allowed, message, code = callers.check_listen(listen, false)
            assert.is_nil(is_allowed, listen)
            assert.equal("invalid", code)
            assert.equal(('server.listen = "%s" lets everyone in who reaches it: add an '
                .. "[[auth.token]], or listen on 127.0.0.1, [::1], localhost or a unix socket")
                :format(listen), message)
        end
    end)

    it("only: with one a server may listen anywhere", function()
        for _, list in ipairs { REACHED_BY_NOBODY, REACHED_BY_OTHERS } do
            for _, listen in ipairs(list) do
                assert.is_true(callers.check_listen(listen, true))
            end
        end
    end)
end)

describe("two callers with one token", function()
    it("are refused by their names", function()
        assert.same({ nil, [[callers "alice" and "bob" have the same sha256: each needs a ]]
            .. "token of its own", "invalid" }, { callers.new {
            { caller = "alice", class = "", sha256 = ALICE },
            { caller = "carol", class = "", sha256 = ABC },
            { caller = "bob", class = "user", sha256 = ALICE:upper() },
        } })
    end)
end)
