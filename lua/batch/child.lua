-- SPDX-License-Identifier: MIT

--- Programs that do a part of the pipeline's work, run under limits: how they are called within
-- what is left of a target's time, and what it means when they did not end by themselves. Knows
-- nothing of what the programs do.
-- @module batch.child

local deadline = require "batch.deadline"

local run_limited = require("batch.core").child

local MIB = 1024 * 1024

-- What is left of the target's time, if that is less.
local function span_of(seconds, ctx)
    local left = deadline.left(ctx)
    if left and left < seconds then
        return math.max(left, 0), true
    end
    return seconds, false
end

local function refuse(spec, message, code)
    if code == "not_found" then
        return nil, ("the program '%s' is missing"):format(spec.program),
            ("install the package '%s'"):format(spec.package)
    end
    return nil, ("%s could not be run: %s"):format(spec.program, message)
end

-- Why it was stopped; nil if it ended by itself.
local function explain(spec, why, seconds, is_target_time)
    if why == "cancelled" then
        return "cancelled"
    elseif why == "timeout" and is_target_time then
        return "timed out", ("%s was still at work"):format(spec.program)
    elseif why == "timeout" or why == "cpu" then
        return ("%s was stopped after %g s"):format(spec.program, seconds), spec.slow_hint
    elseif why == "output" then
        return ("%s was stopped: more than %g MiB of output"):format(spec.program,
            spec.max_output / MIB), spec.large_hint
    end
end

--- Runs a program on some input.
-- @tparam table spec `program` and `package` that has it, `arguments` (a list of strings), `input`
-- (bytes), `seconds` of wall and of processor time, `memory` and `max_output` in bytes, and the
-- hints for one that was stopped: `slow_hint`, `large_hint`
-- @tparam ?table ctx `deadline` and `cancel_fd`, either may be nil
-- @treturn[1] table `output`, `errors`, and `status` (its exit code) or `signal`
-- @treturn[2] nil
-- @treturn[2] string why there is no such result
-- @treturn[2] ?string a hint
local function run(spec, ctx)
    local seconds, is_target_time = span_of(spec.seconds, ctx)
    local result, message, code = run_limited {
        program = spec.program,
        arguments = spec.arguments,
        input = spec.input,
        seconds = seconds,
        cpu_seconds = math.max(spec.seconds, 1), -- the kernel counts whole ones
        memory = spec.memory,
        max_output = spec.max_output,
        cancel_fd = ctx and ctx.cancel_fd,
    }
    if not result then
        return refuse(spec, message, code)
    end
    local reason, hint = explain(spec, result.why, seconds, is_target_time)
    if reason then
        return nil, reason, hint
    end
    return result
end

--- @export
return { run = run }
