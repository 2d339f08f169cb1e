-- SPDX-License-Identifier: MIT
--
-- One measurement of the product, in a process of its own. bench.lua starts it; it prints lines of
-- a name and a number, as floor does.
--
--   product.lua drain STORE DURABILITY TARGETS JOBS WORKERS BYTES_OF_EACH
--   product.lua submit STORE DURABILITY JOBS TARGETS_OF_EACH [FETCH]    on a store with or
--                                         without others; FETCH: a module with a check
--   product.lua start STORE SAMPLES
--   product.lua fill STORE JOBS TARGETS_OF_EACH
--   product.lua deep STORE TARGETS        drains so many of the one job that fill has left
--   product.lua shallow STORE TARGETS DEPTH    the same in jobs of DEPTH targets, one after another
--   product.lua live STORE JOBS           memory of a live job that waits for its turn
--   product.lua done STORE JOBS TARGETS_OF_EACH BYTES      runs jobs to their end
--   product.lua status STORE              reads each job of done with all its results
--   product.lua results STORE             reads the results of one
--   product.lua together STORE DURABILITY TARGETS JOBS PROCESSES
--   product.lua slow_workers STORE WORKERS ROUNDS     targets that take 100 ms
--   product.lua slow_manual STORE JOBS ROUNDS
--   product.lua resident STORE DONE       memory of a runner after so many of the job of fill

local batch = require "batch"
local core = require "batch.core"

local RESULT = ("x"):rep(1024)

local function config_of(store, fields)
    local config = {
        store = store,
        targets_per_job = 10000000,
        jobs_per_caller = 1000000,
        jobs_total = 1000000,
        max_bytes = "64GiB",
        durability = "normal",
        on_restart = "resume",
    }
    for name, value in pairs(fields or {}) do
        config[name] = value
    end
    return config
end

local function list_of(count, name)
    local targets = {}
    for idx = 0, count - 1 do
        targets[idx + 1] = { url = ("https://example.com/%s/%d"):format(name, idx) }
    end
    return targets
end

-- A named pipe that holds every reader until it is opened: what workers wait at, before their
-- first target, while the jobs come in.
local function make_gate(store)
    local path = store .. ".gate"
    assert(os.execute("mkfifo " .. path))
    return path
end

local function wait_at(gate)
    return function()
        io.open(gate):close()
    end
end

-- Opened until the runner is closed: its workers may come to the gate again.
local function close_with(runner, gate)
    local opened = io.open(gate, "w")
    runner:close()
    opened:close()
end

local function report(figures)
    for name, value in pairs(figures) do
        print(("%s %.9g"):format(name, value))
    end
end

local function memory_of(field)
    for line in io.lines "/proc/self/status" do
        local kib = line:match("^" .. field .. ":%s*(%d+) kB")
        if kib then
            return tonumber(kib) * 1024
        end
    end
end

local modes = {}

-- The clock runs from the moment the workers may begin, with all targets in the store, until the
-- last job is terminal. Opening the runner and submitting lie before it.
function modes.drain(store, durability, n_targets, n_jobs, n_workers, n_bytes)
    local gate, result = make_gate(store), ("x"):rep(n_bytes)
    local runner = assert(batch.new(config_of(store, {
        durability = durability,
        workers = n_workers,
        fetch = { setup = wait_at(gate), fetch = function() return result end },
    })))
    local ids, count = {}, n_targets // n_jobs
    for job = 1, n_jobs do
        ids[job] = assert(runner:submit("bench", list_of(count, job)))
    end
    core.poll_fd(runner:fd(), 0.05)  -- until all workers stand at the gate
    local opened = io.open(gate, "w")
    local began = core.now()
    for _, id in ipairs(ids) do
        assert(runner:wait(id).status == "done")
    end
    local seconds = core.now() - began
    local commits = runner:stats().commit_targets
    opened:close()
    runner:close()
    report { count = count * n_jobs, seconds = seconds, per_commit = commits.sum / commits.count }
end

-- Each job has another caller, as with many users; the list differs in its first URL.
function modes.submit(store, durability, n_jobs, n_targets, fetch)
    local client = assert(batch.client(config_of(store, {
        durability = durability,
        fetch = fetch ~= "" and fetch or function() end,
    })))
    local name = tostring(core.now())
    local targets = list_of(n_targets, name)
    local began = core.now()
    for job = 1, n_jobs do
        targets[1].url = name .. job
        assert(client:submit("caller " .. job, targets))
    end
    local seconds = core.now() - began
    client:close()
    report { count = n_jobs, seconds = seconds }
