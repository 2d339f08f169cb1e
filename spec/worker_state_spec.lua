-- SPDX-License-Identifier: MIT
--
-- The Lua state that a worker's fetch runs in, and its thread.

local worker = require "spec.support.worker"

local function content(fetch)
    local target = worker.outcome(fetch)
    return target.result and target.result.content or target.error
end

describe("a worker's state", function()
    after_each(worker.close_all)

    it("has package.path and package.cpath of this one", function()
        local path, cpath = package.path, package.cpath
        package.path, package.cpath = path .. ";./spec-path/?.lua", cpath .. ";./spec-path/?.so"
        local seen = content(function() return package.path .. "\n" .. package.cpath end)
        assert.equal(package.path .. "\n" .. package.cpath, seen)
        package.path, package.cpath = path, cpath
    end)

    it("has no debug.sethook, which could take the time-out away", function()
        assert.equal("nil nil", content(function()
            return type(debug.sethook) .. " " .. type(require("debug").sethook)
        end))
    end)

    -- Code that LuaJIT has compiled calls no hooks, and the time-out is one.
    it("stops a loop at its time-out, whatever LuaJIT's compiler is told", function()
        local target = worker.outcome(function()
            if rawget(_G, "jit") then
                jit.on()
                require("jit").on(true, true)
                require("jit.opt").start("hotloop=2")
            end
            coroutine.wrap(function() while true do end end)()
        end, { target_timeout = 0.1 })
        assert.equal("timed out", target.error)
        assert.is_true(target.finished_at - target.started_at < 3)
    end)

    it("runs with all signals blocked that a program handles", function()
        local mask = content(function()
            for line in io.lines "/proc/thread-self/status" do
                if line:match "^SigBlk" then
                    return line:match "%x+$"
                end
            end
        end)
        local high, low = tonumber(mask:sub(1, 8), 16), tonumber(mask:sub(9), 16)
        local function is_blocked(number)
            local word = number > 32 and high or low
            return math.floor(word / 2 ^ ((number - 1) % 32)) % 2 == 1
        end
        for _, number in ipairs { 1, 2, 3, 10, 12, 13, 14, 15, 17, 21, 22, 28, 34, 64 } do
            assert.is_true(is_blocked(number), "signal " .. number)
        end
        for _, number in ipairs { 4, 6, 7, 8, 11 } do
            assert.is_false(is_blocked(number), "signal " .. number)
        end
    end)

    -- A sanitizer ends the process instead.
    local it_without_sanitizer = os.getenv "SANITIZER" and pending or it

    it_without_sanitizer("is made anew when it could not get memory for a string", function()
        local runner = worker.open {
            fetch = {
                setup = function() rawset(_G, "is_fresh", true) end,
                fetch = function(target)
                    local was_fresh = rawget(_G, "is_fresh")
                    rawset(_G, "is_fresh", false)
                    if target.url == "huge" then
                        return io.stdin:read(2 ^ 46)
                    end
                    return tostring(was_fresh)
                end,
            },
        }
        local _, targets = worker.run(runner,
            { { url = "a" }, { url = "b" }, { url = "huge" }, { url = "c" } })
        assert.same({ "true", "false", "internal error", "true" }, {
            targets[1].result.content, targets[2].result.content, targets[3].error,
            targets[4].result and targets[4].result.content,
        })
    end)

    it_without_sanitizer("is made anew after it ran out of memory", function()
        local output, is_well = worker.program([[
            local batch = require "batch"
            local runner = batch.new {
                store = ":memory:",
                log = function() end,
                fetch = function(target)
                    is_stale = is_stale or target.url == "hungry"
                    local list = {}
                    while target.url == "hungry" do
                        list[#list + 1] = ("x"):rep(2 ^ 16) .. #list
                    end
                    return tostring(is_stale)
                end,
            }
            local id = runner:submit("spec", { { url = "hungry" }, { url = "a" } })
            assert(runner:wait(id, 30).status == "partial")
            local _, targets = runner:status(id)
            assert(targets[1].error == "internal error")
            assert(targets[2].result.content == "false")
        ]], "ulimit -v 400000;")
        assert.same({ "", true }, { output, is_well })
    end)
end)
