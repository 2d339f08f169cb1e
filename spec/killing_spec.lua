-- SPDX-License-Identifier: MIT
--
-- Thirty kills at random moments. What a process had been told is stored is noted outside; none of
-- it may be missing, nothing may be there twice.

local batch = require "batch"
local process = require "spec.support.process"

local KILLS = 30

-- Submits one job after the other and works on whatever there is. Each answer is noted as soon as
-- it is had.
local WORKS = [[
local runner = assert(batch.new(settings { on_restart = "resume", workers = 4,
    crash_limit = 1000, durability = "normal",
    fetch = function(target, ctx)
        ctx:sleep(0.001)
        if target.url:find("3$") then
            return nil, "no " .. target.url
        end
        return "of " .. target.url
    end,
    hooks = {
        target = function(failure, _, _, info)
            local status = failure and "failed" or "done"
            note("outcomes", ("%s %d %s"):format(info.job, info.idx, status))
        end,
        job = function(status, info)
            note("ends", info.job .. " " .. status)
        end,
    } }))
note("ready", "yes")
local n = 0
while true do
    n = n + 1
    if runner:stats().live_jobs < 8 then
        local prefix = ("%d-%d-"):format(core.pid(), n)
        note("submitted", (assert(runner:submit("me", urls(prefix, 5)))))
    end
    runner:poll()
    core.poll_fd(runner:fd(), 0.005)
end
]]

describe("killed at a random moment, thirty times", function()
    local folder

    setup(function()
        folder = process.folder()
        math.randomseed(os.time())
        for i = 1, KILLS do
            local victim = folder:start(WORKS)
            process.eventually(function() return #folder:lines("ready") == i end)
            process.sleep(math.random() * 0.08)
            victim:kill()
            assert.same(137, victim:wait(), victim:output())
            local store = assert(batch.store.open(folder.store))
            assert.is_true(store:check())
            store:close()
        end
    end)

    teardown(function()
        folder:remove()
    end)

    it("a store has lost nothing that was acknowledged", function()
        local runner = assert(batch.new { store = folder.store, on_restart = "resume", workers = 4,
            crash_limit = 1000, durability = "normal", fetch = function(target)
                if target.url:find("3$") then
                    return nil, "no " .. target.url
                end
                return "of " .. target.url
            end })
        local submitted = folder:lines("submitted")
        assert.is_true(#submitted > 0)
        local outcome_of = {}
        for _, id in ipairs(submitted) do
            local job = assert(runner:wait(id, 20))
            assert.same({ "partial", 5, 1 }, { job.status, job.targets_done, job.targets_failed })
            local _, targets = assert(runner:status(id))
            for _, target in ipairs(targets) do
                outcome_of[id .. " " .. target.idx] = target.status
                local text = target.result and target.result.content or target.error
                local word = target.url:find("3$") and "no " or "of "
                assert.same(word .. target.url, text)
            end
        end
        local seen = {}
        for _, line in ipairs(folder:lines("outcomes")) do
            local place, id, idx, status = line:match("^((%S+) (%d+)) (%S+)$")
            if not outcome_of[place] then  -- killed before its submit could be written down
                local _, targets = assert(runner:status(id))
                outcome_of[place] = targets[idx + 1].status
            end
            assert.same(outcome_of[place], status)
            assert.is_nil(seen[place], place .. " was told twice")
            seen[place] = true
        end
        assert.is_true(next(seen) ~= nil)
        local ended = {}
        for _, line in ipairs(folder:lines("ends")) do
            assert.is_nil(ended[line], line .. " was told twice")
            ended[line] = true
        end
        assert(runner:close())
        local store = assert(batch.store.open(folder.store))
        assert.is_true(store:check())
        store:close()
    end)
end)
