-- SPDX-License-Identifier: MIT
--
-- Kills programs of every kind on one store over and over, and proves in the end that nothing is
-- missing or doubled.
--
-- Usage: kill_soak.lua [KILLS] [SEED]

local kill_loop = require "spec.support.kill_loop"
local process = require "spec.support.process"

local kills, seed = tonumber(arg[1]) or 300, tonumber(arg[2]) or os.time()
math.randomseed(seed)
local folder = process.folder()

local function run()
    local loop = kill_loop.new(folder)
    for _ = 1, kills do
        loop:kill_one(0.3)
    end
    loop:finish()
    local figures = loop:prove()
    print(("%d kills survived: %d jobs of %d acknowledged submits, %d cancels, %d outcomes, of "
        .. "which %d were told; %d fetches ran again"):format(figures.kills, figures.jobs,
        figures.acknowledged, figures.cancelled, figures.outcomes, figures.told, figures.again))
    for kind, n in pairs(loop.n_by_kind) do
        print(("    %d times %s"):format(n, kind))
    end
end

local is_fine, message = xpcall(run, debug.traceback)
if is_fine then
    folder:remove()
else
    for _, one in ipairs(folder.processes) do
        if not one.status then
            one:kill()
        end
    end
    print(message)
    print(("seed %d; the store and all notes are in %s"):format(seed, folder.path))
    os.exit(1)
end
