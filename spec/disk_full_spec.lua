-- SPDX-License-Identifier: MIT
--
-- A disk that is full to the last byte: cancels go on out of a reserve, outcomes wait in memory up
-- to a bound, beyond which nothing more is fetched, and all heals when there is room.

local core = require "batch.core"
local disk = require "spec.support.disk"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local lfs = require "lfs"
local service = require "spec.support.service"

local MIB = 1024 * 1024
local NOT_ROOT = "only root may mount a disk"

local full

-- Mounts a disk for as long as the test lasts; nil where that is not allowed.
local function mount(size)
    full = disk.mount(size)
    if full then
        fresh.keep { close = function() full:unmount() end }
    end
    return full
end

-- A runner on a disk of its own that keeps its log to itself.
local function runner_on(size, config)
    if not mount(size) then
        return nil
    end
    local settings = { store = full.path .. "/batch.db", log = function() end }
    for name, value in pairs(config or {}) do
        settings[name] = value
    end
    return fresh.runner(settings)
end

local function reserve_bytes()
    return lfs.attributes(full.path .. "/batch.db.reserve", "size")
end

-- Fills the log's own pages up as well, which would take some small transactions.
local function fill_to_the_last_page(runner)
    full:fill()
    local n_refused = 0
    for i = 1, 10000 do
        local id, _, code = runner:submit("filler" .. i, fresh.targets(1, ("x"):rep(2000) .. i))
        n_refused = id and 0 or n_refused + 1
        if n_refused == 3 then
            assert.equal("store", code)
            return
        end
    end
    error "the disk does not get full"
end

describe("on a full disk", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("twenty jobs can be cancelled, one after the other, while submits are refused", function()
        local runner = runner_on("6m", { jobs_total = 1e4 })
        if not runner then
            return pending(NOT_ROOT)
        end
        local ids = {}
        for i = 1, 20 do
            ids[i] = assert(runner:submit("c" .. i, fresh.targets(32)))
        end
        fill_to_the_last_page(runner)
        for i, id in ipairs(ids) do
            assert.is_true(runner:cancel(id), "job " .. i)
            assert.equal("cancelled", runner:status(id).status)
            local _, _, code = runner:submit("late", fresh.targets(32, ("y"):rep(500)))
            assert.equal("store", code)
        end
        assert.is_false(runner:stats().healthy)
        assert.is_true(reserve_bytes() < MIB)
        full:free()
        eventually(function() return runner:stats().healthy end)
        eventually(function() return reserve_bytes() == MIB end)
        assert.is_string(runner:submit("late", fresh.targets(1)))
        assert.is_true(fresh.store(full.path .. "/batch.db"):check())
    end)

    it("a client cancels too", function()
        local runner = runner_on("6m", { jobs_total = 1e4 })
        if not runner then
            return pending(NOT_ROOT)
        end
        local id = assert(runner:submit("ann", fresh.targets(2)))
        local client = fresh.client { store = full.path .. "/batch.db", log = function() end }
        fill_to_the_last_page(runner)
        assert.is_true(client:cancel(id))
        assert.equal("cancelled", runner:status(id).status)
        local task = runner:take()
        assert.is_true(task == nil or task.job ~= id)
    end)

    it("outcomes wait in memory up to 64 MiB, then nothing more is fetched until it heals",
        function()
            local runner = runner_on("200m", { jobs_total = 1e4, max_bytes = "1GiB" })
            if not runner then
                return pending(NOT_ROOT)
            end
            for i = 1, 12 do
                assert(runner:submit("c" .. i, fresh.targets(2)))
            end
            full:fill()
            local content = ("z"):rep(8 * MIB)
            local n_taken = 0
            local task, seconds = runner:take()
            while task do
                n_taken = n_taken + 1
                runner:finish(task, content)
                task, seconds = runner:take()
            end
            assert.equal(8, n_taken)
            assert.equal(0.05, eventually(function() -- so that who takes by itself does not spin
                task, seconds = runner:take()
                return seconds == 0.05 and seconds
            end))
            assert.is_nil(task)
            assert.equal(0, runner:stats().inflight_targets)
            assert.is_false(runner:stats().healthy)
            full:free()
            eventually(function()
                task = runner:take()
                return task
            end)
            runner:fail(task, "seen enough")
            eventually(function() return runner:stats().targets.done == 8 end)
            assert.is_true(runner:stats().healthy)
        end)

    it("workers neither fetch beyond the bound nor spin, and go on by themselves", function()
        -- Room for all results twice: in the log, and in the store.
        local runner = runner_on("300m", {
            executor = "threads", workers = 4, jobs_total = 1e4, max_bytes = "1GiB",
            fetch = function() return ("z"):rep(8 * 1024 * 1024) end,
        })
        if not runner then
            return pending(NOT_ROOT)
        end
        full:fill()
        full:free(4)
        local ids = {}
        for i = 1, 16 do
            ids[i] = runner:submit("c" .. i, fresh.targets(1))
        end
        eventually(function() return not runner:stats().store_healthy end)
        eventually(function() return runner:stats().inflight_targets == 0 end)
        local before, n_before = os.clock(), runner:stats().targets.done
        core.poll_fd(-1, 1)
        local used = os.clock() - before
        -- Who spins takes one and more; a sanitizer doubles what each look costs.
        local allowed = os.getenv "SANITIZER" and math.huge or 0.5 -- each look costs more there
        assert.is_true(used < allowed, "processor seconds in one: " .. used)
        assert.equal(n_before, runner:stats().targets.done)
        full:free()
        for _, id in ipairs(ids) do
            assert.equal("done", assert(runner:wait(id, 30)).status)
        end
        assert.equal(16, #ids)
    end)

    it("a server cancels, says that it is not ready, and is again when there is room", function()
        if not mount "6m" then
            return pending(NOT_ROOT)
        end
        local server = service.start { batch = ('store = "%s/batch.db"\njobs_per_caller = 1000\n'
            .. 'jobs_total = 1000'):format(full.path) }
        fresh.keep(server)
        local _, id = server:submit { "nap:60", "say:a" }
        server:await_status(id, "running")
        full:fill()
        local answer
        for i = 1, 1000 do
            answer = server:submit { "say:" .. ("b"):rep(4000) .. i }
            if answer.status ~= 202 then
                break
            end
        end
        assert.equal(507, answer.status)
        assert.equal(503, server:curl("/readyz").status)
        local path = "/v1/batches/" .. id
        assert.equal(200, server:curl(path, "-X DELETE").status)
        assert.equal("cancelled", server:curl(path).json().job.status)
        full:free()
        eventually(function() return server:curl("/readyz").status == 200 end)
    end)
end)
