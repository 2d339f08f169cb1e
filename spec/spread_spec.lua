-- SPDX-License-Identifier: MIT
--
-- Who works on what when several processes could: idle ones get a share of what busy ones have, and
-- what nobody has goes to whoever can start it.

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local process = require "spec.support.process"

-- Works until the file "go home" is there. FETCH_SECONDS for each target, JOBS of TARGETS each of
-- its own; says what it has fetched, by its NAME, and how many targets it has stored.
local WORKS = {
    threads = [[
    local runner = assert(batch.new(settings { on_restart = ON_RESTART, workers = WORKERS,
        fetch = function(target, ctx)
            note("fetched", NAME .. " " .. target.url)
            ctx:sleep(FETCH_SECONDS)
            return target.url
        end }))
    local function work() core.poll_fd(runner:fd(), 0.02) runner:poll() end
    ]],
    manual = [[
    local runner = assert(batch.new(settings { executor = "manual", on_restart = ON_RESTART,
        workers = WORKERS }))
    local held = {}
    local function work()
        for i = 1, WORKERS do
            if held[i] and core.now() >= held[i].ends_at then
                runner:finish(held[i], held[i].url)
                held[i] = nil
            end
            held[i] = held[i] or runner:take()
            if held[i] and not held[i].ends_at then
                note("fetched", NAME .. " " .. held[i].url)
                held[i].ends_at = core.now() + FETCH_SECONDS
            end
        end
        core.poll_fd(-1, 0.001)
    end
    ]],
}

local REST = [[
note("ready", NAME)
for i = 1, JOBS do
    assert(runner:submit("me", urls(NAME .. i .. "/", TARGETS)))
end
repeat
    work()
until io.open(folder .. "/go home")
note("shares", NAME .. " " .. runner:stats().targets.done)
assert(runner:close())
]]

