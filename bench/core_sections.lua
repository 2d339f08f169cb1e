-- SPDX-License-Identifier: MIT
--
-- Measures the core: draining, submitting, the way from submit to fetch, depth and memory.

local goals = require "goals"
local report = require "report"
local running = require "running"

local IS_QUICK, ROUNDS = report.IS_QUICK, report.ROUNDS
local compare, summary, number = report.compare, report.summary, report.number
local title, row, row_alone = report.title, report.row, report.row_alone
local PRODUCT, FLOOR, STORE, DEEP = running.PRODUCT, running.FLOOR, running.STORE, running.DEEP
local remove, copy, rate = running.remove, running.copy, running.rate
local run, run_fresh = running.run, running.run_fresh

local SECONDS = IS_QUICK and 0.2 or 0.8 -- that the floor shall take in one round
local KIB = 1024

-- How many the floor does in SECONDS, found by a first try, which warms up as well.
local function find_count(try, ...)
    local arguments = { ... }
    table.insert(arguments, 4, try)
    return math.max(1, rate(run_fresh(table.unpack(arguments))) * SECONDS // 1 | 0)
end

-- shape: workers, jobs, bytes of a result, and the goal if there is one. The floor stores as many
-- outcomes in a transaction as there are jobs, 64 at most.
local function drain_row(section, shape, durability)
    local per_commit = math.min(shape.jobs, 64)
    local try = math.max(64, (durability == "full" and 1000 or 5000) * KIB // shape.bytes)
    local n_targets = find_count(math.min(try, 5000), FLOOR, "drain", durability, shape.jobs,
        per_commit, shape.bytes)
    n_targets = math.max(1, n_targets // shape.jobs) * shape.jobs
    local commits = {}
    local compared = compare(function()
        local figures = run_fresh(PRODUCT, "drain", durability, n_targets, shape.jobs,
            shape.workers, shape.bytes)
        commits[#commits + 1] = figures.per_commit
        return rate(figures)
    end, function()
        return rate(run_fresh(FLOOR, "drain", durability, n_targets, shape.jobs, per_commit,
            shape.bytes))
    end)
    row(section, ("%s, %s (%.1f a commit)"):format(shape.name, durability,
        summary(commits).median), compared, shape.goal)
end

local function drain()
    title("drain, workers × jobs, targets/s", "product", "floor")
    for _, durability in ipairs { "normal", "full" } do
        for _, workers in ipairs { 1, 2, 8, 64 } do
            for _, jobs in ipairs { 1, 8, 64, 1000 } do
                local name = ("%d × %d"):format(workers, jobs)
                if goals.drain[name] or not IS_QUICK then
                    drain_row("drain", { name = name, workers = workers, jobs = jobs, bytes = KIB,
                        goal = goals.drain[name] }, durability)
                end
            end
        end
    end
end

local function sizes()
    title("drain 8 × 8 by the size of a result", "product", "floor")
    for _, size in ipairs { { "100 B", 100 }, { "1 KiB", KIB }, { "64 KiB", 64 * KIB },
        { "1 MiB", KIB * KIB } } do
        drain_row("sizes", { name = size[1], workers = 8, jobs = 8, bytes = size[2] }, "normal")
    end
end

-- shape: targets, threads, and the name of a fetch with a check if there is one. One thread submits
-- by the Lua module, several by the C core; the floor stores as many jobs in a transaction as there
-- are threads.
local function submit_row(shape, durability)
    local n_targets, n_threads = shape.targets, shape.threads or 1
    local n_jobs = find_count(durability == "full" and 200 or 500, FLOOR, "submit", durability,
        n_targets, n_threads)
    local name = ("%d%s%s, %s"):format(n_targets, shape.fetch and ", checked" or "",
        n_threads > 1 and (", %d threads"):format(n_threads) or "", durability)
    row("submit", name, compare(function()
        if n_threads > 1 then
            return rate(run_fresh(running.SUBMITTING, "submit", durability, n_jobs, n_targets,
                n_threads))
        end
        return rate(run_fresh(PRODUCT, "submit", durability, n_jobs, n_targets, shape.fetch or ""))
    end, function()
        return rate(run_fresh(FLOOR, "submit", durability, n_jobs, n_targets, n_threads))
    end), not shape.fetch and n_threads == 1 and goals.submit[n_targets] or nil)
end

local SUBMITS = {
    { targets = 32 }, { targets = 32, threads = 8 }, -- the quick mode has these alone
    { targets = 32, fetch = "batch.fetch" }, { targets = 1 }, { targets = 1, threads = 8 },
    { targets = 1000 }, { targets = 1000, threads = 8 },
}

local function submit()
    title("submit by number of targets, jobs/s", "product", "floor")
    for _, durability in ipairs { "normal", "full" } do
        for i = 1, IS_QUICK and 2 or #SUBMITS do
            submit_row(SUBMITS[i], durability)
        end
    end
end

local function start()
    title("from submit to fetch, idle, µs", "product", "floor")
    local n_samples, base = IS_QUICK and 40 or 200, nil
    local p99, base_p99 = {}, {}
    local p50 = compare(function()
        local figures = run_fresh(PRODUCT, "start", n_samples)
        p99[#p99 + 1], base_p99[#base_p99 + 1] = figures.p99 * 1e6, base.p99 * 1e6
        return figures.p50 * 1e6
    end, function()
        base = run_fresh(FLOOR, "start", n_samples)
        return base.p50 * 1e6
    end)
    row("start", "p50", p50, goals.start, "µs")
    row_alone("start", "p99", summary(p99).median, "µs")
    row_alone("start", "p99 of the floor", summary(base_p99).median, "µs")
end

local function depth()
    local deep = IS_QUICK and 200000 or 1000000
    local n_targets, n_jobs = IS_QUICK and 5000 or 20000, IS_QUICK and 300 or 1500
    title(("%s queued against 1 000"):format((number(deep))), "deep", "shallow")
    remove(DEEP)
    run(PRODUCT, "fill", DEEP, 1, deep)
    row("depth", "drain 1 × 1, targets/s", compare(function()
        copy(DEEP, STORE)
        return rate(run(PRODUCT, "deep", STORE, n_targets))
    end, function()
        return rate(run_fresh(PRODUCT, "shallow", n_targets, 1000))
    end), goals.depth)
    local resident = {}
    for i = 1, ROUNDS do
        copy(DEEP, STORE)
        local many = run(PRODUCT, "resident", STORE, 500).bytes
        remove(STORE)
        run(PRODUCT, "fill", STORE, 1, 1000)
        resident[i] = (many - run(PRODUCT, "resident", STORE, 500).bytes) / (deep - 1000)
    end
    remove(DEEP)
    run(PRODUCT, "fill", DEEP, deep // 32, 32)
    row("depth", "submit of 32 targets, jobs/s", compare(function()
        copy(DEEP, STORE)
        return rate(run(PRODUCT, "submit", STORE, "normal", n_jobs, 32))
    end, function()
        remove(STORE)
        run(PRODUCT, "fill", STORE, 32, 32)
        return rate(run(PRODUCT, "submit", STORE, "normal", n_jobs, 32))
    end), goals.depth)
    row_alone("depth", "memory of a queued target", summary(resident).median, "bytes",
        goals.queued_target)
    remove(DEEP)
end

-- Beside outcomes of ended jobs.
local function stored()
    local n_jobs = IS_QUICK and 100 or 1000
    local n_targets, n_submits = IS_QUICK and 5000 or 20000, IS_QUICK and 300 or 1500
    title(("%s stored outcomes against 1 000"):format((number(n_jobs * 1000))), "many", "few")
    local few = running.FOLDER .. "/few.db"
    remove(DEEP)
    remove(few)
    run(PRODUCT, "done", DEEP, n_jobs, 1000, 100)
    run(PRODUCT, "done", few, 1, 1000, 100)
    local function beside(store, mode, ...)
        copy(store, STORE)
        return rate(run(PRODUCT, mode, STORE, ...))
    end
    for _, case in ipairs {
        { "drain 8 × 8, targets/s", "drain", "normal", n_targets, 8, 8, KIB },
        { "submit of 32 targets, jobs/s", "submit", "normal", n_submits, 32 },
    } do
        row("stored", case[1], compare(function()
            return beside(DEEP, table.unpack(case, 2))
        end, function()
            return beside(few, table.unpack(case, 2))
        end), goals.stored)
    end
    remove(DEEP)
    remove(few)
end

local function memory()
    print "\nmemory"
    local bytes = {}
    for i = 1, IS_QUICK and 1 or 3 do
        bytes[i] = run_fresh(PRODUCT, "live", IS_QUICK and 4000 or 12000).bytes
    end
    row_alone("memory", "an idle live job", summary(bytes).median, "bytes", goals.live_job)
end

return {
    drain = drain, sizes = sizes, submit = submit, start = start, depth = depth, stored = stored,
    memory = memory,
}
