-- SPDX-License-Identifier: MIT
--
-- Durations and sizes cell by cell, the defaults, and each refusal of fields in Lua and in files.

local config = require "batch.config"
local fields = require "batch.fields"

local function refusal(text)
    local full, message = config.parse(text)
    assert.is_nil(full)
    return message
end

local function batch_refusal(given)
    local full, message, code = fields.check("batch", given)
    assert.is_nil(full)
    assert.equal("invalid", code)
    return message
end

describe("parse_duration", function()
    for text, seconds in pairs {
        ["300ms"] = 0.3,
        ["1h30m"] = 5400,
        ["1.5h"] = 5400,
        [".5s"] = 0.5,
        ["1.s"] = 1,
        ["+2s"] = 2,
        ["7ns"] = 7e-9,
        ["7us"] = 7e-6,
        ["7\194\181s"] = 7e-6,
        ["7\206\188s"] = 7e-6,
        ["2m"] = 120,
        ["1d"] = 86400,
        ["1d12h"] = 129600,
        ["39h9m14.425s"] = 140954.425,
        ["0.3333333333333333333h"] = 1200,
        ["1s1s"] = 2,
        ["0h1ms"] = 0.001,
        [" \t5s\n "] = 5,
        ["9223372036854775807ns"] = 9223372036.854775807,
        ["2562047h47m16.854775807s"] = 9223372036.854775807,
    } do
        it(("reads %q"):format(text), function()
            assert.equal(seconds, config.parse_duration(text, "default"))
        end)
    end

    for _, text in ipairs {
        "", " ", "5", "1.5", "s", ".", ".s", "-", "+", "-5s", "0", "0s", "0h0m", "0.5ns", "1 h",
        "1h 30m", "1H", "5S", "1hour", "1w", "1e3s", "0x1s", "1..5s", "1.5.5s", "1,5s", "--1s",
        "1h-5m", "inf", "nan", "1\194s", "9223372036854775808ns", "2562047h47m16.854775808s",
        "9223372036854775.808us", "106752d", "99999999999999999999h", "1s\0",
    } do
        it(("takes the default for %q"):format(text), function()
            assert.equal("default", config.parse_duration(text, "default"))
        end)
    end

    it("takes the default for what is no text", function()
        for _, value in ipairs { 5, true, {} } do
            assert.equal("default", config.parse_duration(value, "default"))
        end
        assert.is_nil(config.parse_duration(nil))
    end)
end)

describe("parse_size", function()
    for text, bytes in pairs {
        ["1"] = 1,
        ["0064"] = 64,
        ["64KiB"] = 65536,
        ["64MiB"] = 67108864,
        ["3GiB"] = 3221225472,
        [" 64 MiB\t"] = 67108864,
        ["9007199254740992"] = 2 ^ 53,
        ["8388608GiB"] = 2 ^ 53,
    } do
        it(("reads %q"):format(text), function()
            assert.equal(bytes, config.parse_size(text, "default"))
        end)
    end

    for _, text in ipairs {
        "", " ", "0", "0MiB", "-1", "+1", "64MB", "64M", "64mib", "64MIB", "64B", "64TiB", "1.5GiB",
        "0x10", "1e3", "MiB", "6 4MiB", "64Mi B", "64MiBs", "9007199254740993", "8388609GiB",
        "9007199254740993KiB", "18446744073709551617", ("9"):rep(400), "64\0",
    } do
        it(("takes the default for %q"):format(text), function()
            assert.equal("default", config.parse_size(text, "default"))
        end)
    end

    it("takes the default for what is no text", function()
        assert.equal("default", config.parse_size(64, "default"))
    end)
end)

