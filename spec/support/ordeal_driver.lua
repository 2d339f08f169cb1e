-- SPDX-License-Identifier: MIT
--
-- The program behind ordeal.lua. Usage: ordeal_driver.lua SCENARIO FOLDER AT ANSWER EVERY

local name, folder, at, answer, every = ...

package.cpath = folder .. "/?.so;" .. package.cpath

local forker = require "forker"
local lfs = require "lfs"
local ordeal_world = require "spec.support.ordeal_world"
local scenario = require("spec.support.ordeals." .. name)
local testing = require "batch.testing"

local DIED = 86  -- the status with which a fault ends a process
local PATIENCE = 60  -- seconds for one try, which takes some milliseconds

local template, place = folder .. "/template", folder .. "/place"

-- Runs f in a fork. Returns its exit status and what it raised.
local function apart(f, ...)
    local path = folder .. "/raised"
    os.remove(path)
    io.stdout:flush()
    local child = forker.fork()
    if child == 0 then
        forker.alarm(PATIENCE)
        local ok, message = xpcall(f, debug.traceback, ...)
        if not ok then
            local file = io.open(path, "w")
            file:write(tostring(message))
            file:close()
        end
        os.exit(ok and 0 or 1, true)  -- not _exit: a leak check wants to look
    end
    local status = forker.wait(child)
    local file = io.open(path)
    local raised = file and file:read "*a"
    return status, file and file:close() and raised
end

local function copy(from, to)
    local source, target = assert(io.open(from, "rb")), assert(io.open(to, "wb"))
    target:write(source:read "*a")
    source:close()
    target:close()
end

local function each_file(path, visit)
    for file in lfs.dir(path) do
        if file:sub(1, 1) ~= "." then
            visit(path .. "/" .. file, file)
        end
    end
end

-- The scenario's store, as it was before.
local function lay_out()
    each_file(place, os.remove)
    each_file(template, function(path, file) copy(path, place .. "/" .. file) end)
end

local function act(fault)
    testing.no_faults()
    if fault then
        testing.fault(fault)
    end
    local world = ordeal_world.open(place)
    scenario.act(world)
    world:note "complete"
    local file = assert(io.open(folder .. "/passed", "w"))
    file:write(testing.no_faults()[at])
    file:close()
end

local function judge()
    local world = ordeal_world.open(place)
    if scenario.look then
        scenario.look(world, world:told())
    end
    world:check()
    scenario.judge(world, world:told())
    world:check()
end

local function complain(nth, what)
    print(("%s at %s %d: %s"):format(answer, at, nth, what:gsub("\n", " | ")))
end

-- One try. Returns whether the fault was met.
local function try(nth)
    lay_out()
    local fault = nth > 0 and { at = at, answer = answer, nth = nth } or nil
    local status, raised = apart(act, fault)
    local may_die = answer == "die" or answer == "tear"
    if status ~= 0 and not (may_die and status == DIED) then
        complain(nth, ("the process ended with status %d: %s"):format(status, tostring(raised)))
    end
    local verdict, objection = apart(judge)
    if verdict ~= 0 then
        complain(nth, objection or "the judge ended with status " .. verdict)
    end
    return status == DIED
end

local function passed()
    local file = assert(io.open(folder .. "/passed"))
    local count = tonumber(file:read "*a")
    file:close()
    return count
end

for _, path in ipairs { template, place } do
    lfs.mkdir(path)
    each_file(path, os.remove)
end
local status, raised = apart(scenario.prepare, ordeal_world.open(template))
assert(status == 0 or status == scenario.leaves_with, raised)
try(0)
local points, tried = passed(), 0
local nth = 1
-- Threads make no two runs pass quite as many points: up to the end of this one, and what lies
-- behind it as long as a fault there is still met.
while nth <= points or try(nth) do
    if nth <= points then
        try(nth)
    end
    tried, nth = tried + 1, nth + tonumber(every)
end
print("points " .. points)
print("tried " .. tried)
