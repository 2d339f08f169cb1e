-- SPDX-License-Identifier: MIT
--
-- The end of a runner: asked for, by the collector, by the end of the process.

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local testing = require "batch.testing"
local worker = require "spec.support.worker"

local folder

-- Starts a job whose first target waits for the end of its runner and then does what its url says.
local function start(config)
    local gate = folder .. "/gate"
    local settings = {
        on_restart = "resume",
        store = folder .. "/batch.db",
        fetch = function(target, ctx)
            while ctx:sleep(60) do end
            if target.url == "result" then
                return "in time"
            elseif target.url == "error" then
                return nil, "interrupted"
            elseif target.url == "busy" then
                return nil, batch.retry_later "busy"
            elseif target.url == "raise" then
                error "interrupted"
            elseif target.url == "slow" then
                os.execute("until [ -e '" .. gate .. "' ]; do sleep 0.01; done")
                return "in time"
            end
        end,
    }
    for name, value in pairs(config or {}) do
        settings[name] = value
    end
    local runner = worker.open(settings)
    return runner, function(url)
        local id = assert(runner:submit("spec", { { url = url }, { url = "next" } }))
        eventually(function() return runner:stats().inflight_targets == 1 end)
        return id
    end
end

-- Lets what is slow end.
local function open_gate()
    io.open(folder .. "/gate", "w"):close()
end

-- What stands in the store, read by a client.
local function read(id)
    local client = assert(batch.client { store = folder .. "/batch.db" })
    local job, targets = client:status(id)
    client:close()
    return job, targets
end

describe("close", function()
    before_each(function() folder = worker.folder() end)
    after_each(function()
        open_gate()
        worker.close_all()
        os.execute("rm -r " .. folder)
    end)

    it("cancels what runs, and stores a result that still comes", function()
        local runner, submit = start()
        local id = submit "result"
        assert.is_true(runner:close())
        local job, targets = read(id)
        assert.same({ "queued", 1, "in time", "pending" },
            { job.status, job.targets_done, targets[1].result.content, targets[2].status })
    end)

    it("leaves the target of an error, a busy or a raise pending", function()
        for _, url in ipairs { "error", "busy", "raise", "nothing" } do
            local runner, submit = start { jobs_per_caller = 10 }
            local id = submit(url)
            assert.is_true(runner:close())
            local job, targets = read(id)
            assert.same({ "queued", 0, "pending" },
                { job.status, job.targets_done, targets[1].status }, url)
            assert.is_nil(targets[1].error)
            os.execute("rm " .. folder .. "/*")
        end
    end)

    it("gives up after the seconds given, and goes on when called again", function()
        local runner, submit = start()
        local id = submit "slow"
        local closed, message, code = runner:close(0.05)
        assert.same({ nil, "timeout" }, { closed, code })
        assert.is_string(message)
        open_gate()
        assert.is_true(runner:close())
        assert.equal("in time", select(2, read(id))[1].result.content)
    end)

    it("takes no longer when another program holds the store", function()
        local runner = worker.open { store = folder .. "/batch.db", executor = "manual" }
        assert(runner:submit("spec", { { url = "a" } }))
        local task = assert(runner:take())
        io.open(folder .. "/locked", "w"):close()
        local locker = io.popen(("sqlite3 %s/batch.db >%s/locked"):format(folder, folder), "w")
        locker:write(".timeout 5000\nbegin immediate;\nselect 'locked';\n")
        locker:flush()
        eventually(function()
            local file = assert(io.open(folder .. "/locked"))
            local line = file:read "l"
            file:close()
            return line
        end)
        runner:finish(task, "not stored in time")
        local began = core.now()
        assert.is_true(runner:close(0.2))
        assert.is_true(core.now() - began < 4)
        locker:close()
    end)

    it("lets submits be refused while it waits, and reading go on", function()
        local runner, submit = start()
        local id = submit "slow"
        runner:close(0)
        assert.same({ nil, "closed", "closed" }, { runner:submit("spec", { { url = "late" } }) })
        assert.equal("running", runner:status(id).status)
        assert.is_false(runner:stats().healthy)
        open_gate()
        assert.is_true(runner:close(10))
    end)

    it("takes seconds below 0 for no time at all, and what is no number for a mistake", function()
        local runner, submit = start()
        local id = submit "slow"
        assert.same({ nil, "timeout", "timeout" }, { runner:wait(id, -1) })
        assert.equal("timeout", select(3, runner:close(-1)))
        assert.has_error(function() runner:wait(id, 0 / 0) end)
        assert.has_error(function() runner:close(0 / 0) end)
        open_gate()
        assert.is_true(runner:close())
    end)

    it("may be called again", function()
        local runner = start()
        assert.is_true(runner:close())
        assert.is_true(runner:close())
        assert.is_true(runner:close(1))
    end)

    it("makes every other method raise", function()
        local runner = start()
        runner:close()
        for name, arguments in pairs {
            submit = { "spec", { { url = "a" } } },
            status = { "x" }, results = { "x" }, jobs = {}, cancel = { "x" }, touch = { "x" },
            wait = { "x" }, stats = {}, poll = {}, fd = {},
        } do
            local ok, message = pcall(runner[name], runner, (table.unpack or unpack)(arguments))
            assert.is_false(ok, name)
            assert.matches("attempt to use a closed runner", message, 1, true)
        end
    end)

    it("gives back the tasks that the program holds", function()
        local path = folder .. "/batch.db"
        local runner = worker.open { store = path, executor = "manual", on_restart = "resume" }
        local id = runner:submit("spec", { { url = "a" } })
        local task = runner:take()
        assert.equal("a", task.url)
        assert.is_true(runner:close())
        assert.equal("queued", read(id).status)
        local other = worker.open { store = path, executor = "manual" }
        assert.same({ "a", 1 }, { eventually(function() return (other:take()) end).url,
            task.attempt })
    end)

    it("leaves the jobs with on_restart = \"fail\" for the next runner to fail", function()
        local runner, submit = start { on_restart = "fail" }
        local id = submit "error"
        runner:close()
        worker.open { store = folder .. "/batch.db", executor = "manual" }
        local job, targets = read(id)
        assert.same({ "failed", "restart", "pending" },
            { job.status, job.error, targets[1].status })
    end)

    it("stores outcomes that wait for their commit", function()
        local path = folder .. "/batch.db"
        local runner = worker.open { store = path, executor = "manual" }
        local id = runner:submit("spec", { { url = "a" } })
        runner:finish(runner:take(), "A")
        runner:close()
        assert.equal("done", read(id).status)
    end)

    it("happens at the end of a scope", function()
        if _VERSION == "Lua 5.4" then
            local seen = load [[
                local runner = ...
                do
                    local scoped <close> = runner
                end
                return pcall(runner.stats, runner)
            ]](start())
            assert.is_false(seen)
        end
    end)

    it("happens when the runner is collected", function()
        local id = select(2, start()) "result"
        local weak = setmetatable({ worker.forget() }, { __mode = "v" })
        collectgarbage()
        collectgarbage()
        assert.is_nil(weak[1])
        assert.same({ "queued", 1 }, { read(id).status, read(id).targets_done })
    end)
end)

