-- SPDX-License-Identifier: MIT
--
-- A target that crashes the process that fetches it, among others that do no harm: it alone has
-- crashed in the end, however often the others were in flight beside it.

local batch = require "batch"
local interpreter = require "spec.support.interpreter"
local process = require "spec.support.process"

local N_INNOCENT = 8  -- jobs of two targets
local CRASH_LIMIT = 3

-- Works on whatever there is until all jobs have ended. The second target of the job "poison"
-- crashes when all hands are at work, those of the others last long enough to be there.
local WORKS = [[
package.cpath = folder .. "/?.so;" .. package.cpath
local runner = assert(batch.new(settings { on_restart = "resume", crash_limit = LIMIT,
    executor = EXECUTOR, workers = 9,
    fetch = function(target, ctx)
        note("fetched", target.url)
        if target.url == "poison2" then
            ctx:sleep(0.1)
            WAY
        end
        ctx:sleep(target.url:find "^poison" and 0 or 0.25)
        return "fine"
    end,
    hooks = { target = function(failure, _, _, info)
        if failure then
            note("told", info.job .. " " .. info.idx .. " " .. failure)
        end
    end } }))
note("ready", core.pid())
local function is_over()
    return io.open(folder .. "/submitted") and runner:stats().live_jobs == 0
end
while not is_over() do
    core.poll_fd(-1, 0.02)
end
runner:poll()
assert(runner:close())
]]

-- As a program that has three tasks in its hands at once, and crashes with them.
local PROGRAM = [[
local runner = assert(batch.new(settings { on_restart = "resume", crash_limit = LIMIT,
    executor = "manual", workers = 3 }))
note("ready", core.pid())
local held, n_held, took_at = {}, 0, core.monotime()
local function end_all()
    for task in pairs(held) do
        if task.url == "poison2" then
            os.execute("kill -9 " .. core.pid())
        end
    end
    for task in pairs(held) do
        assert(runner:finish(task, "fine"))
    end
    held, n_held = {}, 0
end
while not (io.open(folder .. "/submitted") and runner:stats().live_jobs == 0) do
    local task = n_held < 3 and runner:take()
    if task then
        note("fetched", task.url)
        held[task], n_held, took_at = true, n_held + 1, core.monotime()
    elseif n_held > 0 and core.monotime() > took_at + 0.1 then
        end_all()
    else
        core.poll_fd(-1, 0.005)
    end
end
assert(runner:close())
]]

describe("a target that crashes its process", function()
    local folder, client

    before_each(function()
        folder = process.folder()
        local build = "cc -shared -fPIC $(pkg-config --cflags %s) -o %s/crasher.so %s"
        local built = os.execute(build:format(interpreter, folder.path, "spec/support/crasher.c"))
        assert(built == true or built == 0)
        client = assert(batch.client { store = folder.store, durability = "normal",
            jobs_per_caller = 100, jobs_total = 100 })
    end)

    after_each(function()
        client:close()
        folder:remove()
    end)

    local function start(code, way)
        return folder:start((code:gsub("WAY", way or ""):gsub("EXECUTOR", '"threads"')
            :gsub("LIMIT", CRASH_LIMIT)))
    end

    local function targets(name, n)
        local list = {}
        for i = 1, n do
            list[i] = { url = name .. i }
        end
        return list
    end

    -- The poisoned job and the others.
    local function submit()
        local ids = { poison = assert(client:submit("me", targets("poison", 3))) }
        for i = 1, N_INNOCENT do
            ids[i] = assert(client:submit("me", targets("fine" .. i .. "-", 2)))
        end
        io.open(folder.path .. "/submitted", "w"):close()
        return ids
    end

    local function count(line)
        local n = 0
        for _, other in ipairs(folder:lines "fetched") do
            n = n + (other == line and 1 or 0)
        end
        return n
    end

    local function has_crashed_alone(ids)
        local job, outcomes = client:status(ids.poison)
        assert.same({ "partial", "done", "failed", "done" }, { job.status, outcomes[1].status,
            outcomes[2].status, outcomes[3].status })
        assert.same({ "crashed", CRASH_LIMIT }, { outcomes[2].error, outcomes[2].attempts })
        assert.equal(CRASH_LIMIT, count "poison2")
        for i = 1, N_INNOCENT do
            local other = client:status(ids[i])
            assert.same({ "done", 2 }, { other.status, other.targets_done }, "job " .. i)
        end
        local store = assert(batch.store.open(folder.store))
        assert.is_true(store:check())
        store:close()
    end

    -- Ends of all processes, sorted.
    local function ends(processes)
        local statuses = {}
        for i, one in ipairs(processes) do
            statuses[i] = one:wait()
        end
        table.sort(statuses)
        return statuses
    end

    it("in one process after the other: those beside it are not blamed", function()
        local ids, processes = submit(), {}
        for i = 1, CRASH_LIMIT + 1 do
            processes[i] = start(WORKS, 'require("crasher")()')
            processes[i]:wait()
        end
        assert.same({ 0, 134, 134, 134 }, ends(processes))
        has_crashed_alone(ids)
        assert.same({ ids.poison .. " 1 crashed" }, folder:lines "told")
    end)

    local ways = {
        { "abort", 'require("crasher")()', 134 },
        { "kill -9", "os.execute('kill -9 ' .. core.pid()) ctx:sleep(60)", 137 },
    }
    for _, way in ipairs(ways) do
        it("by " .. way[1] .. " in one of four processes: one goes on and ends all work", function()
            local processes = {}
            for i = 1, 4 do
                processes[i] = start(WORKS, way[2])
            end
            process.eventually(function() return #folder:lines "ready" == 4 end)
            local ids = submit()
            assert.same({ 0, way[3], way[3], way[3] }, ends(processes))
            has_crashed_alone(ids)
        end)
    end

    it("in programs that take several tasks at once: those beside it are not blamed", function()
        local processes = {}
        for i = 1, 4 do
            processes[i] = start(PROGRAM)
        end
        process.eventually(function() return #folder:lines "ready" == 4 end)
        local ids = submit()
        assert.same({ 0, 137, 137, 137 }, ends(processes))
        has_crashed_alone(ids)
    end)
end)
