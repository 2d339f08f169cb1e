-- SPDX-License-Identifier: MIT
--
-- What becomes of jobs whose process dies, is stopped, or closes its runner.

local batch = require "batch"
local process = require "spec.support.process"

local eventually = process.eventually

-- A process that submits a job of four targets and one of one, fetches the first two targets and
-- hangs in the third. The second job never gets its turn, for there is one worker.
local HANGS = [[
local runner = assert(batch.new(settings { on_restart = RESTART, workers = 1,
    fetch = function(target, ctx)
        note("fetched", target.url)
        if target.url == "first3" then
            note("hanging", "yes")
            ctx:sleep(60)
        end
        return "by the first process"
    end }))
note("ids", (assert(runner:submit("me", urls("first", 4)))))
while not io.open(folder .. "/hanging") do
    core.poll_fd(runner:fd(), 0.002)
end
note("ids", (assert(runner:submit("me", urls("second", 1)))))
note("ready", "yes")
while true do
    core.poll_fd(runner:fd(), 60)
end
]]

describe("a process with jobs in flight", function()
    local folder, runner

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        if runner then
            runner:close()
            runner = nil
        end
        folder:remove()
    end)

    local function start_hanging(on_restart)
        local code = HANGS:gsub("RESTART", ("%q"):format(on_restart))
        local hanging = folder:start(code)
        eventually(function() return folder:lines("ready")[1] end)
        local ids = folder:lines("ids")
        assert.same(2, #ids, hanging:output())
        return hanging, ids[1], ids[2]
    end

    local function start_anew()
        runner:close()
        runner = nil
        folder:remove()
        folder = process.folder()
    end

    -- The machine may be busy with other things, but not five times.
    local function is_within_a_second(try)
        local spans = {}
        for i = 1, 5 do
            spans[i] = try()
            if spans[i] < 1 then
                return
            end
            start_anew()
        end
        error("it took " .. table.concat(spans, ", ") .. " s")
    end

    local function open(on_restart, more)
        local path = folder.path
        local config = {
            store = folder.store, on_restart = on_restart, durability = "normal",
            fetch = function(target)
                local file = assert(io.open(path .. "/fetched", "a"))
                file:write(target.url, "\n")
                file:close()
                return "by the next process"
            end,
        }
        for name, value in pairs(more or {}) do
            config[name] = value
        end
        runner = assert(batch.new(config))
        return runner
    end

    local function contents(targets)
        local list = {}
        for i, target in ipairs(targets) do
            list[i] = target.result and target.result.content or target.error or target.status
        end
        return list
    end

    local function is_sound()
        local store = assert(batch.store.open(folder.store))
        local faults = store:check()
        store:close()
        return faults
    end

    it("is killed: its jobs have failed, what was fetched stays readable", function()
        local hanging, first, second = start_hanging("fail")
        hanging:kill()
        assert.same(137, hanging:wait())
        open("fail")
        local job, targets = assert(runner:status(first))
        assert.same({ "failed", "restart", 2 }, { job.status, job.error, job.targets_done })
        assert.same({ "by the first process", "by the first process", "pending", "pending" },
            contents(targets))
        assert.same("restart", runner:status(second).error)
        local stats = runner:stats()
        assert.same({ 2, 0, 2 }, { stats.jobs.restart, stats.jobs.failed, stats.job_seconds.count })
        assert.same(0, runner:stats().live_jobs)
        assert.is_true(is_sound())
        assert.same({ "first1", "first2", "first3" }, folder:lines("fetched"))
    end)

    it("is killed: hooks are told of each of its jobs once, at the start and later on", function()
        for _, when in ipairs { "start", "later" } do
            local ended, n_seconds = {}, 0
            local hooks = {
                job = function(status, info)
                    ended[info.job] = (ended[info.job] or "") .. status .. " " .. info.error
                end,
                job_seconds = function(seconds, info)
                    n_seconds = n_seconds + (seconds > 0 and ended[info.job] and 1 or 0)
                end,
            }
            local hanging, first, second = start_hanging("fail")
            if when == "later" then
                open("fail", { hooks = hooks })
            end
            hanging:kill()
            hanging:wait()
            if when == "start" then
                open("fail", { hooks = hooks })
            end
            eventually(function()
                runner:poll()
                return n_seconds == 2
            end)
            assert.same({ [first] = "failed restart", [second] = "failed restart" }, ended)
            assert.equal(2, n_seconds)
            start_anew()
        end
    end)

    it("is killed: what was pending runs again, each target with one outcome", function()
        local hanging, first, second = start_hanging("resume")
        hanging:kill()
        hanging:wait()
        open("resume")
        assert.same("done", assert(runner:wait(first, 10)).status)
        assert.same("done", assert(runner:wait(second, 10)).status)
        local _, targets = runner:status(first)
        assert.same({ "by the first process", "by the first process", "by the next process",
            "by the next process" }, contents(targets))
        assert.is_true(is_sound())
        assert.same(0, runner:stats().jobs.restart)
    end)

    it("is asked to end by SIGTERM: as if it was killed", function()
        local hanging, first = start_hanging("resume")
        hanging:kill("TERM")
        assert.same(143, hanging:wait())
        open("resume")
        assert.same("done", assert(runner:wait(first, 10)).status)
    end)

    it("is killed: a runner that lives takes its jobs over within a second", function()
        is_within_a_second(function()
            open("resume")
            local hanging, first, second = start_hanging("resume")
            hanging:kill()
            local began = process.now()
            assert.same("done", assert(runner:wait(first, 10)).status)
            assert.same("done", assert(runner:wait(second, 10)).status)
            local seconds = process.now() - began
            assert.is_true(is_sound())
            return seconds
        end)
    end)

    it("is killed: a runner that lives and does not resume fails them within a second", function()
        is_within_a_second(function()
            open("fail")
            local hanging, first = start_hanging("fail")
            hanging:kill()
            local began = process.now()
            assert.same("restart", assert(runner:wait(first, 10)).error)
            local seconds = process.now() - began
            eventually(function() return runner:stats().jobs.restart == 2 end)
            return seconds
        end)
    end)

    it("is stopped: slow is not dead, nobody robs it", function()
        open("resume")
        local hanging, first = start_hanging("resume")
        hanging:kill("STOP")
        assert.same({ nil, "timeout", "timeout" }, { runner:wait(first, 0.8) })
        hanging:kill("CONT")
        -- The second job waits there in vain and may be another's; the first is in flight.
        local fetched = folder:read("fetched"):gsub("second1\n", "")
        assert.same("first1\nfirst2\nfirst3\n", fetched)
        hanging:kill()
        assert.same("done", assert(runner:wait(first, 10)).status)
    end)
end)

