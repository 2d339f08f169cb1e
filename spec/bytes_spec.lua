-- SPDX-License-Identifier: MIT
--
-- Bytes: what is stored is counted exactly whatever happens to jobs, the file keeps to its budget,
-- and neither the log nor the process grows with what a slow reader has not read yet.

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local lfs = require "lfs"
local stream = require "spec.support.stream"

local KIB, MIB = 1024, 1024 * 1024
local N_STEPS = 600

local SUM = [[
select coalesce(sum(coalesce(length(cast(content as blob)), 0)
    + coalesce(length(cast(meta as blob)), 0)), 0)
from outcome where job in (select key from job);]]

-- A random walk over all that changes the sum.
local function new_walk()
    local walk = { clock = core.clock(1e9), ids = {}, tasks = {}, n_callers = 0 }

    function walk.open()
        walk.runner = fresh.runner({ max_bytes = "64KiB", ttl = 3600, on_restart = "resume" },
            walk.clock)
    end

    local steps = {}

    function steps.submit()
        walk.n_callers = walk.n_callers + 1
        local id = walk.runner:submit("c" .. walk.n_callers, fresh.targets(math.random(4)))
        walk.ids[#walk.ids + 1] = id
    end

    function steps.take()
        local task = walk.runner:take()
        walk.tasks[#walk.tasks + 1] = task
    end

    local function pop()
        return #walk.tasks > 0 and table.remove(walk.tasks, math.random(#walk.tasks))
    end

    function steps.finish()
        local task = pop() or walk.runner:take()
        if task then
            local meta = math.random() < 0.5 and { note = ("é"):rep(math.random(100)) } or nil
            walk.runner:finish(task, { content = ("\0x"):rep(math.random(0, 4000)), meta = meta })
        end
    end

    function steps.fail()
        local task = pop()
        if task then
            walk.runner:fail(task, ("e"):rep(math.random(500)), "hint")
        end
    end

    function steps.later()
        local task = pop()
        if task then
            walk.runner:later(task, "busy")
        end
    end

    -- A job in hand as often as any: its outcome comes late.
    function steps.cancel()
        local task = walk.tasks[math.random(2 * #walk.tasks + 1)]
        local id = task and task.job or walk.ids[math.random(#walk.ids + 1)]
        if id then
            walk.runner:cancel(id)
        end
    end

    function steps.advance()
        walk.clock:advance(math.random(0, 1200))
    end

    function steps.purge()
        local store = batch.store.open(fresh.path "batch.db")
        store:purge_expired(walk.clock:now())
        store:evict_oldest(math.random(0, 64) * KIB)
        store:close()
    end

    function steps.reopen()
        walk.tasks = {}
        walk.runner:close()
        walk.open()
    end

    local weights = {
        submit = 15, take = 15, finish = 30, fail = 5, later = 5, cancel = 8, advance = 8,
        purge = 3, reopen = 2,
    }
    local deck = {}
    for name, weight in pairs(weights) do
        for _ = 1, weight do
            deck[#deck + 1] = name
        end
    end
    table.sort(deck)

    function walk.step()
        local name = deck[math.random(#deck)]
        steps[name]()
        return name
    end

    return walk
end

describe("the bytes that are stored", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("are counted exactly through a random history of all that can happen to jobs", function()
        local seed = tonumber(os.getenv "SEED") or os.time()
        math.randomseed(seed)
        local walk, most, names = new_walk(), 0, {}
        walk.open()
        for i = 1, N_STEPS do
            names[#names + 1] = walk.step()
            if i % 10 == 0 then
                -- Outcomes are on their way while the two are asked.
                local counted, summed
                local is_exact = pcall(eventually, function()
                    summed = tonumber(fresh.sql(SUM))
                    counted = walk.runner:stats().store_bytes
                    return counted == summed
                end, 5)
                assert(is_exact, ("SEED=%d, step %d (%s): counted %s, summed %s"):format(seed, i,
                    table.concat(names, " ", math.max(1, #names - 9)), tostring(counted),
                    tostring(summed)))
                most = math.max(most, counted)
            end
        end
        assert.is_true(most > 16 * KIB, "the walk has stored little: " .. most)
        assert.is_true(fresh.store():check())
    end)

    for _, case in ipairs {
        { name = "60 results of 1 MiB", size = MIB, n_jobs = 60, n_targets = 1, budget = 10 },
        { name = "20 MB in results of 10 KB", size = 1e4, n_jobs = 250, n_targets = 8, budget = 2 },
    } do
        it(("keep a file below twice their budget while %s pass through it"):format(case.name),
            function()
                local path = fresh.path "batch.db"
                local runner = fresh.runner {
                    executor = "threads", workers = 4, max_bytes = case.budget * MIB,
                    fetch = function(target) return ("x"):rep(target.options.n) end,
                }
                local most, most_log = 0, 0
                for i = 1, case.n_jobs do
                    local targets = fresh.targets(case.n_targets, "u" .. i .. "-")
                    for _, target in ipairs(targets) do
                        target.options = { n = case.size }
                    end
                    local id = assert(runner:submit("c" .. i, targets))
                    if i % 4 == 0 then
                        assert(runner:wait(id, 60))
                    end
                    most = math.max(most, lfs.attributes(path, "size"))
                    most_log = math.max(most_log, lfs.attributes(path .. "-wal", "size"))
                end
                assert.is_true(runner:stats().evicted_jobs > 0)
                assert.is_true(most < 2 * case.budget * MIB, "it had bytes: " .. most)
                assert.is_true(most_log < 16 * MIB, "its log had bytes: " .. most_log)
            end)
    end

    it("do not make the log grow while somebody reads them slowly", function()
        local runner = fresh.runner { max_bytes = "1GiB" }
        local path = fresh.path "batch.db"
        local content = ("x"):rep(256 * KIB)
        local id = assert(runner:submit("ann", fresh.targets(32)))
        runner:drain(function() return content end)
        local next_result = runner:results(id)
        assert.equal(0, next_result().idx)
        local most_log = 0
        for i = 1, 10 do
            assert(runner:submit("bob" .. i, fresh.targets(32)))
            runner:drain(function() return content end)
            most_log = math.max(most_log, lfs.attributes(path .. "-wal", "size"))
        end
        assert.is_true(most_log < 16 * MIB, "the log had bytes: " .. most_log)
        for i = 1, 31 do
            assert.equal(i, next_result().idx)
        end
    end)

    it("do not stay in the log that one large transaction has made long", function()
        local runner = fresh.runner { max_bytes = "1GiB", jobs_total = 1e4, jobs_per_caller = 1e4 }
        local path = fresh.path "batch.db"
        local tasks, content = {}, ("x"):rep(MIB)
        for i = 1, 40 do
            assert(runner:submit("ann", fresh.targets(1, "u" .. i)))
            tasks[i] = runner:take()
        end
        local pipe = fresh.lock(1)
        for _, task in ipairs(tasks) do
            runner:finish(task, content)
        end
        pipe:close()
        eventually(function() return runner:stats().targets.done == 40 end)
        local n_small = 0
        eventually(function() -- the log begins anew with one of these
            n_small = n_small + 1
            assert(runner:submit("bob", fresh.targets(1, "v" .. n_small)))
            runner:drain(function() return "small" end)
            return lfs.attributes(path .. "-wal", "size") < 16 * MIB
        end)
    end)

    it("neither fill the memory of a server that streams them slowly, nor its log", function()
        local n_results, size = 500, 256 * KIB
        stream.check(stream.run(n_results, size), n_results, size)
    end)
end)