describe("the fields of batch.new", function()
    it("have their defaults where they are left out or 0", function()
        local full = assert(fields.check("batch", { workers = 0, ttl = 0, max_bytes = 0 }))
        assert.same({
            store = "batch.db",
            fetch = "batch.fetch",
            executor = "threads",
            workers = 1,
            targets_per_job = 32,
            jobs_per_caller = 1,
            jobs_total = 8,
            ttl = 86400,
            max_bytes = 67108864,
            max_result_bytes = 8388608,
            retry_wait = 1,
            retry_for = 60,
            target_timeout = 300,
            durability = "full",
            on_restart = "fail",
            crash_limit = 10,
            hooks = {},
        }, full)
        assert.same(full, fields.check("batch", nil))
    end)

    it("are kept as given, durations as seconds and sizes as bytes", function()
        local function fetch() end
        local store = assert(require("batch").store.open(":memory:"))
        local full = assert(fields.check("batch", {
            store = store,
            fetch = fetch,
            workers = 256,
            ttl = "1h30m",
            retry_wait = 0.25,
            max_bytes = "1KiB",
            max_result_bytes = 12,
            hooks = { job = fetch },
            log = fetch,
        }))
        assert.equal(store, full.store)
        assert.equal(fetch, full.fetch)
        assert.equal(256, full.workers)
        assert.equal(5400, full.ttl)
        assert.equal(0.25, full.retry_wait)
        assert.equal(1024, full.max_bytes)
        assert.equal(12, full.max_result_bytes)
        assert.same({ job = fetch }, full.hooks)
        assert.equal(fetch, full.log)
    end)

    it("take the section of a loaded file as it is", function()
        local loaded = assert(config.parse "[batch]\nworkers = 3")
        assert.equal(3, assert(fields.check("batch", loaded.batch)).workers)
    end)

    local integer = "workers must be an integer from 1 to 256, got "
    local duration = 'must be a duration such as "1h30m", or a number of seconds, up to 3650d, got '
    local size = 'must be a size such as "64MiB", or a whole number of bytes, up to 2^53, got '
    for _, case in ipairs {
        { { workers = "many" }, integer .. '"many"' },
        { { workers = "4" }, integer .. '"4"' },
        { { workers = 257 }, integer .. "257" },
        { { workers = -1 }, integer .. "-1" },
        { { workers = 1.5 }, integer .. "1.5" },
        { { workers = 0 / 0 }, integer .. "nan" },
        { { workers = math.huge }, integer .. "inf" },
        { { workers = true }, integer .. "true" },
        { { workers = {} }, integer .. "a table" },
        { { targets_per_job = 10000001 },
            "targets_per_job must be an integer from 1 to 10000000, got 10000001" },
        { { jobs_per_caller = 1000001 },
            "jobs_per_caller must be an integer from 1 to 1000000, got 1000001" },
        { { jobs_total = 1000001 },
            "jobs_total must be an integer from 1 to 1000000, got 1000001" },
        { { crash_limit = 1001 }, "crash_limit must be an integer from 1 to 1000, got 1001" },
        { { ttl = "soon" }, "ttl " .. duration .. '"soon"' },
        { { ttl = "5" }, "ttl " .. duration .. '"5"' },
        { { ttl = -1 }, "ttl " .. duration .. "-1" },
        { { ttl = 0 / 0 }, "ttl " .. duration .. "nan" },
        { { ttl = math.huge }, "ttl " .. duration .. "inf" },
        { { ttl = "3651d" }, "ttl " .. duration .. '"3651d"' },
        { { max_bytes = "64MB" }, "max_bytes " .. size .. '"64MB"' },
        { { max_bytes = 1.5 }, "max_bytes " .. size .. "1.5" },
        { { max_bytes = -1 }, "max_bytes " .. size .. "-1" },
        { { max_result_bytes = "1GiB" }, "max_result_bytes " .. size:gsub("2%^53", "900MiB")
            .. '"1GiB"' },
        { { executor = "fast" }, 'executor must be "threads" or "manual", got "fast"' },
        { { durability = true }, 'durability must be "full" or "normal", got true' },
        { { on_restart = "a\"b\n" }, [[on_restart must be "fail" or "resume", got "a\"b\010"]] },
        { { store = 5 }, "store must be a path or an object from batch.store.open, got 5" },
        { { store = "" }, 'store must be a path or an object from batch.store.open, got ""' },
        { { fetch = 5 }, "fetch must be a module's name, a function or a table of them, got 5" },
        { { log = "x" }, 'log must be a function, got "x"' },
        { { hooks = 5 }, "hooks must be a table, got 5" },
        { { hooks = { job = 5 } }, "hooks.job must be a function, got 5" },
        { { hooks = { jobs = print } }, "unknown field 'hooks.jobs', did you mean 'hooks.job'?" },
        { { worker = 1 }, "unknown field 'worker', did you mean 'workers'?" },
        { { hooks = { [1] = print } }, "unknown field 'hooks.1', "
            .. "known are 'depth', 'inflight', 'target', 'job' and 'job_seconds'" },
        { { disabled = true }, "disabled can only be given in a file" },
        { "batch.db", 'batch must be a table, got "batch.db"' },
    } do
        it("refuse: " .. case[2], function()
            assert.equal(case[2], batch_refusal(case[1]))
        end)
    end
end)

