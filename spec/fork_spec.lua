-- SPDX-License-Identifier: MIT
--
-- Nothing survives a fork: what a child may do with its parent's runner, and what it may not hold.

local batch = require "batch"
local build_forker = require "spec.support.forker"
local process = require "spec.support.process"

local FORKER = [[
package.cpath = folder .. "/?.so;" .. package.cpath
local forker = require "forker"
]]

describe("after a fork", function()
    local folder

    before_each(function()
        folder = process.folder()
        build_forker(folder.path)
    end)

    after_each(function()
        folder:remove()
    end)

    it("any use of a runner raises, and names who opened it", function()
        local forking = folder:start(FORKER .. [[
        local runner = assert(batch.new(settings { fetch = function() return "x" end }))
        local manual = assert(batch.new(settings { store = folder .. "/manual.db",
            executor = "manual" }))
        local id = assert(manual:submit("me", urls("a", 1)))
        local task = assert(manual:take())
        local child = forker.fork()
        if child == 0 then
            local uses = {
                submit = function() runner:submit("me", urls("b", 1)) end,
                status = function() runner:status(id) end,
                results = function() runner:results(id) end,
                jobs = function() runner:jobs() end,
                cancel = function() runner:cancel(id) end,
                touch = function() runner:touch(id) end,
                wait = function() runner:wait(id, 1) end,
                stats = function() runner:stats() end,
                poll = function() runner:poll() end,
                fd = function() runner:fd() end,
                changes = function() runner:changes() end,
                close = function() runner:close() end,
                take = function() manual:take() end,
                finish = function() manual:finish(task, "x") end,
                fail = function() manual:fail(task, "x") end,
                later = function() manual:later(task, "x") end,
                drain = function() manual:drain(function() return "x" end) end,
            }
            for name, use in pairs(uses) do
                local ok, message = pcall(use)
                note("answers", name .. " " .. tostring(ok) .. " " .. tostring(message))
            end
            -- What is left to the collector does no harm, a task that outlives its runner either.
            runner, manual, uses = nil, nil, nil
            collectgarbage()
            collectgarbage()
            task = nil
            collectgarbage()
            collectgarbage()
            forker.leave(7)
        end
        note("pid", tostring(core.pid()))
        assert(forker.wait(child) == 7)
        assert(runner:wait(assert(runner:submit("me", urls("d", 2))), 10).status == "done")
        assert(manual:finish(task, "x"))
        assert(manual:wait(id, 10).status == "done")
        assert(runner:close() and manual:close())
        ]])
        assert.same(0, forking:wait(), forking:output())
        local wanted = "open the runner in init_worker_by_lua: nothing survives the fork"
        local answers = folder:lines("answers")
        assert.same(17, #answers)
        for _, answer in ipairs(answers) do
            assert.truthy(answer:find(" false ", 1, true), answer)
            assert.truthy(answer:find(wanted, 1, true), answer)
            assert.truthy(answer:find("process " .. folder:lines("pid")[1], 1, true), answer)
        end
    end)

    it("a child does not keep its dead parent's jobs", function()
        local parent = folder:start(FORKER .. [[
        local runner = assert(batch.new(settings { on_restart = "resume",
            fetch = function(_, ctx)
                note("fetching", "yes")
                ctx:sleep(60)
            end }))
        note("id", (assert(runner:submit("me", urls("a", 2)))))
        while not io.open(folder .. "/fetching") do
            core.poll_fd(runner:fd(), 0.01)
        end
        local child = forker.fork()
        if child == 0 then
            note("child", tostring(core.pid()))
            while not io.open(folder .. "/taken") do
                core.poll_fd(0, 0.01)
            end
            note("child", "lives")
            forker.leave(0)
        end
        while true do
            core.poll_fd(runner:fd(), 60)
        end
        ]])
        process.eventually(function() return folder:lines("child")[1] end)
        local runner = assert(batch.new { store = folder.store, on_restart = "resume",
            fetch = function() return "taken over" end })
        local id = folder:lines("id")[1]
        assert.same({ nil, "timeout", "timeout" }, { runner:wait(id, 0.3) })
        parent:kill()
        assert.same("done", (assert(runner:wait(id, 2))).status)
        io.open(folder.path .. "/taken", "w"):close()
        assert.same("lives", process.eventually(function() return folder:lines("child")[2] end))
        runner:close()
    end)

    it("a store of the parent's cannot be used", function()
        local forking = folder:start(FORKER .. [[
        local store = assert(batch.store.open(STORE))
        local child = forker.fork()
        if child == 0 then
            local ok, message = pcall(store.check, store)
            note("answer", tostring(ok) .. " " .. tostring(message))
            store = nil
            collectgarbage()
            forker.leave(0)
        end
        forker.wait(child)
        assert(store:check() == true)
        assert(store:close())
        ]])
        assert.same(0, forking:wait(), forking:output())
        assert.truthy(folder:lines("answer")[1]:find("false .*nothing survives the fork"))
    end)
end)
