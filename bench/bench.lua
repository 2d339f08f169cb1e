-- SPDX-License-Identifier: MIT
--
-- Measures the product beside the floor, which does the bare SQLite work of the same rows, and
-- prints a table. Both run in turns, a process and a fresh store each; a figure is the median of
-- its rounds with the lowest and the highest, and a ratio the median of the rounds' own ratios, so
-- that whatever else the machine does hits both sides alike. Goals are printed, never asserted.
--
-- Environment: FLOOR (path of the program), BENCH_QUICK=1 (under a minute), BENCH_JSON=FILE (also
-- writes the figures there), BENCH_DIR (where the stores lie; build/bench), BENCH_ONLY (a word:
-- only the sections with it in their title).

package.path = arg[0]:gsub("bench%.lua$", "?.lua;") .. package.path

local cjson = require "cjson"
local fetch = require "fetch_sections"
local http = require "http_sections"
local nginx = require "nginx_sections"
local report = require "report"

local IS_QUICK, ROUNDS, records = report.IS_QUICK, report.ROUNDS, report.records
local compare, summary, number = report.compare, report.summary, report.number
local title, row, row_alone = report.title, report.row, report.row_alone

local SECONDS = IS_QUICK and 0.2 or 1.2  -- that the floor shall take in one round of drain
local FOLDER = os.getenv "BENCH_DIR" or "build/bench"
local ONLY = os.getenv "BENCH_ONLY" or ""
local FLOOR = assert(os.getenv "FLOOR", "FLOOR must name the floor's program (use make bench)")
local PRODUCT = arg[-1] .. " " .. arg[0]:gsub("bench%.lua$", "product.lua")

local STORE = FOLDER .. "/bench.db"
local DEEP = FOLDER .. "/deep.db"

-- --- running ---

local function remove(path)
    os.execute(("rm -f '%s' '%s'-* '%s'.*"):format(path, path, path))
end

-- On the disk before it is used: what is still to be written would slow down what comes next.
local function copy(from, to)
    remove(to)
    assert(os.execute(("cp '%s' '%s' && sync '%s'"):format(from, to, to)))
end

local function run(program, mode, store, ...)
    local command = table.concat({ program, mode, "'" .. store .. "'", ... }, " ")
    local pipe = assert(io.popen(command))
    local figures = {}
    for name, value in pipe:read("a"):gmatch "(%S+) (%S+)" do
        figures[name] = tonumber(value)
    end
    assert(pipe:close(), "failed: " .. command)
    return figures
end

local function run_fresh(program, mode, ...)
    remove(STORE)
    return run(program, mode, STORE, ...)
end

local function rate(figures)
    return figures.count / figures.seconds
end

-- --- sections ---

local function drain_cell(shape, durability)
    -- How many the floor does in SECONDS, found by a first try, which warms up as well.
    local try = durability == "full" and 1000 or 5000
    local seen = rate(run_fresh(FLOOR, "drain", durability, try, shape.jobs, shape.per_commit))
    local n_targets = math.max(1, seen * SECONDS // shape.jobs) * shape.jobs // 1 | 0
    local commits = {}
    local compared = compare(function()
        local figures = run_fresh(PRODUCT, "drain", durability, n_targets, shape.jobs,
            shape.workers)
        commits[#commits + 1] = figures.per_commit
        return rate(figures)
    end, function()
        return rate(run_fresh(FLOOR, "drain", durability, n_targets, shape.jobs, shape.per_commit))
    end)
    local name = ("%d × %d, %s (%.1f a commit)"):format(shape.workers, shape.jobs, durability,
        summary(commits).median)
    row("drain", name, compared, shape.goal)
end

local function drain()
    title("drain, workers × jobs, targets/s", "product", "floor")
    for _, durability in ipairs { "normal", "full" } do
        drain_cell({ workers = 1, jobs = 1, per_commit = 1, goal = 0.85 }, durability)
        drain_cell({ workers = 1, jobs = 8, per_commit = 8, goal = 0.75 }, durability)
        drain_cell({ workers = 8, jobs = 8, per_commit = 8, goal = 0.75 }, durability)
        if not IS_QUICK then
            drain_cell({ workers = 64, jobs = 64, per_commit = 64 }, durability)
        end
    end
end

local function submit()
    title("submit of 32 targets, jobs/s", "product", "floor")
    for _, durability in ipairs { "normal", "full" } do
        local try = durability == "full" and 200 or 1000
        local seen = rate(run_fresh(FLOOR, "submit", durability, try, 32))
        local n_jobs = math.max(1, seen * SECONDS // 1 | 0)
        local function bare()
            return rate(run_fresh(FLOOR, "submit", durability, n_jobs, 32))
        end
        row("submit", durability, compare(function()
            return rate(run_fresh(PRODUCT, "submit", durability, n_jobs, 32))
        end, bare), 0.7)
        if not IS_QUICK then
            row("submit", durability .. ", checked by batch.fetch", compare(function()
                return rate(run_fresh(PRODUCT, "submit", durability, n_jobs, 32, "batch.fetch"))
            end, bare))
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
    row("start", "p50", p50, "100 µs")
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
    end), 0.9)
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
    end), 0.9)
    row_alone("depth", "memory of a queued target", summary(resident).median, "bytes", "0")
    remove(DEEP)
end

local function memory()
    print "\nmemory"
    local bytes = {}
    for i = 1, IS_QUICK and 1 or 3 do
        bytes[i] = run_fresh(PRODUCT, "live", IS_QUICK and 4000 or 12000).bytes
    end
    row_alone("memory", "an idle live job", summary(bytes).median, "bytes", "1 024")
end

local function machine()
    local cpu = io.open("/proc/cpuinfo"):read("a"):match "model name%s*: ([^\n]*)" or "?"
    local cores = io.popen("nproc"):read "l"
    local disk = io.popen(("stat -f -c %%T '%s'"):format(FOLDER)):read "l"
    return ("%s, %s cores, %s; %d rounds"):format(cpu, cores, disk, ROUNDS)
end

assert(os.execute(("mkdir -p '%s'"):format(FOLDER)))
print(machine())
print "median (lowest–highest); a ratio is the median of the rounds' ratios"
for _, section in ipairs {
    { "drain", drain }, { "submit", submit }, { "start", start }, { "depth", depth },
    { "memory", memory }, { "http get", http.get }, { "http post", http.post },
    { "http streams", http.streams }, { "fetch html", fetch.html }, { "fetch pages", fetch.pages },
    { "fetch memory", fetch.memory }, { "nginx", nginx.all },
} do
    if section[1]:find(ONLY, 1, true) then
        section[2](FOLDER)
    end
end
remove(STORE)

local path = os.getenv "BENCH_JSON"
if path and path ~= "" then
    local file = assert(io.open(path, "w"))
    file:write(cjson.encode { machine = machine(), rounds = ROUNDS, rows = records }, "\n")
    file:close()
end
