-- SPDX-License-Identifier: MIT
--
-- Ordeal: a live store is copied.

local batch = require "batch"

local function copy_of(world)
    return world.folder .. "/copy.db"
end

local function prepare(world)
    local runner = world:runner()
    world:note("job " .. assert(runner:submit("ann", world.targets(20))))
    runner:drain(world.fetch)
    assert(runner:close())
end

local function act(world)
    local store = world:try(batch.store.open, world.store)
    assert(world:try(store.backup, store, copy_of(world)))
    world:note "copied yes"
    assert(store:close())
end

local function check_copy(world)
    world:check(copy_of(world))
    local client = assert(batch.client { store = copy_of(world) })
    local job, targets = assert(client:status(world:word "job"))
    assert(job.status == "partial" and world.check_outcomes(targets) == 20)
    assert(client:close())
end

local function judge(world, told)
    if told["copied yes"] then
        check_copy(world)
    end
    os.remove(copy_of(world))
    os.remove(copy_of(world) .. "-wal")
    os.remove(copy_of(world) .. "-shm")
    os.remove(copy_of(world) .. "-journal")
    local store = assert(batch.store.open(world.store))
    assert(store:backup(copy_of(world)))
    assert(store:close())
    check_copy(world)
end

return { prepare = prepare, act = act, judge = judge }