end

-- From the call of submit to the first line of fetch; between two of them the runner falls asleep.
function modes.start(store, n_samples)
    local runner = assert(batch.new(config_of(store, {
        fetch = function()
            return ("%.7f"):format(require("batch.core").now())
        end,
    })))
    local spans = {}
    for i = -9, n_samples do  -- the first ones warm up
        core.poll_fd(runner:fd(), 0.015)
        local began = core.now()
        local id = assert(runner:submit("bench", { { url = "https://example.com/" .. i } }))
        assert(runner:wait(id))
        local _, targets = runner:status(id)
        spans[#spans + 1] = i > 0 and tonumber(targets[1].result.content) - began or nil
    end
    runner:close()
    table.sort(spans)
    report { p50 = spans[n_samples // 2], p99 = spans[math.ceil(n_samples * 0.99)] }
end

function modes.fill(store, n_jobs, n_targets)
    local client = assert(batch.client(config_of(store)))
    for job = 1, n_jobs do
        assert(client:submit("fill " .. job, list_of(n_targets, job)))
    end
    client:close()
end

-- Stamped by fetch itself at the first target and the last one counted, so that neither opening nor
-- claiming nor submitting is in it.
local function stamping(first, last)
    local result = RESULT
    return function(_, ctx)
        if ctx.idx == first or ctx.idx == last then
            return ("%.7f"):format(require("batch.core").now())
        end
        return result
    end
end

local function stamp_of(runner, id, idx)
    local _, targets = runner:status(id, { from = idx, limit = 1 })
    return targets[1] and targets[1].result and tonumber(targets[1].result.content)
end

function modes.deep(store, n_targets)
    local runner = assert(batch.new(config_of(store, { fetch = stamping(0, n_targets) })))
    local id = runner:jobs()[1].id
    while not stamp_of(runner, id, n_targets) do
        core.poll_fd(runner:fd(), 0.02)
    end
    local seconds = stamp_of(runner, id, n_targets) - stamp_of(runner, id, 0)
    runner:close()
    report { count = n_targets, seconds = seconds }
end

function modes.shallow(store, n_targets, depth)
    local runner = assert(batch.new(config_of(store, { fetch = stamping(0, depth - 1) })))
    local count, seconds = 0, 0
    for job = 1, n_targets // depth do
        local id = assert(runner:submit("bench", list_of(depth, job)))
        assert(runner:wait(id))
        seconds = seconds + stamp_of(runner, id, depth - 1) - stamp_of(runner, id, 0)
        count = count + depth - 1
    end
    runner:close()
    report { count = count, seconds = seconds }
end

-- A fetch that does n_done targets of each job and stops at the next one.
local function stopping(gate, n_done)
    return function(_, ctx)
        if ctx.idx >= n_done then
            io.open(gate):close()
        end
        return ""
    end
end

-- What C holds, which is what the process has less what Lua has.
local function measure_memory()
    collectgarbage()
    return memory_of "RssAnon" - collectgarbage "count" * 1024
end

function modes.live(store, n_jobs)
    local gate = make_gate(store)
    local runner = assert(batch.new(config_of(store, { fetch = stopping(gate, 0) })))
    local function grow(from, upto)
        for job = from, upto do
            assert(runner:submit("caller " .. job, { { url = "https://example.com/" .. job } }))
        end
        core.poll_fd(runner:fd(), 0.1)
        return measure_memory()
    end
    local warm = n_jobs // 4  -- fills SQLite's caches
    local before = grow(1, warm)
    local after = grow(warm + 1, n_jobs)
    close_with(runner, gate)
    report { bytes = (after - before) / (n_jobs - warm) }
end

-- Of a runner that is at work on the one job that fill has left.
function modes.resident(store, n_done)
    local gate = make_gate(store)
    local runner = assert(batch.new(config_of(store, { fetch = stopping(gate, n_done) })))
    local id = runner:jobs()[1].id
    while runner:status(id, { results = false, limit = 0 }).targets_done < n_done do
        core.poll_fd(runner:fd(), 0.02)
    end
    report { bytes = measure_memory() }
    close_with(runner, gate)
end

-- --- around the core ---

function modes.done(store, n_jobs, n_targets, n_bytes)
    local result = ("x"):rep(n_bytes)
    local runner = assert(batch.new(config_of(store, {
        workers = 8, fetch = function() return result end,
    })))
    local ids = {}
    for job = 1, n_jobs do
        ids[job] = assert(runner:submit("done " .. job, list_of(n_targets, job)))
    end
    for _, id in ipairs(ids) do
        assert(runner:wait(id).status == "done")
    end
    runner:close()
    report { count = n_jobs * n_targets }
end

local function read_all(store, read)
    local client = assert(batch.client(config_of(store, { fetch = function() end })))
    local ids = {}
    for _, job in ipairs(client:jobs()) do
        ids[#ids + 1] = job.id
    end
    local began, count = core.monotime(), 0
    for _, id in ipairs(ids) do
        count = count + read(client, id)
    end
    report { count = count, seconds = core.monotime() - began }
    client:close()
end

function modes.status(store)
    read_all(store, function(client, id)
        local _, targets = client:status(id)
        return #targets
    end)
end

function modes.results(store)
    read_all(store, function(client, id)
        local count = 0
        for target in client:results(id) do
            count = count + (target.result and 1 or 0)
        end
        return count
    end)
end

-- Stands in for another program on the store, until its input ends.
function modes.member(store, durability)
    local result = RESULT
    local runner = assert(batch.new(config_of(store, {
        durability = durability, workers = 8, fetch = function() return result end,
    })))
    io.read "a"
    runner:close()
end

function modes.together(store, durability, n_targets, n_jobs, n_processes)
    local client = assert(batch.client(config_of(store, { fetch = function() end })))
    local members = {}
    for i = 1, n_processes do
        members[i] = io.popen(("%s %s member '%s' %s"):format(arg[-1], arg[0], store, durability),
            "w")
    end
    core.poll_fd(client:fd(), 0.5) -- until all are there
    local ids, began = {}, core.monotime()
    for job = 1, n_jobs do
        ids[job] = assert(client:submit("bench", list_of(n_targets // n_jobs, job)))
    end
    for _, id in ipairs(ids) do
        assert(client:wait(id).status == "done")
    end
    local seconds = core.monotime() - began
    for _, member in ipairs(members) do
        assert(member:close())
    end
    client:close()
    report { count = n_targets // n_jobs * n_jobs, seconds = seconds }
end

local SLOW_SECONDS = 0.1

-- As many jobs as there are workers, a target in flight of each.
function modes.slow_workers(store, n_workers, n_rounds)
    local seconds = SLOW_SECONDS
    local runner = assert(batch.new(config_of(store, {
        workers = n_workers,
        fetch = function(_, ctx)
            ctx:sleep(seconds)
            return ""
        end,
    })))
    for job = 1, n_workers do
        assert(runner:submit("bench", list_of(n_rounds, job)))
    end
    core.poll_fd(runner:fd(), 2 * SLOW_SECONDS) -- until all are at work
    local function count_done()
        return runner:stats().targets.done
    end
    local began, cpu, n_before = core.monotime(), os.clock(), count_done()
    core.poll_fd(-1, (n_rounds - 6) * SLOW_SECONDS)
    report { count = count_done() - n_before, seconds = core.monotime() - began,
        cpu = os.clock() - cpu }
    runner:close(0)
end

-- The same through the manual executor: an event loop whose every target is ready after 100 ms.
function modes.slow_manual(store, n_jobs, n_rounds)
    local runner = assert(batch.new(config_of(store, { executor = "manual" })))
    for job = 1, n_jobs do
        assert(runner:submit("bench", list_of(n_rounds, job)))
    end
    local flying, first, last, count = {}, 1, 0, 0
    local began, cpu, n_warm = nil, nil, 10 * n_jobs
    while count < n_jobs * n_rounds do
        local task, pause = runner:take()
        while task do
            last = last + 1
            flying[last] = { task = task, due = core.monotime() + SLOW_SECONDS }
            task, pause = runner:take()
        end
        local now = core.monotime()
        while first <= last and flying[first].due <= now do
            runner:finish(flying[first].task, "")
            flying[first], first, count = nil, first + 1, count + 1
            if count == n_warm then
                began, cpu = core.monotime(), os.clock()
            end
        end
        local due = math.min(first <= last and flying[first].due or math.huge, now + pause)
        core.poll_fd(runner:fd(), math.max(0, due - core.monotime()))
        runner:poll()
    end
    report { count = count - n_warm, seconds = core.monotime() - began, cpu = os.clock() - cpu }
    runner:close()
end

local arguments = {}
for i = 3, #arg do
    arguments[i - 2] = math.tointeger(arg[i]) or arg[i]
end
modes[arg[1]](arg[2], table.unpack(arguments))
