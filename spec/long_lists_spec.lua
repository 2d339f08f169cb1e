-- SPDX-License-Identifier: MIT
--
-- Submits of very many targets: what waits in a temporary file comes out as it went in, and takes
-- no memory beside what the program itself holds.

local batch = require "batch"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local lfs = require "lfs"
local processes = require "spec.support.processes"

local MANY = 100000

-- 300 bytes each; every third with options.
local function long_list(n)
    local targets = {}
    for i = 1, n do
        targets[i] = { url = ("u"):rep(300) .. i, options = i % 3 == 0 and { depth = i } or nil }
    end
    return targets
end

-- Submits so many targets, or just makes the list; prints by how much its peak of memory is above
-- what the list takes.
local SUBMITTER = [[
    local store, n_targets, is_list = ...
    local batch, core = require "batch", require "batch.core"
    local function kib(name)
        local file = assert(io.open "/proc/self/status")
        local figure = file:read("*a"):match(name .. ":%s*(%d+) kB")
        file:close()
        return tonumber(figure)
    end
    local client = batch.client {
        store = store, targets_per_job = 1e6, jobs_per_caller = 9, durability = "normal",
        fetch = print,
    }
    assert(client:submit("warm", { { url = "up" } }))
    local targets = is_list == "true" and core.targets() or {}
    local url = ("u"):rep(300)
    local before = kib "VmRSS"
    for i = 1, tonumber(n_targets) do
        local target = { url = url .. i }
        if is_list == "true" then
            assert(targets:add(target))
        else
            targets[i] = target
        end
    end
    -- What the table takes is the program's own.
    before = is_list == "true" and before or kib "VmRSS"
    local id = assert(client:submit("me", targets))
    io.write(kib "VmRSS" - before, " ", kib "VmHWM" - before)
    assert(client:status(id, { limit = 0 }).targets_total == tonumber(n_targets))
]]

-- KiB above what was there before the submit.
local function growth(is_list)
    local output = processes.run(1, SUBMITTER, fresh.path "batch.db", MANY, tostring(is_list))[1]
    local after, peak = output:match "^(%-?%d+) (%-?%d+)$"
    assert(after, output)
    return math.max(tonumber(after), tonumber(peak))
end

-- Files without a name that this process has open.
local function count_nameless()
    local count = 0
    for name in lfs.dir "/proc/self/fd" do
        local target = lfs.symlinkattributes("/proc/self/fd/" .. name, "target") or ""
        count = count + (target:find "%(deleted%)$" and 1 or 0)
    end
    return count
end

describe("a submit of very many targets", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("stores all of them, in their order", function()
        local client = fresh.client { targets_per_job = MANY }
        local targets = long_list(MANY)
        local id = assert(client:submit("me", targets))
        local job, stored = client:status(id)
        assert.same({ MANY, MANY }, { job.targets_total, #stored })
        for i, target in ipairs(targets) do
            -- No luassert for each of so many: it takes ten times as long as all the rest.
            local depth = target.options and target.options.depth
            assert(stored[i].url == target.url and stored[i].options.depth == depth, i)
        end
        assert.is_true(fresh.store():check())
    end)

    it("is known again, by the same key as in one piece", function()
        local client = fresh.client { targets_per_job = MANY }
        local targets = long_list(5000)
        local id = assert(client:submit("me", targets))
        assert.same({ id, true }, { client:submit("me", targets) })
        assert.equal(fresh.sql "select lower(hex(idem_key)) from job",
            batch.idem_key("me", targets))
        targets[5000].url = "another"
        local other, is_reused = client:submit("you", targets)
        assert.not_equal(id, other)
        assert.is_false(is_reused)
    end)

    it("leaves nothing behind when it is refused", function()
        local client = fresh.client { targets_per_job = 10000 }
        local targets = long_list(10001)
        assert.same({ nil, "too many targets", "too_many_targets" },
            { client:submit("me", targets) })
        targets[10000] = { url = "" }
        assert.same({ nil, "target 9999: url must be a non-empty string", "invalid" },
            { client:submit("me", targets) })
        assert.equal("0", fresh.sql "select count(*) from input")
        targets[10000], targets[10001] = nil, nil
        assert.truthy(client:submit("me", targets))
    end)

    it("waits in no file when an event loop begins it, which must not wait for a disk", function()
        local client, id = fresh.client { targets_per_job = MANY }, nil
        local lock, n_before = fresh.lock(1), count_nameless()
        assert(client:begin_submit(function(given) id = given end, "me", long_list(MANY)))
        assert.equal(n_before, count_nameless())
        assert.is_nil(id)
        lock:close()
        eventually(function()
            client:poll()
            return id
        end)
        assert.equal(MANY, client:status(id, { limit = 0 }).targets_total)
    end)

    -- A sanitizer keeps what was freed. A copy of the list would be 30 MiB.
    local it_without_sanitizer = os.getenv "SANITIZER" and pending or it

    it_without_sanitizer("takes little memory beside the list itself", function()
        local kib = growth(false)
        assert.is_true(kib < 6 * 1024, kib .. " KiB")
    end)

    it_without_sanitizer("takes little memory without a list in Lua, as in luabatch run", function()
        local kib = growth(true)
        assert.is_true(kib < 6 * 1024, kib .. " KiB")
    end)
end)
