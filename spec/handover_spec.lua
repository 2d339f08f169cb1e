-- SPDX-License-Identifier: MIT
--
-- A runner that hands its jobs over: what the others get, and when, and what stays as it was.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local process = require "spec.support.process"

local function owner_of(id)
    return fresh.sql(("select coalesce(owner, 'nobody') from job where id = '%s'"):format(id))
end

local function is_given_back(id)
    return eventually(function() return owner_of(id) == "nobody" end)
end

-- Takes as soon as there is something.
local function take(runner)
    return eventually(function() return (runner:take()) end)
end

local function ids_of(runner, count)
    local ids = {}
    for i = 1, count do
        ids[i] = assert(runner:submit("ann", fresh.targets(2, "job" .. i .. "/")))
    end
    return ids
end

describe("a runner that hands over", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("gives what is not in flight at once, and the rest when its target is stored", function()
        local runner = fresh.runner()
        local ids = ids_of(runner, 3)
        local task = runner:take()
        assert.equal(ids[1], task.job)
        runner:begin_handover()
        is_given_back(ids[2])
        is_given_back(ids[3])
        assert.not_equal("nobody", owner_of(ids[1]))
        assert.equal(1, runner:unsettled())
        runner:finish(task, "the last one")
        is_given_back(ids[1])
        assert.equal(0, runner:unsettled())
        local job, targets = runner:status(ids[1])
        assert.same({ "queued", 1 }, { job.status, job.targets_done })
        assert.same({ "the last one", 1 }, { targets[1].result.content, targets[1].attempts })
        assert.is_true(fresh.store():check())
    end)

    it("hands out nothing and claims nothing any more", function()
        local runner, client = fresh.runner(), fresh.client { jobs_per_caller = 100 }
        ids_of(runner, 1)
        runner:begin_handover()
        assert.is_nil((runner:take()))
        client:submit("ann", fresh.targets(1, "client"))
        core.poll_fd(-1, 0.1)
        assert.is_nil((runner:take()))
        assert.equal(0, runner:drain(function() return "x" end))
        assert.equal("2", fresh.sql "select count(*) from job where owner is null")
    end)

    it("accepts submits, for others", function()
        local runner = fresh.runner()
        runner:begin_handover()
        local id, reused = runner:submit("ann", fresh.targets(1))
        assert.is_false(reused)
        assert.equal("nobody", owner_of(id))
        local answer
        runner:begin_submit(function(later) answer = later end, "bob", fresh.targets(1))
        eventually(function() return runner:poll() > 0 and answer end)
        assert.equal("nobody", owner_of(answer))
        local next_one = fresh.runner()
        assert.equal(2, next_one:drain(function() return "x" end))
        assert.equal("done", runner:wait(id, 10).status)
    end)

    it("leaves contexts alone: threads fetch to the end", function()
        local gate = fresh.path "gate"
        local runner = fresh.runner {
            executor = "threads", workers = 2,
            fetch = function(_, ctx)
                while not io.open(gate) do
                    if not ctx:sleep(0.005) or ctx:cancelled() then
                        return nil, "cancelled"
                    end
                end
                return "whole"
            end,
        }
        local ids = ids_of(runner, 3)
        eventually(function() return runner:stats().inflight_targets == 2 end)
        runner:begin_handover()
        is_given_back(ids[3])
        assert.equal(2, runner:unsettled())
        io.open(gate, "w"):close()
        is_given_back(ids[1])
        is_given_back(ids[2])
        assert.same({ 1, 1, 0 }, { runner:status(ids[1]).targets_done,
            runner:status(ids[2]).targets_done, runner:status(ids[3]).targets_done })
        local next_one = fresh.runner()
        assert.equal(4, next_one:drain(function() return "by the next one" end))
        for _, id in ipairs(ids) do
            assert.equal("done", runner:wait(id, 10).status)
        end
        local _, targets = runner:status(ids[1])
        assert.same({ "whole", "by the next one" },
            { targets[1].result.content, targets[2].result.content })
    end)

    it("gives busy targets, too, with the calls that they have had", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(1))
        for _ = 1, 2 do
            runner:later(take(runner), "busy", 0)
        end
        runner:later(take(runner), "busy", 30)
        runner:begin_handover()
        is_given_back(id)
        local next_one = fresh.runner()
        local task = take(next_one)
        assert.same({ id, 4 }, { task.job, task.attempt })
        next_one:finish(task, "x")
        assert.equal("done", next_one:wait(id, 10).status)
    end)

    it("charges no attempt for a task that was taken and dropped", function()
        local runner = fresh.runner()
        local id = runner:submit("ann", fresh.targets(1))
        local task = runner:take()
        assert.equal(1, task.attempt)
        runner:begin_handover()
        task = nil  -- luacheck: ignore
        collectgarbage()
        collectgarbage()
        is_given_back(id)
        assert.equal(1, take(fresh.runner()).attempt)
    end)

    it("fails nothing, whatever on_restart says", function()
        for _, on_restart in ipairs { "fail", "resume" } do
            local runner = fresh.runner { on_restart = on_restart }
            local ids = ids_of(runner, 2)
            local task = runner:take()
            runner:begin_handover()
            runner:finish(task, "x")
            eventually(function() return runner:unsettled() == 0 end)
            assert.is_true(runner:close())
            local next_one = fresh.runner { on_restart = on_restart }
            assert.equal(3, next_one:drain(function() return "x" end))
            assert.same({ "done", "done" },
                { next_one:status(ids[1]).status, next_one:status(ids[2]).status })
            next_one:close()
            os.execute("rm " .. fresh.path "batch.db*")
        end
    end)

    it("fails nothing when it is closed with targets in flight", function()
        local runner = fresh.runner { on_restart = "fail" }
        local ids = ids_of(runner, 2)
        local task = runner:take()
        runner:begin_handover()
        assert.is_true(runner:close())
        assert.equal(ids[1], task.job)
        assert.equal(4, fresh.runner():drain(function() return "x" end))
    end)

    it("hands thousands of jobs over", function()
        local runner = fresh.runner { jobs_per_caller = 10000, jobs_total = 10000 }
        local n_jobs = 0
        for i = 1, 1500 do
            runner:begin_submit(function(id) n_jobs = n_jobs + (id and 1 or 0) end, "ann",
                fresh.targets(1, i .. "-"))
        end
        eventually(function() return runner:poll() and n_jobs == 1500 end)
        runner:begin_handover()
        eventually(function()
            return fresh.sql "select count(*) from job where owner is null" == "1500"
        end)
        assert.is_true(fresh.store():check())
        assert.equal(1500, fresh.runner():drain(function() return "x" end))
    end)

    it("tells its hooks that the jobs are gone, and of no job's end twice", function()
        local depths, ended = {}, {}
        local hooks = {
            depth = function(n) depths[#depths + 1] = n end,
            job = function(status, info) ended[#ended + 1] = status .. " " .. info.job end,
        }
        local runner = fresh.runner { hooks = hooks }
        local ids = ids_of(runner, 3)
        runner:begin_handover()
        for _, id in ipairs(ids) do
            is_given_back(id)
        end
        assert.is_true(runner:cancel(ids[1]))
        local next_one = fresh.runner { hooks = { job = hooks.job } }
        assert.equal(4, next_one:drain(function() return "x" end))
        runner:poll()
        assert.same({ 1, 2, 3, 2, 1, 0 }, depths)
        table.sort(ended)
        local expected = { "cancelled " .. ids[1], "done " .. ids[2], "done " .. ids[3] }
        table.sort(expected)
        assert.same(expected, ended)
    end)

    it("lets jobs be cancelled meanwhile, each told once", function()
        local ended = {}
        local function count(status, info)
            ended[info.job] = (ended[info.job] or "") .. status
        end
        local runner = fresh.runner { hooks = { job = count } }
        local client = fresh.client { hooks = { job = count } }
        for round = 1, 30 do
            local id = runner:submit("ann", fresh.targets(1, "round" .. round .. "/"))
            local who = round % 2 == 0 and runner or client
            if round % 3 == 0 then
                runner:begin_cancel(function() end, id)
                runner:begin_handover()
            else
                runner:begin_handover()
                who:cancel(id)
            end
            eventually(function() return client:status(id).status == "cancelled" end)
            eventually(function()
                runner:poll()
                client:poll()
                return ended[id]
            end)
            runner:close()
            runner = fresh.runner { hooks = { job = count } }
        end
        client:poll()
        for id, ends in pairs(ended) do
            assert.equal("cancelled", ends, id)
        end
    end)
end)

describe("processes that hand over to one another", function()
    local folder

    before_each(function()
        fresh.start()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
        fresh.finish()
    end)

    -- Fetches until it is told to go; the first one submits.
    local GENERATION = [[
    local runner = assert(batch.new(settings { executor = EXECUTOR, on_restart = "fail",
        workers = 3, fetch = function(target, ctx)
            note("fetched", target.url)
            ctx:sleep(0.002)
            return target.url
        end }))
    if NUMBER == 1 then
        for i = 1, 12 do
            assert(runner:submit("me", urls(i .. "/", 40)))
        end
    end
    local held = {}
    local function work()
        for _ = 1, 3 do
            held[#held + 1] = runner:take()
        end
        core.poll_fd(-1, 0.002)
        for i, task in ipairs(held) do
            note("fetched", task.url)
            runner:finish(task, task.url)
            held[i] = nil
        end
    end
    local ends_at = core.now() + 0.3
    while core.now() < ends_at or NUMBER == 4 and runner:stats().live_jobs > 0 do
        if EXECUTOR == "manual" then work() else core.poll_fd(-1, 0.005) end
    end
    for _ = 1, 3 do
        held[#held + 1] = EXECUTOR == "manual" and runner:take() or nil
    end
    runner:begin_handover()
    note("handing over", NUMBER)
    if EXECUTOR == "manual" then work() end
    while runner:unsettled() > 0 do
        core.poll_fd(-1, 0.002)
    end
    assert(runner:close())
    ]]

    for _, executor in ipairs { "threads", "manual" } do
        it("lose nothing and fetch nothing twice (" .. executor .. ")", function()
            local before
            for number = 1, 4 do
                local code = GENERATION:gsub("EXECUTOR", ("%q"):format(executor))
                local running = folder:start((code:gsub("NUMBER", number)))
                eventually(function() return #folder:lines "handing over" >= number - 1 end)
                if before then
                    assert.same(0, before:wait(), before:output())
                    assert.same("", before:output())
                end
                eventually(function() return folder:lines("handing over")[number] end, 30)
                before = running
            end
            assert.same(0, before:wait(), before:output())
            local seen, n_urls = {}, 0
            for _, url in ipairs(folder:lines "fetched") do
                assert.is_nil(seen[url], url .. " was fetched twice")
                seen[url], n_urls = true, n_urls + 1
            end
            assert.equal(480, n_urls)
            local store = fresh.store(folder.store)
            assert.is_true(store:check())
            assert.equal("12|480", fresh.sql(
                "select count(*), sum(targets_done) from job where status = 'done'", folder.store))
        end)
    end
end)
