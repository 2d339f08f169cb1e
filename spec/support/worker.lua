-- SPDX-License-Identifier: MIT
--
-- Runners for specs of fetch: opened on a store in memory, closed after the test, their log
-- collected instead of printed.

local batch = require "batch"
local core = require "batch.core"
local interpreter = require "spec.support.interpreter"

local opened = {}

-- Opens a runner with the fields given, and collects what it logs in `log` (after a poll). `clock`
-- among them is a virtual one.
local function open(config)
    local log = {}
    local settings = {
        store = ":memory:",
        durability = "normal",
        log = function(level, message, fields)
            log[#log + 1] = { level = level, message = message, fields = fields }
        end,
    }
    for name, value in pairs(config or {}) do
        settings[name] = value
    end
    local clock = settings.clock
    settings.clock = nil
    local runner = assert(batch._new_on_clock(settings, clock))
    opened[#opened + 1] = runner
    return runner, log
end

-- Has a runner closed after the test.
local function keep(runner, ...)
    opened[#opened + 1] = assert(runner, (...))
    return runner, ...
end

-- Lets go of the runner opened last.
local function forget()
    return table.remove(opened)
end

local function close_all()
    for i = #opened, 1, -1 do
        opened[i]:close(10)
        opened[i] = nil
    end
end

-- Runs a job of the given targets, or of one, to its end.
local function run(runner, targets)
    local id = assert(runner:submit("spec", targets or { { url = "u" } }))
    local job = assert(runner:wait(id, 30))
    runner:poll()
    local _, outcomes = runner:status(id)
    return job, outcomes
end

-- The outcome of one target that the given fetch is called with, and the log.
local function outcome(fetch, config, target)
    local settings = { fetch = fetch }
    for name, value in pairs(config or {}) do
        settings[name] = value
    end
    local runner, log = open(settings)
    local _, outcomes = run(runner, { target or { url = "u" } })
    return outcomes[1], log
end

-- Sleeps without a loop of the processor.
local function pause(seconds)
    core.poll_fd(-1, seconds)
end

-- How many threads this process has.
local function count_threads()
    local pipe = assert(io.popen(("ls /proc/%d/task | wc -l"):format(core.pid())))
    local count = pipe:read "*n"
    pipe:close()
    return count
end

-- A folder that nobody else uses.
local function folder()
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute("mkdir " .. path))
    return path
end

-- What a program of its own writes to standard error, and whether it ended well. before: words of
-- the shell that stand before it.
local function program(text, before)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local pipe = assert(io.popen(("%s %s %s 2>&1 >/dev/null; echo $?"):format(before or "",
        interpreter, path)))
    local output, status = pipe:read("*a"):match "^(.-)(%d+)\n$"
    pipe:close()
    os.remove(path)
    return output, status == "0"
end

return {
    program = program,
    open = open,
    keep = keep,
    forget = forget,
    close_all = close_all,
    run = run,
    outcome = outcome,
    pause = pause,
    count_threads = count_threads,
    folder = folder,
}
