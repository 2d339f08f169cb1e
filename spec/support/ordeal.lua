-- SPDX-License-Identifier: MIT
--
-- Puts a scenario through a fault at one step after the other. Each try is a process of its own, on
-- a fresh copy of the scenario's store; another one then judges what is there. Both are forks of a
-- driver (ordeal_driver.lua) that never opens a store itself, for a fork costs less than a start.
--
-- ORDEAL=all in the environment leaves out no step.

local build_forker = require "spec.support.forker"

local LUA = require "spec.support.interpreter"

local ordeal = {}

local folder  -- with the module forker, and the stores

ordeal.takes_all = os.getenv "ORDEAL" == "all"

local function words(plan, every)
    local list = { plan.scenario, folder, plan.at, plan.answer, every }
    for i, word in ipairs(list) do
        list[i] = "'" .. tostring(word) .. "'"
    end
    return table.concat(list, " ")
end

-- Reads what the driver prints: "points N", "tried N", and a line for each fault found.
local function read_report(pipe)
    local report = { faults = {} }
    for line in pipe:lines() do
        local name, count = line:match "^(%l+) (%d+)$"
        if name then
            report[name] = tonumber(count)
        else
            table.insert(report.faults, line)
        end
    end
    pipe:close()
    return report
end

--- Call it before the first run, and finish after the last.
function ordeal.start()
    local made = assert(io.popen "mktemp -d -p /dev/shm 2>/dev/null || mktemp -d")
    folder = made:read "*l"
    made:close()
    build_forker(folder)
end

function ordeal.finish()
    os.execute("rm -rf '" .. folder .. "'")
end

--- Tries a scenario with a fault at each step, or at each `every`-th one.
-- @tparam table plan `scenario`, `at`, `answer`, `every`
-- @treturn table `points`: how many steps there are, `tried`, `faults`: what was not as it should
function ordeal.run(plan)
    local every = ordeal.takes_all and 1 or plan.every
    local command = ("%s spec/support/ordeal_driver.lua %s 2>&1"):format(LUA, words(plan, every))
    return read_report(assert(io.popen(command)))
end

return ordeal