describe("a process that ends without close", function()
    before_each(function() folder = worker.folder() end)
    after_each(function() os.execute("rm -r " .. folder) end)

    local PROGRAM = [[
        local batch = require "batch"
        local runner = assert(batch.new {
            store = %q, workers = 4, jobs_per_caller = 1000, jobs_total = 1000,
            on_restart = "resume",
            fetch = function(_, ctx) ctx:sleep(0.001) return "x" end,
        })
        for i = 1, 20 do
            assert(runner:submit("spec", { { url = "a" .. i }, { url = "b" .. i } }))
        end
        %s
    ]]

    -- The leak checks of the sanitizers stumble over threads that still run.
    local WITHOUT_LEAK_CHECK =
        [[LSAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="$TSAN_OPTIONS:report_thread_leaks=0"]]

    it("ends well, twenty times", function()
        for i = 1, 20 do
            local ending = ({ "", "os.exit(0)", "os.exit(0, true)", "runner = nil" })[i % 4 + 1]
            local path = ("%s/%d.db"):format(folder, i)
            local output, is_well = worker.program(PROGRAM:format(path, ending),
                WITHOUT_LEAK_CHECK)
            assert.same({ "", true }, { output, is_well }, ending)
            local store = assert(batch.store.open(path))
            assert.is_true(store:check())
            store:close()
        end
    end)

    it("ends well when it raises", function()
        local output, is_well = worker.program(PROGRAM:format(folder .. "/a.db", "error 'over'"),
            WITHOUT_LEAK_CHECK)
        assert.is_false(is_well)
        assert.matches("over", output, 1, true)
        assert.is_nil(output:find("fault", 1, true))
    end)

    it("ends well while a fetch hangs in C", function()
        local output, is_well = worker.program([[
            local batch = require "batch"
            local runner = assert(batch.new {
                store = ":memory:",
                fetch = function() os.execute "sleep 1" return "x" end,
            })
            runner:submit("spec", { { url = "a" } })
            runner:close(0.1)
            os.exit(0)
        ]], WITHOUT_LEAK_CHECK)
        assert.same({ "", true }, { output, is_well })
    end)
end)

describe("two runners in one process", function()
    before_each(function() folder = worker.folder() end)
    after_each(function()
        worker.close_all()
        os.execute("rm -r " .. folder)
    end)

    local function open(name, content)
        return worker.open {
            store = folder .. "/" .. name,
            fetch = testing.script { default = content },
        }
    end

    it("do not meet on different stores", function()
        local a, b = open("a.db", "A"), open("b.db", "B")
        local _, of_a = worker.run(a)
        local job, of_b = worker.run(b)
        assert.same({ "A", "B" }, { of_a[1].result.content, of_b[1].result.content })
        assert.is_nil((a:status(job.id)))
        a:close()
        assert.equal("done", worker.run(b, { { url = "v" } }).status)
    end)

    it("share one store, each its own jobs", function()
        local a, b = open("same.db", "A"), open("same.db", "B")
        local _, of_a = worker.run(a)
        local job, of_b = worker.run(b, { { url = "v" } })
        assert.same({ "A", "B" }, { of_a[1].result.content, of_b[1].result.content })
        assert.equal("done", a:status(job.id).status)
        a:close()
        assert.equal("done", worker.run(b, { { url = "w" } }).status)
    end)
end)
