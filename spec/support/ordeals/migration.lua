-- SPDX-License-Identifier: MIT
--
-- Ordeal: a store of an older version is brought to the present shape, all of it or nothing.

local batch = require "batch"
local version_1 = require "spec.support.version_1"

local NOW = "3"

local function id_of(key)
    return ("0190a1b2-c3d4-7e5f-8a6b-%012d"):format(key)
end

local function prepare(world)
    assert(world:sql(version_1) == "wal")
    world:note("length " .. world:sql "select sum(length(url)) from target")
end

local function act(world)
    local store = world:try(batch.store.open, world.store)
    world:note "opened yes"
    assert(store:close())
end

local function judge(world)
    local client = assert(batch.client { store = world.store })
    local job, targets = assert(client:status(id_of(1)))
    assert(job.status == "partial" and job.bytes == 11 and #targets == 3)
    assert(targets[1].result.content == "on" and targets[1].result.meta.t == 1)
    assert(targets[2].error == "no luck" and targets[3].url == "ä2")
    local _, far = assert(client:status(id_of(5), { from = 4990 }))
    assert(#far == 10 and far[10].url == "https://example.com/4999")
    assert(client:close())
end

-- Before anybody opens it: one shape or the other, with nothing missing.
local function look(world, told)
    local version = world:sql "pragma user_version"
    if version == NOW then
        assert(world:sql "select count(*) from sqlite_schema where name = 'target'" == "0")
        assert(world:sql "select count(*) from input" ~= "0")
    else
        assert(version == "1" and not told["opened yes"], "version " .. version)
        assert(world:sql "select count(*), sum(length(url)) from target"
            == "5009|" .. world:word "length")
    end
end

return { prepare = prepare, act = act, look = look, judge = judge }
