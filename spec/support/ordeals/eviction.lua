-- SPDX-License-Identifier: MIT
--
-- Ordeal: what no longer fits goes. A finishing job pushes older ones out, then the store is told
-- to keep less, and at last all leases have lapsed.

local batch = require "batch"

local JOBS = 6
local KIB = 1024

local function fetch(target)
    return ("x"):rep(8 * KIB) .. target.url
end

local function finished(world, runner, i)
    local id = world:try(runner.submit, runner, "c" .. i, world.targets(3, "t" .. i .. "-"))
    world:note(("job%d %s"):format(i, id))
    runner:drain(fetch)
    return id
end

local function prepare(world)
    local runner = world:runner { ttl = 3600 }
    for i = 1, JOBS do
        finished(world, runner, i)
    end
    assert(runner:close())
end

local function act(world)
    local runner = world:runner { ttl = 3600, max_bytes = 4 * 24 * KIB }
    finished(world, runner, JOBS + 1)
    world:note "evicted yes"
    assert(runner:close())
    local store = world:try(batch.store.open, world.store)
    world:try(store.evict_oldest, store, 2 * 24 * KIB)
    world:note "cut yes"
    world:try(store.purge_expired, store, os.time() + 86400)
    world:note "purged yes"
    assert(store:close())
end

-- The jobs that are there are the last ones, and whole.
local function count_jobs(world)
    local client = assert(batch.client { store = world.store, ttl = 3600 })
    local count, has_newer = 0, true
    for i = JOBS + 1, 1, -1 do
        local id = world:word("job" .. i)
        local job, targets = client:status(id or "")
        assert(not job or has_newer or i == JOBS, "an older job outlives a newer one")
        has_newer = job ~= nil
        count = count + (job and 1 or 0)
        for _, target in ipairs(job and job.status == "done" and targets or {}) do
            assert(target.result.content == fetch(target), "a result has changed")
        end
    end
    assert(client:close())
    return count
end

local function judge(world, told)
    local count = count_jobs(world)
    assert(count <= JOBS + 1)
    assert(not told["evicted yes"] or count <= 4, "what was evicted is back")
    assert(not told["cut yes"] or count <= 2, "what was cut is back")
    assert(not told["purged yes"] or count == 0, "what was purged is back")
    local runner = world:runner { ttl = 3600 }
    runner:drain(fetch)
    local id = assert(runner:submit("zoe", world.targets(1)))
    runner:drain(fetch)
    assert(runner:status(id).status == "done")
    assert(runner:close())
    local store = assert(batch.store.open(world.store))
    assert(store:evict_oldest(1))
    assert(store:close())
    local left = world:sql "select count(*) from outcome; select count(*) from dropped"
    assert(left == "1\n0", left)
end

return { prepare = prepare, act = act, judge = judge }
