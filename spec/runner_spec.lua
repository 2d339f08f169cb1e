-- SPDX-License-Identifier: MIT
--
-- A runner's life: made, used by several at once, closed; and what a client has not.

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local processes = require "spec.support.processes"

describe("a runner", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("fetches on worker threads as soon as a job is there", function()
        local runner = fresh.runner { executor = "threads", workers = 3 }
        local id = runner:submit("ann", fresh.targets(32))
        assert.equal("done", runner:wait(id, 10).status)
        for i, target in ipairs(select(2, runner:status(id))) do
            assert.same({ i - 1, "u" .. i, "u" .. i },
                { target.idx, target.url, target.result.content })
        end
    end)

    it("lets jobs take turns, one target at a time for each", function()
        local runner = fresh.runner()
        for _, name in ipairs { "a", "b", "c" } do
            runner:submit(name, fresh.targets(3, name))
        end
        local order = {}
        runner:drain(function(target)
            order[#order + 1] = target.url
            return ""
        end)
        assert.equal("a1 b1 c1 a2 b2 c2 a3 b3 c3", table.concat(order, " "))
    end)

    it("hands out no target before the one before it is stored", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(2))
        local task = runner:take()
        assert.equal("u1", task.url)
        assert.is_nil(runner:take())
        runner:finish(task, "")
        local second = eventually(function() return (runner:take()) end)
        assert.same({ "u2", 1 }, { second.url, second.idx })
        assert.equal(1, runner:status(id).targets_done)
        runner:finish(second, "")
    end)

    it("says what it is, and that it is closed", function()
        local runner = fresh.runner()
        assert.matches("^batch.runner: ", tostring(runner))
        assert.is_true(runner:close())
        assert.is_true(runner:close())
        assert.has_error(function() runner:stats() end, "attempt to use a closed runner")
        assert.has_error(function() runner:take() end, "attempt to use a closed runner")
        assert.has_error(function() runner:drain(print) end, "attempt to use a closed runner")
    end)

    it("is closed at the end of its block, and when it is collected", function()
        assert(batch.new { store = fresh.path "batch.db", fetch = print })
        local owners = function() return fresh.sql "select count(*) from owner" end
        assert.equal("1", owners())
        collectgarbage()
        collectgarbage()
        assert.equal("0", owners())
        local chunk = load [[
            local config = ...
            do
                local runner <close> = assert(require("batch").new(config))
                runner:stats()
            end
        ]]
        if chunk then
            chunk { store = fresh.path "batch.db", fetch = print }
            assert.equal("0", owners())
        end
    end)

    it("waits at its close for the fetches, and stores what they return", function()
        local runner = fresh.runner {
            executor = "threads", on_restart = "resume",
            fetch = function(_, ctx)
                while not ctx:cancelled() do
                    ctx:sleep(0.01)
                end
                return "came in time"
            end,
        }
        local id = runner:submit("ann", fresh.targets(2))
        eventually(function() return runner:status(id).status == "running" end)
        assert.is_true(runner:close())
        local job, targets = fresh.client():status(id)
        assert.same({ "queued", 1 }, { job.status, job.targets_done })
        assert.same({ "came in time", "pending" }, { targets[1].result.content, targets[2].status })
    end)

    it("gives its unfinished jobs to the next runner, or fails them", function()
        for on_restart, status in pairs { resume = "done", fail = "failed" } do
            local config = { store = fresh.path(on_restart), on_restart = on_restart }
            local first = fresh.runner(config)
            local id = first:submit("ann", fresh.targets(2))
            first:finish(first:take(), "one")
            eventually(function() return first:status(id).targets_done == 1 end)
            first:close()
            local second = fresh.runner(config)
            second:drain(function(target) return target.url end)
            local job, targets = second:status(id)
            assert.same({ status, on_restart == "fail" and "restart" or nil },
                { job.status, job.error })
            assert.equal("one", targets[1].result.content)
        end
    end)

    it("shares a store with others in its process", function()
        local runners, ids = {}, {}
        for i = 1, 4 do
            runners[i] = fresh.runner { executor = "threads" }
        end
        for i = 1, 12 do
            ids[i] = assert(runners[i % 4 + 1]:submit("c" .. i, fresh.targets(10)))
        end
        for i, id in ipairs(ids) do
            assert.equal("done", runners[(i + 1) % 4 + 1]:wait(id, 20).status)
        end
        assert.is_true(fresh.store():check())
    end)

    it("shares a store with other processes, and every target is fetched once", function()
        local path, log = fresh.path "batch.db", fresh.path "fetched"
        local client = fresh.client { jobs_total = 100, targets_per_job = 100 }
        local ids = {}
        for i = 1, 20 do
            ids[i] = assert(client:submit("c" .. i, fresh.targets(50, "c" .. i .. "-")))
        end
        processes.run(4, [[
            local path, log = ...
            local batch = require "batch"
            local runner = assert(batch.new { store = path, workers = 4, durability = "normal",
                on_restart = "resume",
                fetch = function(target)
                    local file = io.open(log, "a")
                    file:write(target.url, "\n")
                    file:close()
                    return target.url
                end })
            repeat
                require("batch.core").poll_fd(-1, 0.02)
            until runner:stats().live_jobs == 0
            runner:close()
        ]], path, log)
        local seen, n = {}, 0
        for url in io.lines(log) do
            assert.is_nil(seen[url])
            seen[url], n = true, n + 1
        end
        assert.equal(1000, n)
        for _, id in ipairs(ids) do
            assert.equal("done", client:status(id).status)
        end
        assert.is_true(fresh.store():check())
    end)
end)

describe("a client", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("submits, reads and cancels, and works on nothing", function()
        local client = fresh.client()
        local id = client:submit("ann", fresh.targets(1))
        core.poll_fd(-1, 0.1)
        assert.equal("queued", client:status(id).status)
        assert.is_true(client:touch(id))
        assert.same({ 1, true }, { client:stats().live_jobs, client:stats().healthy })
        assert.is_true(client:cancel(id))
        assert.same({ nil, "timeout", "timeout" },
            { client:wait((client:submit("ann", fresh.targets(2))), 0) })
        for _, name in ipairs { "take", "finish", "fail", "later", "drain" } do
            assert.has_error(function() client[name](client, print) end,
                name .. ' needs executor = "manual"')
        end
    end)
end)