describe("processes on one store", function()
    local folder, client

    before_each(function()
        fresh.start()
        folder = process.folder()
        client = fresh.keep(assert(batch.client { store = folder.store, durability = "normal",
            jobs_per_caller = 1000, jobs_total = 1000 }))
    end)

    after_each(function()
        fresh.finish()
        folder:remove()
    end)

    local function start(executor, more)
        local values = { NAME = "'a'", WORKERS = 2, JOBS = 0, TARGETS = 1, FETCH_SECONDS = 0.02,
            ON_RESTART = "'resume'" }
        for name, value in pairs(more) do
            values[name] = type(value) == "string" and "'" .. value .. "'" or value
        end
        return folder:start(((WORKS[executor] .. REST):gsub("[A-Z_]+", values)))
    end

    local function are_ready(count)
        eventually(function() return #folder:lines "ready" == count end)
    end

    local function are_done(count)
        eventually(function() return #client:jobs { status = "done", limit = 1000 } == count end,
            40)
    end

    -- How many targets each has stored, after the end of all.
    local function shares(workers)
        io.open(folder.path .. "/go home", "w"):close()
        for _, worker in ipairs(workers) do
            assert.same(0, worker:wait(), worker:output())
            assert.same("", worker:output())
        end
        local by_name = {}
        for _, line in ipairs(folder:lines "shares") do
            local name, count = line:match "^(%S+) (%d+)$"
            by_name[name] = tonumber(count)
        end
        return by_name
    end

    local function each_was_fetched_once(count)
        local seen, n_urls = {}, 0
        for _, line in ipairs(folder:lines "fetched") do
            local url = line:match " (%S+)$"
            assert.is_nil(seen[url], url .. " was fetched twice")
            seen[url], n_urls = true, n_urls + 1
        end
        assert.equal(count, n_urls)
        assert.is_true(fresh.store(folder.store):check())
    end

    for _, executor in ipairs { "threads", "manual" } do
        it(("work together on what one of them was given (%s)"):format(executor), function()
            local idle = start(executor, { NAME = "idle" })
            are_ready(1)
            local busy = start(executor, { NAME = "busy", JOBS = 20, TARGETS = 6 })
            are_done(20)
            local by_name = shares { idle, busy }
            each_was_fetched_once(120)
            assert.equal(120, by_name.idle + by_name.busy)
            assert.is_true(by_name.idle >= 30, "the idle one did " .. by_name.idle)
            assert.is_true(by_name.busy >= 30, "the busy one did " .. by_name.busy)
        end)

        it(("work together when one comes later (%s)"):format(executor), function()
            local busy = start(executor, { NAME = "busy", JOBS = 24, TARGETS = 8 })
            eventually(function() return #folder:lines "fetched" > 10 end)
            local idle = start(executor, { NAME = "idle" })
            are_done(24)
            local by_name = shares { idle, busy }
            each_was_fetched_once(192)
            assert.is_true(by_name.idle >= 30, "the idle one did " .. by_name.idle)
        end)
    end

    it("work together on long jobs of quick targets, of which none waits for long", function()
        local busy = start("threads", { NAME = "busy", JOBS = 8, TARGETS = 400,
            FETCH_SECONDS = 0.001 })
        eventually(function() return #folder:lines "fetched" > 10 end)
        local idle = start("threads", { NAME = "idle", FETCH_SECONDS = 0.001 })
        are_done(8)
        local by_name = shares { idle, busy }
        each_was_fetched_once(3200)
        assert.is_true(by_name.idle >= 400, "the idle one did " .. by_name.idle)
    end)

    it("keep what was submitted with on_restart = fail: it shares its process's fate", function()
        local idle = start("threads", { NAME = "idle", ON_RESTART = "fail" })
        are_ready(1)
        local busy = start("threads",
            { NAME = "busy", JOBS = 10, TARGETS = 3, ON_RESTART = "fail" })
        are_done(10)
        assert.same({ busy = 30, idle = 0 }, shares { idle, busy })
        each_was_fetched_once(30)
    end)

    it("of different kinds share what clients submit", function()
        local workers = {}
        for i = 1, 4 do
            workers[i] = start(i % 2 == 0 and "manual" or "threads", { NAME = "w" .. i })
        end
        are_ready(4)
        for i = 1, 60 do
            assert(client:submit("me", fresh.targets(3, "job" .. i .. "/")))
        end
        are_done(60)
        local by_name = shares(workers)
        each_was_fetched_once(180)
        for i = 1, 4 do
            assert.is_true(by_name["w" .. i] >= 15, "one did " .. by_name["w" .. i])
        end
    end)

    it("leave a new job to one that is idle when they are busy", function()
        local idle = start("threads", { NAME = "idle", FETCH_SECONDS = 0.001 })
        are_ready(1)
        local runner = fresh.keep(assert(batch.new { store = folder.store, durability = "normal",
            executor = "manual", on_restart = "resume", fetch = print, jobs_per_caller = 1000,
            jobs_total = 1000, targets_per_job = 10000 }))
        local first = assert(runner:submit("me", fresh.targets(1, "first")))
        local task = runner:take()
        core.poll_fd(-1, 0.02)
        runner:finish(task, "x")
        assert.equal("done", runner:wait(first, 10).status)
        runner:submit("me", fresh.targets(1, "kept"))
        task = eventually(function() return (runner:take()) end)
        assert.equal("kept1", task.url)
        local later = assert(runner:submit("me", fresh.targets(1, "later")))
        assert.equal("done", client:wait(later, 10).status)
        assert.same({ "idle later1" }, folder:lines "fetched")
        shares { idle }
    end)

    it("get jobs back that a program has and does not take", function()
        local lazy = fresh.keep(assert(batch.new { store = folder.store, durability = "normal",
            executor = "manual", on_restart = "resume", fetch = print, jobs_per_caller = 1000,
            jobs_total = 1000, targets_per_job = 10000 }))
        local ids = {}
        for i = 1, 3 do
            ids[i] = assert(lazy:submit("me", fresh.targets(1, "job" .. i .. "/")))
        end
        local idle = start("threads", { NAME = "idle" })
        for _, id in ipairs(ids) do
            assert.equal("done", assert(client:wait(id, 15)).status)
        end
        shares { idle }
        each_was_fetched_once(3)
    end)

    it("do many small jobs of clients without a pause between them", function()
        local worker = start("threads", { NAME = "one", WORKERS = 1, FETCH_SECONDS = 0 })
        are_ready(1)
        for i = 1, 300 do
            assert(client:submit("me", fresh.targets(1, "job" .. i .. "/")))
        end
        local began = process.now()
        are_done(300)
        local span = process.now() - began
        -- Two at a look would be a hundred in a second, and submits are quicker than that.
        assert.is_true(span < 1.5, ("it took %.1f s"):format(span))
        shares { worker }
        each_was_fetched_once(300)
    end)

    it("keep what they were given while nobody else is idle", function()
        local runner = fresh.keep(assert(batch.new { store = folder.store, durability = "normal",
            executor = "manual", on_restart = "resume", fetch = print, jobs_per_caller = 1000,
            jobs_total = 1000, targets_per_job = 10000 }))
        local other = fresh.keep(assert(batch.new { store = folder.store, durability = "normal",
            executor = "manual", on_restart = "resume", fetch = print, jobs_per_caller = 1000,
            jobs_total = 1000, targets_per_job = 10000 }))
        for _, one in ipairs { runner, other } do
            for i = 1, 10 do
                assert(one:submit("me", fresh.targets(2, tostring(one) .. i)))
            end
        end
        local owners = "select owner, count(*) from job group by 1 order by 1"
        local before = fresh.sql(owners, folder.store)
        assert.is_truthy(before:match "^%d+|10\n%d+|10$")
        for _ = 1, 5 do
            local one, two = runner:take(), other:take()
            core.poll_fd(-1, 0.03)
            runner:finish(one, "x")
            other:finish(two, "x")
        end
        assert.same(before, fresh.sql(owners, folder.store))
    end)
end)
