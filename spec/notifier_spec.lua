-- SPDX-License-Identifier: MIT
--
-- Waiting for a runner: by blocking the thread, and in coroutines of an event loop.

local core = require "batch.core"
local fresh = require "spec.support.fresh"
local notifier = require "batch.notifier"
local process = require "spec.support.process"

local has_cqueues, cqueues = pcall(require, "cqueues")
local new_condition = has_cqueues and require("cqueues.condition").new

-- How long f takes, and what it gives.
local function timed(f, ...)
    local began = core.now()
    local answer = f(...)
    return core.now() - began, answer
end

-- Counts the looks at the store.
local function count_looks(runner)
    local looks, marks = { n = 0 }, runner.marks
    function runner:marks(ids)
        looks.n = looks.n + 1
        return marks(self, ids)
    end
    return looks
end

describe("a notifier that blocks", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("gives what the calls give", function()
        local runner = fresh.runner { jobs_per_caller = 1 }
        local wakes = notifier.new(runner)
        local id, is_reused, status, expires_at = wakes:call("submit", "ann", fresh.targets(1),
            { class = "user" })
        assert.equal("user", runner:status(id).class)
        assert.same({ false, "queued" }, { is_reused, status })
        assert.is_true(expires_at > core.now())
        assert.is_true(wakes:call("touch", id))
        assert.same({ nil, "busy", "caller_busy" },
            { wakes:call("submit", "ann", fresh.targets(2)) })
        assert.equal("invalid", select(3, wakes:call("submit", "ann", {})))
        assert.is_true(wakes:call("cancel", id))
        assert.is_false(wakes:call("cancel", id))
        assert.equal("notifier (0 waiting)", tostring(wakes))
    end)

    it("waits until the job is another one, or the time is up", function()
        local gate = fresh.path "gate"
        local runner = fresh.runner { executor = "threads", fetch = function(target, ctx)
            repeat
                local file = io.open(gate .. target.url)
            until file or not ctx:sleep(0.005)
            return target.url
        end }
        local wakes = notifier.new(runner)
        local id = wakes:call("submit", "ann", fresh.targets(2))
        local marks = {}
        repeat
            local page = runner:read_json(id, {})
            marks[#marks + 1] = page.mark
            if page.status == "running" then
                io.open(gate .. "u" .. page.targets_done + 1, "w"):close()
            end
        until page.status == "done" or not wakes:wait(id, page.mark, 10)
        -- Queued may be over before it is seen.
        assert.is_true(#marks >= 3 and #marks <= 4, #marks .. " marks")
        local seconds, has_changed = timed(wakes.wait, wakes, id, marks[#marks], 0.1)
        assert.is_false(has_changed)
        assert.is_true(seconds >= 0.1 and seconds < 5)
        seconds, has_changed = timed(wakes.wait, wakes, id, marks[1], 0)
        assert.is_false(has_changed)
        assert.is_true(seconds < 2)
    end)

    it("goes on waking when the wall clock is set back by hours", function()
        local now = core.now
        finally(function() core.now = now end)
        local runner = fresh.runner { executor = "manual" }
        local wakes = notifier.new(runner)
        local id = wakes:call("submit", "ann", fresh.targets(2))
        for i, hours in ipairs { 0, -2 } do
            core.now = function() return now() + hours * 3600 end
            -- A job's next target may be taken once the one before is stored.
            local task = process.eventually(function() return (runner:take()) end)
            local page = runner:read_json(id, {})
            runner:finish(task, "x")
            while page.targets_done < i do
                assert.is_true(wakes:wait(id, page.mark, 10))
                page = runner:read_json(id, {})
            end
        end
    end)

    it("sees the first target begin", function()
        local runner = fresh.runner()
        local wakes = notifier.new(runner)
        local id = wakes:call("submit", "ann", fresh.targets(1))
        local mark = runner:read_json(id, {}).mark
        local task = runner:take()
        local seconds, has_changed = timed(wakes.wait, wakes, id, mark, 10)
        assert.is_true(has_changed)
        assert.is_true(seconds < 5)
        assert.equal("running", runner:read_json(id, {}).status)
        runner:finish(task, "x")
    end)

    it("sees a job go, and one that never was", function()
        local runner = fresh.runner()
        local wakes = notifier.new(runner)
        local id = wakes:call("submit", "ann", fresh.targets(1))
        local mark = runner:read_json(id, {}).mark
        fresh.sql("delete from job where id = '" .. id .. "'")
        assert.is_true(wakes:wait(id, mark, 5))
        wakes:call("submit", "ann", fresh.targets(1))
        assert.is_true(wakes:wait(id, mark, 5))
    end)
end)

-- A runner, its notifier, and coroutines that wait by it: run(f, …) runs them to their end.
local function open_loop(config)
    local loop = cqueues.new()
    local runner = fresh.runner(config)
    local self = { runner = runner, wakes = notifier.new(runner, new_condition), n_running = 0 }
    function self.start(f)
        self.n_running = self.n_running + 1
        loop:wrap(function()
            f()
            self.n_running = self.n_running - 1
        end)
    end
    function self.run(...)
        for _, f in ipairs { ... } do
            self.start(f)
        end
        loop:wrap(function()
            while self.n_running > 0 do
                local pause = self.wakes:dispatch()
                cqueues.poll({ pollfd = runner:fd(), events = "r" }, math.min(pause or 0.05, 0.05))
            end
        end)
        assert(loop:loop(20))
        assert.equal(0, self.n_running)
    end
    return self
end

local describe_loop = has_cqueues and describe or pending

describe_loop("a notifier in an event loop", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("answers each coroutine's own call", function()
        local loop, ids = open_loop { jobs_per_caller = 1000, jobs_total = 1000 }, {}
        for i = 1, 200 do
            loop.start(function()
                local id = loop.wakes:call("submit", "ann", fresh.targets(1, "u" .. i .. "-"))
                local _, targets = loop.runner:status(id)
                ids[id] = targets[1].url
                assert.is_true(loop.wakes:call("cancel", id))
            end)
        end
        loop.run()
        local urls = {}
        for _, url in pairs(ids) do
            urls[url] = true
        end
        for i = 1, 200 do
            assert.is_true(urls["u" .. i .. "-1"])
        end
    end)

    it("wakes who waits for a job, and nobody else", function()
        local loop, woken = open_loop(), {}
        local ids = {
            (loop.runner:submit("ann", fresh.targets(1, "a"))),
            (loop.runner:submit("ann", fresh.targets(1, "b"))),
        }
        for i, id in ipairs(ids) do
            for _ = 1, 3 do
                loop.start(function()
                    local mark = loop.runner:marks { id }[1]
                    local has_changed = loop.wakes:wait(id, mark, i == 1 and 10 or 2)
                    woken[#woken + 1] = { i, has_changed }
                end)
            end
        end
        loop.run(function()
            while tostring(loop.wakes) ~= "notifier (6 waiting)" do
                cqueues.sleep(0.01)
            end
            loop.wakes:call("cancel", ids[1])
        end)
        assert.same({ { 1, true }, { 1, true }, { 1, true }, { 2, false }, { 2, false },
            { 2, false } }, woken)
        assert.equal("notifier (0 waiting)", tostring(loop.wakes))
    end)

    it("looks once for thousands that wait", function()
        local loop, n_woken = open_loop(), 0
        local id = loop.runner:submit("ann", fresh.targets(1))
        local looks = count_looks(loop.runner)
        local mark = loop.runner:read_json(id, {}).mark
        for _ = 1, 5000 do
            loop.start(function()
                local has_changed = loop.wakes:wait(id, mark, 10)
                n_woken = n_woken + (has_changed and 1 or 0)
            end)
        end
        loop.run(function()
            while tostring(loop.wakes) ~= "notifier (5000 waiting)" do
                cqueues.sleep(0.01)
            end
            looks.n = 0
            loop.wakes:call("cancel", id)
        end)
        assert.equal(5000, n_woken)
        assert.is_true(looks.n <= 3, looks.n .. " looks")
    end)

    it("does not look at each change of a busy store", function()
        local loop = open_loop { executor = "threads", targets_per_job = 1000,
            fetch = function() return "x" end }
        local idle = loop.runner:submit("ann", fresh.targets(1))
        loop.runner:wait(idle)
        local looks, mark = count_looks(loop.runner), loop.runner:read_json(idle, {}).mark
        local is_over, began = false, core.now()
        loop.run(function()
            while not is_over do
                loop.wakes:wait(idle, mark, 0.1)
            end
        end, function()
            local id = loop.wakes:call("submit", "ann", fresh.targets(1000, "busy"))
            local page
            repeat
                page = loop.runner:read_json(id, { limit = 0 })
            until page.status == "done" or not loop.wakes:wait(id, page.mark, 5)
            assert.equal("done", page.status)
            is_over = true
        end)
        local most = (core.now() - began) / 0.005 + 3
        assert.is_true(looks.n <= most, looks.n .. " looks, at most " .. most)
    end)

    it("ends all waiting when it is stopped, but not the calls", function()
        local loop, ended = open_loop(), {}
        local id = loop.runner:submit("ann", fresh.targets(1))
        local mark = loop.runner:read_json(id, {}).mark
        local began = core.now()
        for i = 1, 3 do
            loop.start(function() ended[i] = loop.wakes:wait(id, mark, 10) end)
        end
        loop.run(function()
            cqueues.sleep(0.02)
            loop.wakes:stop()
            assert.is_true(loop.wakes:call("touch", id))
            assert.is_false(loop.wakes:wait(id, mark, 10))
        end)
        assert.same({ false, false, false }, ended)
        assert.is_true(core.now() - began < 8)
    end)

    it("looks again at a store that could not be read", function()
        local loop, n_refused = open_loop(), 0
        local id = loop.runner:submit("ann", fresh.targets(1))
        local mark = loop.runner:read_json(id, {}).mark
        local marks = loop.runner.marks
        function loop.runner:marks(ids)
            if n_refused < 3 then
                n_refused = n_refused + 1
                return nil, "disk I/O error", "store"
            end
            return marks(self, ids)
        end
        local has_changed, seconds
        loop.run(function()
            seconds, has_changed = timed(loop.wakes.wait, loop.wakes, id, mark, 10)
        end, function()
            loop.wakes:call("cancel", id)
        end)
        assert.same({ 3, true }, { n_refused, has_changed })
        assert.is_true(seconds < 8)
    end)
end)

describe("two processes on one store", function()
    local folder

    before_each(function()
        fresh.start()
        folder = process.folder()
    end)
    after_each(function()
        fresh.finish()
        folder:remove()
    end)

    it("tell each other of changes within a quarter of a second", function()
        folder:start [[
        local runner = assert(batch.new(settings { executor = "manual" }))
        note("ready", "yes")
        while true do
            local task = runner:take()
            if task then
                core.poll_fd(-1, 0.4)
                note("finished", ("%.6f"):format(core.now()))
                runner:finish(task, "x")
            else
                core.poll_fd(runner:fd(), 0.01)
            end
        end
        ]]
        assert(process.eventually(function() return folder:lines("ready")[1] end))
        local client = fresh.client { store = folder.store }
        local wakes = notifier.new(client)
        local id = wakes:call("submit", "ann", fresh.targets(6))
        local seen = {}
        local page = client:read_json(id, {})
        while page.status ~= "done" do
            assert.is_true(wakes:wait(id, page.mark, 10))
            local now, n_before = core.now(), page.targets_done
            page = client:read_json(id, {})
            if page.targets_done > n_before then
                seen[page.targets_done] = now
            end
        end
        local spans = {}
        for i, line in ipairs(folder:lines("finished")) do
            spans[#spans + 1] = seen[i] and seen[i] - tonumber(line)
        end
        table.sort(spans)
        -- Half of them: the machine may have been busy with something else, so that one was missed.
        assert.is_true(#spans >= 3, #spans .. " seen")
        local middle = spans[math.ceil(#spans / 2)]
        assert.is_true(middle < 0.25, ("seen after %.3f s"):format(middle))
    end)
end)
