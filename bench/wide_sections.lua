-- SPDX-License-Identifier: MIT
--
-- Measures what is around the core's own pace: reading, several processes on one store, and many
-- slow fetches at once.

local goals = require "goals"
local report = require "report"
local running = require "running"

local IS_QUICK = report.IS_QUICK
local compare, summary, title = report.compare, report.summary, report.title
local row, row_alone = report.row, report.row_alone
local PRODUCT, FLOOR, STORE = running.PRODUCT, running.FLOOR, running.STORE
local run, run_fresh, rate = running.run, running.run_fresh, running.rate

-- Each as JSON does not count here: what a program gets as tables.
local function reading()
    title("reading outcomes of 1 KiB, 1/s", "product", "floor")
    for _, case in ipairs {
        { "status of a job of 32, targets", IS_QUICK and 50 or 500, 32 },
        { "results of a job, targets", 1, IS_QUICK and 5000 or 50000 },
    } do
        local name, n_jobs, n_targets = table.unpack(case)
        running.remove(STORE)
        run(PRODUCT, "done", STORE, n_jobs, n_targets, 1024)
        row("reading", name, compare(function()
            return rate(run(PRODUCT, n_jobs > 1 and "status" or "results", STORE))
        end, function()
            return rate(run(FLOOR, "read", STORE, n_jobs))
        end))
    end
end

local N_PROCESSES, N_JOBS = 4, 64

-- In the floor each process stores an outcome of each of its jobs in a transaction, and has its
-- jobs from the start; the product's processes find theirs by looking, which is in their time.
local function processes()
    local n_targets = IS_QUICK and 4000 or 20000
    title("4 processes of 8 workers, 64 jobs, 1/s", "4 processes", "beside them")
    for _, durability in ipairs { "normal", "full" } do
        local function measure(n_processes)
            return rate(run_fresh(PRODUCT, "together", durability, n_targets, N_JOBS, n_processes))
        end
        local function measure_four()
            return measure(N_PROCESSES)
        end
        row("processes", "beside one, " .. durability, compare(measure_four, function()
            return measure(1)
        end))
        row("processes", "beside the floor's four, " .. durability, compare(measure_four, function()
            return rate(run_fresh(FLOOR, "together", durability, n_targets, N_JOBS,
                N_JOBS // N_PROCESSES, 1024, N_PROCESSES))
        end))
    end
end

-- Targets that take 100 ms, asleep: what is measured is the cost of having many at once.
local function many()
    print "\nmany fetches of 100 ms at once"
    for _, case in ipairs { { "workers", 256 }, { "manual", 1000 } } do
        local mode, n_at_once = case[1], case[2]
        local rates, shares = {}, {}
        for i = 1, IS_QUICK and 1 or 5 do
            local figures = run_fresh(PRODUCT, "slow_" .. mode, n_at_once, IS_QUICK and 20 or 50)
            rates[i] = rate(figures) / (n_at_once * 10)
            shares[i] = 100 * figures.cpu / figures.seconds
        end
        local name = ("%d by %s"):format(n_at_once, mode)
        row_alone("many", name .. ", of what 100 ms allow", summary(rates).median, "",
            goals.many_rate)
        row_alone("many", name .. ", of one core", summary(shares).median, "%", goals.many_core)
    end
end

return { reading = reading, processes = processes, many = many }
