-- SPDX-License-Identifier: MIT
--
-- Submitting: what is accepted, what is known already, and each refusal. What makes a target
-- invalid in detail stands in canonical_spec.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local processes = require "spec.support.processes"

local TOO_MANY = { nil, "too many targets", "too_many_targets" }
local CALLER_BUSY = { nil, "busy", "caller_busy" }
local BUSY = { nil, "jobs busy", "busy" }

-- Ends the only job that has targets to take, as done or as failed.
local function work_off(runner, is_failure)
    runner:drain(function(target)
        if is_failure then
            return nil, "no luck"
        end
        return target.url
    end)
end

describe("submit", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("gives a fresh id, and false because the job is new", function()
        local runner = fresh.runner()
        local id, is_reused = runner:submit("ann", fresh.targets(3), { class = "user" })
        assert.matches("^%x+%-%x+%-7%x+%-[89ab]%x+%-%x+$", id)
        assert.equal(36, #id)
        assert.is_false(is_reused)
        local other = runner:submit("ann", fresh.targets(2))
        assert.not_equal(id, other)
    end)

    it("keeps caller, class, URLs and options as they were given", function()
        local runner = fresh.runner()
        local targets = {
            { url = "a?x=<ä>", options = { mode = "text", depth = 3, list = { 1, "b" } } },
            { url = "b\0c" },
        }
        local id = runner:submit("Änn\0e", targets, { class = "güest" })
        local job, found = runner:status(id)
        assert.same({ "Änn\0e", "güest" }, { job.caller, job.class })
        assert.same(targets[1].options, found[1].options)
        assert.same({ targets[1].url, "b\0c" }, { found[1].url, found[2].url })
        assert.same({}, found[2].options)
    end)

    it("refuses what is invalid by place and rule", function()
        local runner = fresh.runner()
        local function refusal(...)
            local id, message, code = runner:submit(...)
            assert.same({ nil, "invalid" }, { id, code })
            return message
        end
        local targets = fresh.targets(4)
        targets[4] = { url = "" }
        assert.equal("target 3: url must be a non-empty string",
            refusal("ann", targets):match "^[^,]+")
        assert.matches("^target 0: ", refusal("ann", { "http://a/" }))
        assert.matches("^target 0: .*options", refusal("ann", { { url = "a", options = 7 } }))
        assert.matches("^targets must be", refusal("ann", {}))
        assert.matches("^targets must be", refusal("ann", "http://a/"))
        assert.matches("^targets must be", refusal("ann", { url = "a" }))
        assert.matches("^caller must be", refusal(7, targets))
        assert.matches("^caller must be UTF%-8", refusal("\255", fresh.targets(1)))
        assert.matches("^class must be", refusal("ann", fresh.targets(1), { class = 7 }))
        assert.matches("^class must be UTF%-8",
            refusal("ann", fresh.targets(1), { class = "\255" }))
        assert.matches("^options must be a table", refusal("ann", fresh.targets(1), "user"))
        assert.equal(0, #runner:jobs())
    end)

    it("asks the fetch module's check, and refuses with its words", function()
        local runner = fresh.runner { fetch = {
            fetch = function() return "" end,
            check = function(target)
                return target.url ~= "bad" or nil, "bad is not fetched here"
            end,
        } }
        assert.same({ nil, "target 1: bad is not fetched here", "invalid" },
            { runner:submit("ann", { { url = "good" }, { url = "bad" } }) })
        assert.is_string(runner:submit("ann", { { url = "good" } }))
    end)

    it("knows a job again, whatever its status", function()
        local runner = fresh.runner()
        local done = runner:submit("ann", fresh.targets(1))
        work_off(runner)
        local failed = runner:submit("ann", fresh.targets(2))
        work_off(runner, true)
        local cancelled = runner:submit("ann", fresh.targets(3))
        runner:cancel(cancelled)
        local running = runner:submit("ann", fresh.targets(4))
        local task = runner:take()
        local queued = runner:submit("ann", fresh.targets(5))
        local statuses = {}
        for i, id in ipairs { done, failed, cancelled, running, queued } do
            assert.same({ id, true }, { runner:submit("ann", fresh.targets(i)) })
            statuses[i] = runner:status(id).status
        end
        assert.same({ "done", "failed", "cancelled", "running", "queued" }, statuses)
        runner:finish(task, "")
    end)

    it("takes another caller or other targets for another job", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(2))
        assert.not_equal(id, runner:submit("bob", fresh.targets(2)))
        local turned = fresh.targets(2)
        turned[1], turned[2] = turned[2], turned[1]
        assert.not_equal(id, runner:submit("ann", turned))
        assert.equal(id, runner:submit("ann", fresh.targets(2), { class = "another" }))
    end)

    it("makes a new job after the lease has lapsed", function()
        local clock = core.clock()
        local runner = fresh.runner({ ttl = 10 }, clock)
        local id = runner:submit("ann", fresh.targets(1))
        work_off(runner)
        clock:advance(9.9)
        assert.same({ id, true }, { runner:submit("ann", fresh.targets(1)) })
        clock:advance(0.2)
        local new, is_reused = runner:submit("ann", fresh.targets(1))
        assert.not_equal(id, new)
        assert.is_false(is_reused)
    end)

    it("looks whether a job is valid, then known, and only then at the caps", function()
        local runner = fresh.runner { jobs_per_caller = 1, targets_per_job = 2 }
        local id = runner:submit("ann", fresh.targets(2))
        assert.equal(CALLER_BUSY[2], select(2, runner:submit("ann", fresh.targets(1))))
        assert.same({ id, true }, { runner:submit("ann", fresh.targets(2)) })
        assert.equal("invalid", select(3, runner:submit("ann", { { url = "" }, {}, {} })))
        local narrow = fresh.client { targets_per_job = 1 }
        assert.same({ id, true }, { narrow:submit("ann", fresh.targets(2)) })
        assert.same(TOO_MANY, { narrow:submit("ann", fresh.targets(3)) })
    end)

    it("refuses by each cap with its own words", function()
        local runner = fresh.runner { targets_per_job = 3, jobs_per_caller = 2, jobs_total = 3 }
        assert.same(TOO_MANY, { runner:submit("ann", fresh.targets(4)) })
        assert.is_string(runner:submit("ann", fresh.targets(3)))
        assert.is_string(runner:submit("ann", fresh.targets(2)))
        assert.same(CALLER_BUSY, { runner:submit("ann", fresh.targets(1)) })
        assert.is_string(runner:submit("bob", fresh.targets(1)))
        assert.same(BUSY, { runner:submit("cid", fresh.targets(1)) })
        assert.same(BUSY, { runner:submit("bob", fresh.targets(2)) })
    end)

    it("counts a job against the caps until it ends, however old its lease is", function()
        local clock = core.clock()
        local runner = fresh.runner({ jobs_per_caller = 1, ttl = 1 }, clock)
        local id = runner:submit("ann", fresh.targets(1))
        clock:advance(100)
        assert.same(CALLER_BUSY, { runner:submit("ann", fresh.targets(2)) })
        assert.is_true(runner:cancel(id))
        assert.is_string(runner:submit("ann", fresh.targets(2)))
        work_off(runner)
        assert.is_string(runner:submit("ann", fresh.targets(3)))
        work_off(runner, true)
        assert.is_string(runner:submit("ann", fresh.targets(4)))
    end)

    it("is refused once close has begun", function()
        local runner = fresh.runner {
            executor = "threads",
            fetch = function(_, ctx)
                while not ctx:cancelled() do
                    ctx:sleep(0.01)
                end
                ctx:sleep(0.3)
                require("batch.core").poll_fd(-1, 0.5)
                return "late"
            end,
        }
        local id = runner:submit("ann", fresh.targets(1))
        eventually(function()
            return runner:status(id).status == "running"
        end)
        assert.equal("timeout", select(3, runner:close(0.05)))
        assert.same({ nil, "closed", "closed" }, { runner:submit("bob", fresh.targets(1)) })
        assert.is_true(runner:close())
    end)

    it("raises for wrong use", function()
        local runner = fresh.runner()
        assert.has_error(function() runner:submit() end, "caller is missing")
        assert.has_error(function() runner:submit "ann" end, "targets is missing")
        assert.has_error(function() runner.submit("ann", fresh.targets(1)) end)
        assert.has_error(function() runner.submit({}, "ann", fresh.targets(1)) end)
        runner:close()
        assert.has_error(function() runner:submit("ann", fresh.targets(1)) end,
            "attempt to use a closed runner")
    end)
end)

describe("submits of several processes", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("of the same job, fifty at once, get one id", function()
        local ids = processes.run(50, [[
            local batch = require "batch"
            local path = ...
            local client = assert(batch.client { store = path, fetch = print })
            local id, is_reused = assert(client:submit("ann", { { url = "a" }, { url = "b" } }))
            io.write(id, " ", tostring(is_reused))
            client:close()
        ]], fresh.path "batch.db")
        local n_new, seen = 0, nil
        for _, line in ipairs(ids) do
            local id, is_reused = line:match "^(%S+) (%a+)$"
            assert.is_truthy(id, line)
            seen = seen or id
            assert.equal(seen, id)
            n_new = n_new + (is_reused == "false" and 1 or 0)
        end
        assert.equal(1, n_new)
        assert.equal(1, #fresh.client():jobs())
    end)

    it("are counted together by the caps", function()
        local answers = processes.run(12, [[
            local batch = require "batch"
            local path = ...
            local client = assert(batch.client { store = path, fetch = print, jobs_total = 5 })
            local url = tostring({}) .. require("batch.core").pid()
            local id, message = client:submit(url, { { url = url } })
            io.write(id and "in" or message)
            client:close()
        ]], fresh.path "batch.db")
        table.sort(answers)
        assert.same({ "in", "in", "in", "in", "in" }, { (unpack or table.unpack)(answers, 1, 5) })
        for i = 6, 12 do
            assert.equal("jobs busy", answers[i])
        end
        assert.equal(5, fresh.store():live_jobs_total())
    end)
end)
