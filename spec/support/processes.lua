-- SPDX-License-Identifier: MIT
--
-- Runs a piece of Lua in other processes, which may share a store with the test.

local fresh = require "spec.support.fresh"

local interpreter = jit and "luajit" or _VERSION:lower():gsub(" ", "")

local processes = {}

local function write(source)
    local script = fresh.path "process.lua"
    local file = assert(io.open(script, "w"))
    file:write(source)
    file:close()
    return script
end

local function start(script, ...)
    local words = { interpreter, script, ... }
    for i, word in ipairs(words) do
        words[i] = "'" .. word .. "'"
    end
    return assert(io.popen(table.concat(words, " ") .. " 2>&1"))
end

--- Starts n processes at once and gives what each has printed.
-- @tparam number n
-- @tparam string source what they run; their arguments are in `...`
-- @treturn {string,...}
function processes.run(n, source, ...)
    local script, pipes, outputs = write(source), {}, {}
    for i = 1, n do
        pipes[i] = start(script, ...)
    end
    for i, pipe in ipairs(pipes) do
        outputs[i] = pipe:read "*a"
        pipe:close()
    end
    return outputs
end

return processes