describe("a target that takes its process with it", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    local CRASHES = [[
    local runner = assert(batch.new(settings { on_restart = "resume", crash_limit = 3, workers = 2,
        fetch = function(target)
            note("fetched", target.url)
            if target.url == "bad2" then
                DIE
            end
            return "fine"
        end,
        hooks = { target = function(error, _, bytes, info)
            note("told", ("%s %s %d %d %d"):format(info.job, error, info.idx, info.attempts, bytes))
        end }}))
    local id = assert(runner:submit("me", urls("bad", 3)))
    note("id", id)
    assert(runner:wait(id, 20))
    runner:poll()
    note("failed", tostring(runner:stats().targets.failed))
    assert(runner:close())
    ]]

    -- An exit in another thread than the first runs libcrypto's clean-up there: ThreadSanitizer
    -- finds races in it, and the leak check of AddressSanitizer does not bear it.
    local UNWATCHED = 'ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"'
        .. ' TSAN_OPTIONS="$TSAN_OPTIONS:report_bugs=0"'

    local function count(line)
        local n = 0
        for _, other in ipairs(folder:lines("fetched")) do
            n = n + (other == line and 1 or 0)
        end
        return n
    end

    local ways = {
        { "os.exit(1)", "os.exit(1)", 1 },
        { "kill -9", "os.execute('kill -9 ' .. core.pid()) while true do end", 137 },
    }
    for _, way in ipairs(ways) do
        it("by " .. way[1] .. " has failed after crash_limit deaths, the others are done",
            function()
                local code = CRASHES:gsub("DIE", way[2])
                for _ = 1, 3 do
                    assert.same(way[3], folder:start(code, UNWATCHED):wait())
                end
                local last = folder:start(code)
                assert.same(0, last:wait(), last:output())
                local client = assert(batch.client { store = folder.store })
                local job, targets = client:status(folder:lines("id")[1])
                assert.same("partial", job.status)
                assert.same({ "done", "failed", "done" },
                    { targets[1].status, targets[2].status, targets[3].status })
                assert.same("crashed", targets[2].error)
                local id = folder:lines("id")[1]
                assert.same({ id .. " crashed 1 3 0", id .. " nil 2 1 4" }, folder:lines("told"))
                assert.same({ "1" }, folder:lines("failed"))
                assert.same({ 1, 3, 1 }, { count "bad1", count "bad2", count "bad3" })
                client:close()
            end)
    end
end)

describe("a runner that closes", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    local CLOSES = [[
    local runner = assert(batch.new(settings { on_restart = RESTART, workers = 2,
        fetch = function(target, ctx)
            if target.url == "a2" or target.url == "b1" then
                note("hanging", target.url)
                if not ctx:sleep(60) then
                    return nil, "told to end"
                end
            end
            return "fine"
        end }))
    note("ids", (assert(runner:submit("me", urls("a", 3)))))
    note("ids", (assert(runner:submit("me", urls("b", 1)))))
    while not io.open(folder .. "/go") do
        core.poll_fd(runner:fd(), 0.01)
    end
    assert(runner:close())
    ]]

    local function run_and_close(on_restart)
        local closing = folder:start((CLOSES:gsub("RESTART", ("%q"):format(on_restart))))
        eventually(function() return #folder:lines("hanging") == 2 end)
        io.open(folder.path .. "/go", "w"):close()
        assert.same(0, closing:wait(), closing:output())
        return table.unpack(folder:lines("ids"))
    end

    it("gives its jobs up when it resumes, and the next process goes on", function()
        local first, second = run_and_close("resume")
        local client = assert(batch.client { store = folder.store })
        local job, targets = client:status(first)
        assert.same({ "queued", 1, "pending" },
            { job.status, job.targets_done, targets[2].status })
        assert.same("queued", client:status(second).status)
        local runner = assert(batch.new { store = folder.store, fetch = function() return "x" end })
        assert.same("done", assert(client:wait(first, 10)).status)
        assert.same("done", assert(client:wait(second, 10)).status)
        runner:close()
        client:close()
    end)

    it("leaves its jobs to be failed by the next one when it does not", function()
        local first, second = run_and_close("fail")
        local runner = assert(batch.new { store = folder.store, fetch = function() return "x" end })
        local job, targets = runner:status(first)
        assert.same({ "failed", "restart", 1, "pending" },
            { job.status, job.error, job.targets_done, targets[2].status })
        assert.same("restart", runner:status(second).error)
        assert.same(2, runner:stats().jobs.restart)
        runner:close()
    end)
end)
