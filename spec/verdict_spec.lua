-- SPDX-License-Identifier: MIT
--
-- What the values that a fetch function returns, or raises, mean for its target.

local batch = require "batch"
local worker = require "spec.support.worker"

local BYTES = "NUL \0 and \xff\xfe, \xc3\x28, CR LF \r\n \xed\xa0\x80"

local function result(fetch, config)
    local target = worker.outcome(fetch, config)
    assert.equal("done", target.status, target.error)
    return target.result
end

local function failure(fetch, config)
    local target, log = worker.outcome(fetch, config)
    assert.equal("failed", target.status)
    assert.is_nil(target.result)
    return target.error, target.hint, log
end

-- The target has failed with an internal error, and the log says why, with a traceback if wanted.
local function assert_internal_error(words, fetch, has_traceback)
    local message, hint, log = failure(fetch)
    assert.same({ "internal error" }, { message, hint })
    assert.equal("error", log[1].level)
    assert.equal(0, log[1].fields.idx)
    assert.matches(words, log[1].fields.detail, 1, true)
    if has_traceback then
        assert.matches("stack traceback", log[1].fields.detail, 1, true)
    end
end

describe("a result", function()
    after_each(worker.close_all)

    it("may be a string", function()
        assert.same({ content = "text" }, result(function() return "text" end))
    end)

    it("may be empty", function()
        assert.same({ content = "" }, result(function() return "" end))
    end)

    it("may be a table with content and meta", function()
        assert.same({ content = "c", meta = { a = 1, list = { "x", 2.5, true } } },
            result(function()
                return { content = "c", meta = { a = 1, list = { "x", 2.5, true } } }
            end))
        assert.same({ content = "c" }, result(function() return { content = "c" } end))
    end)

    it("comes back byte by byte", function()
        assert.equal(BYTES, result(function() return BYTES end).content)
        assert.equal(BYTES, result(function() return { content = BYTES } end).content)
    end)

    it("may be large", function()
        local content = result(function() return ("0123456789"):rep(5 * 2 ^ 17) end).content
        assert.equal(("0123456789"):rep(5 * 2 ^ 17), content)
    end)

    it("may have more values after it, which mean nothing", function()
        assert.equal("x", result(function()
            return "x", (table.unpack or unpack)({}, 1, 200)
        end).content)
        assert.equal("c", result(function()
            return { content = "c", meta = { a = 1 } }, (table.unpack or unpack)({}, 1, 200)
        end).content)
    end)

    it("may be as large as max_result_bytes and no larger", function()
        local function fetch() return ("x"):rep(1000) end
        assert.equal(1000, #result(fetch, { max_result_bytes = 1000 }).content)
        local message, hint = failure(fetch, { max_result_bytes = 999 })
        assert.equal("result too large", message)
        assert.matches("max_result_bytes = 999", hint, 1, true)
    end)
end)

describe("a failure", function()
    after_each(worker.close_all)

    it("has a message", function()
        assert.same({ "no" }, { (failure(function() return nil, "no" end)) })
    end)

    it("may have a hint", function()
        local message, hint = failure(function() return nil, "no", "try this" end)
        assert.same({ "no", "try this" }, { message, hint })
    end)

    it("may be a table with msg and hint", function()
        local message, hint = failure(function() return nil, { msg = "no", hint = "this" } end)
        assert.same({ "no", "this" }, { message, hint })
        message, hint = failure(function() return nil, { msg = "no" } end)
        assert.same({ "no" }, { message, hint })
    end)

    it("has texts in UTF-8", function()
        local message, hint = failure(function() return nil, "a\xffb\0c", "\xc3" end)
        assert.same({ "a\u{FFFD}b\0c", "\u{FFFD}" }, { message, hint })
    end)

    it("has texts of at most 4 KiB, cut between characters", function()
        local message, hint = failure(function()
            return nil, "x" .. ("é"):rep(3000), ("y"):rep(5000)
        end)
        assert.same({ "x" .. ("é"):rep(2047), ("y"):rep(4096) }, { message, hint })
    end)
end)

describe("an internal error", function()
    after_each(worker.close_all)

    it("is what a raised string is, with the traceback in the log only", function()
        assert_internal_error("boom", function() error "boom" end, true)
    end)

    it("is what a raised table, nil or number is", function()
        assert_internal_error("table: ", function() error {} end, true)
        assert_internal_error("nil", function() error(nil) end)
        assert_internal_error("42", function() error(42) end, true)
    end)

    it("shows an error object by its __tostring", function()
        assert_internal_error("an object", function()
            error(setmetatable({}, { __tostring = function() return "an object" end }))
        end, true)
    end)

    it("is what an error object with a failing __tostring is", function()
        assert_internal_error("", function()
            error(setmetatable({}, { __tostring = function() error "in __tostring" end }))
        end)
        assert_internal_error("", function()
            error(setmetatable({}, { __tostring = function() return 42 end }))
        end)
    end)

    it("is what a stack overflow is", function()
        assert_internal_error("stack overflow", function()
            local function deeper(n) return 1 + deeper(n) end
            return deeper(1)
        end)
    end)

    -- A sanitizer ends the process instead.
    local it_without_sanitizer = os.getenv "SANITIZER" and pending or it

    it_without_sanitizer("is what a lack of memory is", function()
        assert_internal_error("not enough memory", function() return io.stdin:read(2 ^ 46) end)
    end)

    it("is what a yield out of fetch is", function()
        assert_internal_error("yield", function() coroutine.yield "x" end)
    end)

    it("is what any other return is", function()
        assert_internal_error("nil", function() end)
        assert_internal_error("nil", function() return nil end)
        assert_internal_error("number", function() return 42 end)
        assert_internal_error("boolean", function() return true end)
        assert_internal_error("boolean", function() return false, "message" end)
        assert_internal_error("function", function() return print end)
        assert_internal_error("content", function() return {} end)
        assert_internal_error("content", function() return { content = 42 } end)
        assert_internal_error("msg", function() return nil, {} end)
        assert_internal_error("number", function() return nil, 42 end)
    end)

    it("is what a meta is that JSON cannot hold", function()
        assert_internal_error("meta", function()
            return { content = "c", meta = { f = print } }
        end)
        assert_internal_error("meta", function()
            local meta = {}
            meta.meta = meta
            return { content = "c", meta = meta }
        end)
        assert_internal_error("meta", function() return { content = "c", meta = { 0 / 0 } } end)
        assert_internal_error("meta", function() return { content = "c", meta = { "\xff" } } end)
        assert_internal_error("meta", function() return { content = "c", meta = "text" } end)
    end)

    it("is shown by no hint and by no other column of the store", function()
        local target = worker.outcome(function() error "a secret" end)
        for _, value in pairs(target) do
            assert.is_nil(tostring(value):find("secret", 1, true))
        end
    end)

    it("leaves the state fit for the next target", function()
        local runner = worker.open {
            fetch = function(target)
                if target.url == "bad" then
                    error "boom"
                end
                return "fine"
            end,
        }
        local job, targets = worker.run(runner, { { url = "bad" }, { url = "good" } })
        assert.same({ "partial", "fine" }, { job.status, targets[2].result.content })
    end)
end)

describe("a busy target", function()
    after_each(worker.close_all)

    it("is tried again after retry_wait, with a higher attempt", function()
        local target = worker.outcome(function(_, ctx)
            if ctx.attempt < 3 then
                return nil, batch.retry_later "not yet"
            end
            return "attempt " .. ctx.attempt
        end, { retry_wait = "1ms" })
        assert.same({ "attempt 3", 3 }, { target.result.content, target.attempts })
    end)

    it("is stored failed with its message when it asks for more than retry_for", function()
        local target = worker.outcome(function()
            return nil, batch.retry_later("come back tomorrow", 86400)
        end)
        assert.same({ "failed", "come back tomorrow", 1 },
            { target.status, target.error, target.attempts })
    end)

    it("waits for as long as it asks", function()
        local runner = worker.open {
            fetch = function(_, ctx)
                if ctx.attempt > 1 then
                    return "x"
                end
                return nil, batch.retry_later("wait", 0.2)
            end,
            retry_wait = "1h",
            retry_for = "2h",
        }
        local job, targets = worker.run(runner)
        assert.equal("done", job.status)
        assert.is_true(job.finished_at - job.created_at >= 0.2)
        assert.equal(2, targets[1].attempts)
    end)

    it("may ask for no wait at all", function()
        local target = worker.outcome(function(_, ctx)
            if ctx.attempt == 50 then
                return "x"
            end
            return nil, batch.retry_later("again", 0)
        end)
        assert.equal(50, target.attempts)
    end)

    it("does not hold up other jobs", function()
        local runner = worker.open {
            fetch = function(target)
                if target.url == "busy" then
                    return nil, batch.retry_later("busy", 3000, { patient = true })
                end
                return "x"
            end,
            jobs_per_caller = 2,
        }
        local busy = assert(runner:submit("spec", { { url = "busy" }, { url = "a" } }))
        assert.equal("done", worker.run(runner, { { url = "b" } }).status)
        local job, targets = runner:status(busy)
        assert.same({ "running", "pending", 0 },
            { job.status, targets[1].status, job.targets_done })
        assert.is_nil(targets[1].error)
    end)
end)
