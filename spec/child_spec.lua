-- SPDX-License-Identifier: MIT
--
-- Programs under limits as Lua code runs them: what comes back, and what is said of those that were
-- stopped or could not be run.

local child = require "batch.child"
local run_limited = require("batch.core").child
local cancelled = require "spec.support.cancelled"

local MIB = 1024 * 1024

-- A call of child.run with the fields that a test does not care for.
local function spec_of(fields)
    local spec = {
        package = "some-package", arguments = {}, seconds = 30, memory = 256 * MIB,
        max_output = MIB, slow_hint = "slow", large_hint = "large",
    }
    for name, value in pairs(fields) do
        spec[name] = value
    end
    return spec
end

local function refusal(fields, ctx)
    local result, message, hint = child.run(spec_of(fields), ctx)
    assert.is_nil(result)
    return { message, hint }
end

describe("a program", function()
    it("gets its input and arguments, and gives output and errors", function()
        local result = assert(run_limited {
            program = "sh",
            arguments = { "-c", 'read -r line; echo "$1 $line"; echo oh >&2; exit 4', "sh", "a b" },
            input = "one\ntwo\n",
        })
        assert.same({ output = "a b one\n", errors = "oh\n", why = "exit", status = 4 }, result)
    end)

    it("takes and gives bytes of any kind", function()
        local bytes = "\0\255\r\n\128" .. ("x"):rep(MIB)
        local result = run_limited { program = "cat", arguments = {}, input = bytes }
        assert.is_true(bytes == result.output)
    end)

    it("that was ended by a signal says by which", function()
        local result = run_limited { program = "sh", arguments = { "-c", "kill -TERM $$" } }
        assert.same({ "signal", 15, nil }, { result.why, result.signal, result.status })
    end)

    it("gives what it had written when it was stopped", function()
        local script = "echo begun; while :; do :; done"
        local result = run_limited { program = "sh", arguments = { "-c", script }, seconds = 0.2 }
        assert.same({ "timeout", "begun\n" }, { result.why, result.output })
    end)

    it("is refused with NUL in an argument", function()
        assert.same({ nil, "an argument must not hold NUL", "invalid" },
            { run_limited { program = "echo", arguments = { "a\0b" } } })
    end)

    it("is asked for in the right way, or that is a mistake", function()
        local mistakes = {
            { {}, "program must be a string, got a nil" },
            { { program = "true" }, "table expected, got nil" },
            { { program = "true", arguments = { 1 } }, "an argument must be a string" },
            { { program = "true", arguments = {}, input = 1 }, "input must be a string" },
            { { program = "true", arguments = {}, seconds = "1" }, "seconds must be a number" },
            { { program = "true", arguments = {}, seconds = -1 }, "seconds must be from 0" },
            { { program = "true", arguments = {}, memory = 0 / 0 }, "memory must be from" },
            { { program = "true", arguments = {}, memory = 0 }, "memory must be from" },
        }
        for _, mistake in ipairs(mistakes) do
            local is_fine, message = pcall(run_limited, mistake[1])
            assert.is_false(is_fine)
            assert.is_truthy(message:find(mistake[2], 1, true), message)
        end
    end)
end)

describe("a program that was stopped", function()
    it("is told with the time that it had", function()
        assert.same({ "sleep was stopped after 0.1 s", "slow" },
            refusal { program = "sleep", arguments = { "100" }, seconds = 0.1 })
    end)

    it("is told with the output that it may have", function()
        assert.same({ "cat was stopped: more than 1 MiB of output", "large" },
            refusal { program = "cat", arguments = { "/dev/zero" } })
    end)

    it("by the end of the target's time is told as that", function()
        assert.same({ "timed out", "sleep was still at work" },
            refusal({ program = "sleep", arguments = { "100" } }, { deadline = os.time() + 0.2 }))
    end)

    it("with its fetch is told as that", function()
        assert.same({ "cancelled" },
            refusal({ program = "sleep", arguments = { "100" } }, cancelled.ctx()))
    end)

    it("is not one that ended in time", function()
        local ctx = cancelled.not_yet()
        ctx.deadline = os.time() + 30
        local result = assert(child.run(spec_of { program = "echo", arguments = { "x" } }, ctx))
        assert.same({ "x\n", 0 }, { result.output, result.status })
    end)
end)

describe("a program that is missing", function()
    it("is told with its package", function()
        assert.same({ "the program 'no-such-program' is missing",
            "install the package 'some-package'" }, refusal { program = "no-such-program" })
    end)
end)
