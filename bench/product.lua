-- SPDX-License-Identifier: MIT
--
-- One measurement of the product, in a process of its own. bench.lua starts it; it prints lines of
-- a name and a number, as floor does.
--
--   product.lua drain STORE DURABILITY TARGETS JOBS WORKERS
--   product.lua submit STORE DURABILITY JOBS TARGETS_OF_EACH [FETCH]    on a store with or
--                                         without others; FETCH: a module with a check
--   product.lua start STORE SAMPLES
--   product.lua fill STORE JOBS TARGETS_OF_EACH
--   product.lua deep STORE TARGETS        drains so many of the one job that fill has left
--   product.lua shallow STORE TARGETS DEPTH    the same in jobs of DEPTH targets, one after another
--   product.lua live STORE JOBS           memory of a live job that waits for its turn
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
function modes.drain(store, durability, n_targets, n_jobs, n_workers)
    local gate, result = make_gate(store), RESULT
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
        fetch = fetch or function() end,
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

local arguments = {}
for i = 3, #arg do
    arguments[i - 2] = math.tointeger(arg[i]) or arg[i]
end
modes[arg[1]](arg[2], table.unpack(arguments))
