-- SPDX-License-Identifier: MIT
--
-- A store whose owner has died: three jobs, of each one target stored and one in flight.

local forker = require "forker"

local JOBS, STATUS = 3, 9

local function prepare(world)
    local runner = world:runner()
    local ids, tasks = {}, {}
    for i = 1, JOBS do
        ids[i] = assert(runner:submit("c" .. i, world.targets(4)))
        world:note(("job%d %s"):format(i, ids[i]))
    end
    while #tasks < JOBS do
        local task = runner:take()
        if task and task.idx == 0 then
            runner:finish(task, world.fetch(task, task))
        elseif task then
            tasks[#tasks + 1] = task
        end
    end
    forker.leave(STATUS)
end

return { JOBS = JOBS, STATUS = STATUS, prepare = prepare }
