-- SPDX-License-Identifier: MIT
--
-- What batch.new takes: each field with its default, its bounds and its wrong values.

local batch = require "batch"
local fields = require "batch.fields"
local fresh = require "spec.support.fresh"

local function refusal(config)
    config.store = config.store or fresh.path "batch.db"
    if config.fetch == nil then
        config.fetch = print
    end
    local runner, message, code = batch.new(config)
    if runner then
        fresh.keep(runner)
    end
    assert.is_nil(runner)
    assert.equal("invalid", code)
    return message
end

-- What a field becomes.
local function taken(name, value)
    local full = assert(fields.check("batch", { [name] = value }))
    return full[name]
end

local DEFAULTS = {
    store = "batch.db", fetch = "batch.fetch", executor = "threads", workers = 1,
    targets_per_job = 32, jobs_per_caller = 1, jobs_total = 8, ttl = 86400,
    max_bytes = 64 * 1024 * 1024, max_result_bytes = 8 * 1024 * 1024, retry_wait = 1,
    retry_for = 60, target_timeout = 300, durability = "full", on_restart = "fail",
    crash_limit = 10,
}

local INTEGERS = {
    workers = 256, targets_per_job = 10000000, jobs_per_caller = 1000000, jobs_total = 1000000,
}
local DURATIONS = { "ttl", "retry_wait", "retry_for", "target_timeout" }
local SIZES = { max_bytes = 2 ^ 53, max_result_bytes = 900 * 2 ^ 20 }
local CHOICES = {
    executor = { "threads", "manual" }, durability = { "full", "normal" },
    on_restart = { "fail", "resume" },
}

describe("the fields of batch.new", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("have the defaults that are promised", function()
        local full = assert(fields.check("batch", {}))
        for name, default in pairs(DEFAULTS) do
            assert.same({ name, default }, { name, full[name] })
        end
        assert.is_nil(full.log)
        assert.same({}, full.hooks)
    end)

    it("take their default when they are 0", function()
        for name, default in pairs(DEFAULTS) do
            assert.same({ name, default }, { name, taken(name, 0) })
        end
        assert.equal(86400, taken("ttl", "0s"))
        assert.equal(64 * 1024 * 1024, taken("max_bytes", "0"))
    end)

    it("count within their bounds", function()
        for name, most in pairs(INTEGERS) do
            assert.equal(1, taken(name, 1))
            assert.equal(most, taken(name, most))
            assert.equal(2, taken(name, 2.0))
            for _, wrong in ipairs { -1, most + 1, 1.5, 0 / 0, 1 / 0, -1 / 0, 2 ^ 53, "4", true } do
                local rule = ("%s must be an integer from 1 to %d, got "):format(name, most)
                assert.equal(rule, refusal({ [name] = wrong }):sub(1, #rule))
            end
        end
    end)

    it("are refused with the value that was given", function()
        assert.equal('workers must be an integer from 1 to 256, got "many"',
            refusal { workers = "many" })
        assert.equal("workers must be an integer from 1 to 256, got a table",
            refusal { workers = {} })
        assert.equal('executor must be "threads" or "manual", got "light"',
            refusal { executor = "light" })
    end)

    it("take durations as seconds or as text", function()
        for _, name in ipairs(DURATIONS) do
            assert.equal(1.5, taken(name, 1.5))
            assert.equal(5400, taken(name, "1h30m"))
            assert.equal(0.25, taken(name, " 250ms "))
            for _, wrong in ipairs { -1, 0 / 0, 1 / 0, "", "soon", "10", "-1s", true, {} } do
                assert.matches("^" .. name .. " must be a duration", refusal { [name] = wrong })
            end
        end
    end)

    it("take sizes as bytes or as text", function()
        for name, most in pairs(SIZES) do
            assert.equal(1000, taken(name, 1000))
            assert.equal(2048, taken(name, "2 KiB"))
            assert.equal(most, taken(name, most))
            for _, wrong in ipairs {
                -1, 1.5, 0 / 0, 1 / 0, most + 2, "64MB", "64mib", "1.5GiB", "0x10", "", false, {},
            } do
                assert.matches("^" .. name .. " must be a size", refusal { [name] = wrong })
            end
        end
    end)

    it("choose among the words that are known", function()
        for name, words in pairs(CHOICES) do
            for _, word in ipairs(words) do
                assert.equal(word, taken(name, word))
            end
            for _, wrong in ipairs { "", words[1]:upper(), 1, true, {} } do
                assert.matches("^" .. name .. " must be ", refusal { [name] = wrong })
            end
        end
    end)

    it("are refused when nobody knows them, with the nearest that is known", function()
        assert.equal("unknown field 'worker', did you mean 'workers'?", refusal { worker = 1 })
        assert.equal("unknown field 'hooks.dept', did you mean 'hooks.depth'?",
            refusal { hooks = { dept = print } })
        assert.matches("^unknown field 'zzzzzzzzz', known are 'store', 'fetch', .+ and 'log'$",
            refusal { zzzzzzzzz = 1 })
        assert.matches("^unknown field '1', known are 'store', ", refusal { "batch.db" })
    end)

    it("hold hooks and log as functions", function()
        assert.matches("^hooks must be a table", refusal { hooks = print })
        assert.matches("^hooks.job must be a function", refusal { hooks = { job = "f" } })
        assert.matches("^log must be a function", refusal { log = "stderr" })
    end)

    it("name the fetch module that cannot be used", function()
        local folder = fresh.path "?.lua"
        local path = package.path
        package.path = folder .. ";" .. path
        finally(function() package.path = path end)
        local sources = { broken = "return +", raising = "error 'no'", empty = "return 7" }
        for name, source in pairs(sources) do
            local file = assert(io.open((folder:gsub("?", name)), "w"))
            file:write(source)
            file:close()
        end
        for _, name in ipairs { "missing_module", "broken", "raising", "empty" } do
            assert.matches(name, refusal { fetch = name }, 1, true)
        end
        assert.matches("gives no function", refusal { fetch = "empty" }, 1, true)
        assert.matches("gives no function", refusal { fetch = {} }, 1, true)
        assert.matches("setup must be a function", refusal { fetch = { fetch = print, setup = 1 } })
        for _, wrong in ipairs { "", 7, true } do
            assert.matches("^fetch must be ", refusal { fetch = wrong })
        end
    end)

    it("refuse a fetch that cannot be carried, with the path to what stands in the way", function()
        local db = io.stdout
        assert.equal("fetch upvalue 'db': cannot carry a userdata",
            refusal { fetch = function() return db end })
    end)

    it("take a path or a store, and no other object", function()
        for _, wrong in ipairs { "", true, 7, {}, io.stdout } do
            assert.matches("^store must be a path or an object from batch.store.open, got ",
                refusal { store = wrong })
        end
    end)

    it("stand in a table, or the programmer is told", function()
        assert.has_error(function() batch.new "batch.db" end, "config must be a table, got string")
        assert.has_error(function() batch.client(7) end, "config must be a table, got number")
    end)

    it("mean the same to a client", function()
        local client, message, code = batch.client { store = fresh.path "batch.db", ttl = "soon" }
        assert.is_nil(client)
        assert.matches("^ttl must be a duration", message)
        assert.equal("invalid", code)
    end)
end)