describe("a configuration file", function()
    it("that is empty means every default", function()
        local full, warnings = config.parse ""
        assert.same({}, warnings)
        assert.is_false(full.batch.disabled)
        assert.equal(86400, full.batch.ttl)
        assert.is_nil(full.batch.hooks)
        assert.same({ listen = "127.0.0.1:8080", tls_certificate = "", tls_key = "",
            max_body = 1048576, shutdown_grace = 30 }, full.server)
        assert.same({ token = {} }, full.auth)
        assert.same({ level = "info", format = "logfmt" }, full.log)
        assert.same({ url = "", model = "", api_key_env = "", timeout = 120, max_input = 262144 },
            full.fetch.llm)
        assert.equal(0, full.fetch.per_host_delay)
        assert.same({}, full.fetch.allow)
        assert.equal("luabatch/" .. require "batch.version", full.fetch.user_agent)
    end)

    it("gives what stands in it", function()
        local hash = ("aB"):rep(32)
        local full, warnings = config.parse(([==[
            batch = { disabled = true, ttl = " 90s ", max_bytes = 5000, workers = 0 }
            [server]
            listen = "unix:/run/batch.sock"
            [[auth.token]]
            caller = "alice"
            sha256 = "%s"
            [fetch]
            allow = ["127.0.0.0/8", "fd00::/8", "10.0.0.1"]
            per_host_delay = "0s"
            llm.url = "http://127.0.0.1:1/v1"
        ]==]):format(hash))
        assert.same({}, warnings)
        assert.is_true(full.batch.disabled)
        assert.equal(90, full.batch.ttl)
        assert.equal(5000, full.batch.max_bytes)
        assert.equal(1, full.batch.workers)
        assert.equal("unix:/run/batch.sock", full.server.listen)
        assert.same({ { caller = "alice", class = "", sha256 = hash:lower() } }, full.auth.token)
        assert.same({ "127.0.0.0/8", "fd00::/8", "10.0.0.1" }, full.fetch.allow)
        assert.equal("http://127.0.0.1:1/v1", full.fetch.llm.url)
    end)

    it("takes the default, with a warning, where a duration or max_bytes is none", function()
        local full, warnings = config.parse [[
            [batch]
            ttl = "soon"
            max_bytes = "64MB"
            [fetch.llm]
            timeout = "-5s"
        ]]
        assert.equal(86400, full.batch.ttl)
        assert.equal(67108864, full.batch.max_bytes)
        assert.equal(120, full.fetch.llm.timeout)
        assert.same({
            'line 2: batch.ttl = "soon" is no duration, so the default "24h" holds',
            'line 3: batch.max_bytes = "64MB" is no size, so the default "64MiB" holds',
            'line 5: fetch.llm.timeout = "-5s" is no duration, so the default "2m" holds',
        }, warnings)
    end)

    for _, case in ipairs {
        { "[batch]\nworker = 1",
            "line 2: unknown field 'batch.worker', did you mean 'batch.workers'?" },
        { "\n[sever]", "line 2: unknown field 'sever', did you mean 'server'?" },
        { "[fetch.lm]", "line 1: unknown field 'fetch.lm', did you mean 'fetch.llm'?" },
        { "[batch]\n\nworkers = 257",
            "line 3: batch.workers must be an integer from 1 to 256, got 257" },
        { "[batch]\nworkers = -1",
            "line 2: batch.workers must be an integer from 1 to 256, got -1" },
        { "[batch]\nttl = -1", 'line 2: batch.ttl must be a duration such as "1h30m", or a number '
            .. "of seconds, up to 3650d, got -1" },
        { "[batch]\nttl = 2020-01-01", 'line 2: batch.ttl must be a duration such as "1h30m", or a '
            .. "number of seconds, up to 3650d, got 2020-01-01" },
        { "[batch]\nmax_bytes = -1", 'line 2: batch.max_bytes must be a size such as "64MiB", or a '
            .. "whole number of bytes, up to 2^53, got -1" },
        { "[server]\nmax_body = '1MB'", 'line 2: server.max_body must be a size such as "64MiB", '
            .. 'or a whole number of bytes, up to 2^53, got "1MB"' },
        { "[batch]\nstore = 5", "line 2: batch.store must be a non-empty string, got 5" },
        { "[batch]\nhooks.job = 5", "line 2: batch.hooks can only be given in Lua" },
        { "[batch]\nfetch = []", "line 2: batch.fetch must be a non-empty string, got a table" },
        { "[batch]\nlog = 5", "line 2: batch.log can only be given in Lua" },
        { "batch = 5", "line 1: batch must be a table, got 5" },
        { "[log]\nlevel = 'loud'",
            'line 2: log.level must be "debug", "info", "warn" or "error", got "loud"' },
        { "[server]\nlisten = '127.0.0.1'", "line 2: server.listen must be an address like "
            .. '"127.0.0.1:8080" or "unix:PATH", got "127.0.0.1"' },
        { "[server]\n\ntls_key = 'key.pem'",
            "line 3: server.tls_certificate and server.tls_key must be given both or neither" },
        { "[[auth.token]]\ncaller = 'a'", "line 1: auth.token.sha256 must be the 64 hexadecimal "
            .. "digits of a SHA-256, got nil" },
        { "\n[auth]\ntoken = [\n{}]",
            "line 4: auth.token.caller must be a non-empty string, got nil" },
        { "[auth]\ntoken = 'x'", "line 2: auth.token must be a list of tables" },
        { "[fetch]\nallow = ['::1', '10.0.0.0/33']", 'line 2: fetch.allow must be a list of '
            .. 'networks such as "10.0.0.0/8", got "10.0.0.0/33" '
            .. "(its prefix must be from 0 to 32)" },
        { "[fetch]\ndeny = '10.0.0.1'", 'line 2: fetch.deny must be a list of networks such as '
            .. '"10.0.0.0/8", got "10.0.0.1"' },
        { "[fetch]\narchive = 'ftp://x'", 'line 2: fetch.archive must be an address that begins '
            .. 'with "http://" or "https://", got "ftp://x"' },
        { "[batch]\nttl = ", "line 2, column 7: expected a value" },
    } do
        it("is refused: " .. case[2], function()
            assert.equal(case[2], refusal(case[1]))
        end)
    end

    it("that is loaded is named with its lines", function()
        local path = os.tmpname()
        local function load_text(text)
            local file = assert(io.open(path, "wb"))
            file:write(text)
            file:close()
            return config.load(path)
        end
        assert.equal(7, load_text("[batch]\nworkers = 7").batch.workers)
        assert.same({ nil, path .. ":2: unknown field 'batch.ttk', did you mean 'batch.ttl'?" },
            { load_text "[batch]\nttk = 1" })
        assert.same({ nil, path .. ":1:3: expected '='" }, { load_text "a " })
        local _, warnings = load_text "[batch]\nttl = 'x'"
        assert.same({ path .. ':2: batch.ttl = "x" is no duration, so the default "24h" holds' },
            warnings)
        os.remove(path)
        assert.same({ nil, path .. ": No such file or directory" }, { config.load(path) })
    end)
end)
