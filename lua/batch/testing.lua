-- SPDX-License-Identifier: MIT
--
-- What users need to test their own code: a runner on a virtual clock, a fetch that follows a
-- script, and faults. Nothing here waits for real time to pass.

local batch = require "batch"
local core = require "batch.core"
local faults = require "batch.testing.faults"
local retry = require "batch.retry"

-- A clock of whole milliseconds never ends up just before the moment that it was moved to.
local function rounded_up(seconds)
    return math.ceil(seconds * 1e3) / 1e3
end

-- ctx:sleep for a fetch in the program's own thread: nobody else could move the clock meanwhile.
local function sleep_by(clock, sleep)
    return function(ctx, seconds)
        local span = math.max(0, math.min(seconds, ctx:left()))
        if not ctx:cancelled() then
            clock:advance(span)
        end
        return sleep(ctx, seconds - span)
    end
end

-- Makes drain move the clock wherever a real runner would wait.
local function drive(runner, clock)
    local drain = runner.drain

    function runner.drain(self, fetch)
        return drain(self, type(fetch) ~= "function" and fetch or function(target, ctx)
            ctx.sleep = sleep_by(clock, ctx.sleep)
            return fetch(target, ctx)
        end)
    end

    function runner._wait_for_work(_, handle)
        local has_work, idle_seconds = handle:wait_for_work(0)
        if not idle_seconds then
            return (handle:wait_for_work(0.05))
        end
        clock:advance(rounded_up(idle_seconds))
        return has_work
    end
end

--- Opens a runner on a virtual clock: leases, retries, time-outs and sweeps go by it, and it stands
-- still until `clock:advance(seconds)`. `clock:now()` is its time. `clock:set(seconds)` sets it,
-- forward or back, as somebody sets the clock of a machine: moments are then others, spans that
-- run already (a retry's wait, a time-out) are not. Where `drain`, or `ctx:sleep` inside of it,
-- would wait, it moves the clock instead. `wait` blocks in real time.
-- @tparam[opt] table config as for `batch.new`; `store` is ":memory:" if left out
-- @tparam[opt] number now where the clock begins, seconds since the epoch; the present if left out
-- @treturn[1] batch.runner
-- @treturn[1] batch.clock with `advance(seconds)`, `set(seconds)` and `now()`
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string `invalid` or `store`
local function runner(config, now)
    local settings = { store = ":memory:" }
    for name, value in pairs(config or {}) do
        settings[name] = value
    end
    local clock, message, code = core.clock(now)
    local opened
    if clock then
        opened, message, code = batch._new_on_clock(settings, clock)
    end
    if not opened then
        return nil, message, code
    end
    drive(opened, clock)
    return opened, clock
end

-- The steps of a script are plain tables with a `kind`, so that a script can be carried.

--- A step: the target fails.
-- @tparam string message
-- @tparam[opt] string hint
local function fails(message, hint)
    return { kind = "fails", message = message, hint = hint }
end

--- A step: the target is busy, a number of times.
-- @tparam integer times calls of fetch that find it busy; `math.huge` for ever
-- @tparam[opt] string|table step what comes then
-- @tparam[opt] table options `seconds` to wait, `patient`, `message` ("busy")
local function busy(times, step, options)
    return { kind = "busy", times = times, step = step or "", options = options or {} }
end

--- A step: the call takes some time of the runner's clock.
-- @tparam number seconds
-- @tparam[opt] string|table step what comes then
local function takes(seconds, step)
    return { kind = "takes", seconds = seconds, step = step or "" }
end

--- A step: the call hangs until it is cancelled or its time is up.
local function hangs()
    return { kind = "hangs" }
end

--- A step: the fetch raises an error.
-- @param value anything that can be carried
local function raises(value)
    return { kind = "raises", value = value }
end

local actors = {
    fails = function(step)
        return nil, step.message, step.hint
    end,
    busy = function(step, ctx)
        local options = step.options
        if ctx.attempt <= step.times then
            return nil, retry.later(options.message or "busy", options.seconds, options)
        end
        return step.step
    end,
    takes = function(step, ctx)
        if ctx:sleep(step.seconds) then
            return step.step
        end
        return nil, "cancelled"
    end,
    hangs = function(_, ctx)
        repeat until not ctx:sleep(3600)
        return nil, "cancelled"
    end,
    raises = function(step)
        error(step.value, 0)
    end,
}

-- A step leads to values for the runner, or to the step that follows it.
local function play(step, ctx)
    local message, hint
    while type(step) == "table" and actors[step.kind] do
        step, message, hint = actors[step.kind](step, ctx)
    end
    return step, message, hint
end

--- Makes a fetch function that follows a script; for `fetch = …` as well as for `drain`.
-- @tparam table steps by url, or by idx, or `default`: a result as a fetch returns it (a string, or
-- `{content =, meta =}`), or a step made by `fails`, `busy`, `takes`, `hangs` or `raises`.
-- A target without a step fails.
-- @treturn function
-- @usage fetch = testing.script {
--     ["http://a.example/"] = "content",
--     ["http://b.example/"] = testing.busy(2, "then this"),
--     default = testing.fails "HTTP 404",
-- }
local function script(steps)
    if type(steps) ~= "table" then
        error("steps must be a table, got " .. type(steps), 2)
    end
    return function(target, ctx)
        local step = steps[target.url] or steps[ctx.idx] or steps.default
        if step == nil then
            return nil, "not in the script"
        end
        return play(step, ctx)
    end
end

return {
    runner = runner,
    script = script,
    fails = fails,
    busy = busy,
    takes = takes,
    hangs = hangs,
    raises = raises,
    fault = faults.fault,
    no_faults = faults.no_faults,
    passed = faults.passed,
}
