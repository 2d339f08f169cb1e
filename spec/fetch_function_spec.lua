-- SPDX-License-Identifier: MIT
--
-- Where fetch comes from: a module, or a function or table that is carried.

local batch = require "batch"
local cjson = require "cjson"
local worker = require "spec.support.worker"

-- Writes modules into a folder of their own that stays on package.path during the test.
local function with_modules(modules, test)
    local folder, path = worker.folder(), package.path
    for name, text in pairs(modules) do
        local file = assert(io.open(folder .. "/" .. name .. ".lua", "w"))
        file:write(text)
        file:close()
    end
    package.path = folder .. "/?.lua;" .. path
    local ok, message = pcall(test, folder)
    package.path = path
    for name in pairs(modules) do
        package.loaded[name] = nil
        os.remove(folder .. "/" .. name .. ".lua")
    end
    os.remove(folder)
    if not ok then
        error(message, 0)
    end
end

local function content(fetch, config)
    local target = worker.outcome(fetch, config)
    return target.result and target.result.content or target.error
end

local function refusal(fetch)
    return { batch.new { store = ":memory:", fetch = fetch } }
end

describe("a module named as fetch", function()
    after_each(worker.close_all)

    it("may return the function", function()
        with_modules({ spec_fetch_plain = "return function(t) return 'got ' .. t.url end" },
            function() assert.equal("got u", content "spec_fetch_plain") end)
    end)

    it("may return a table, whose setup runs once a state and whose teardown at its end", function()
        with_modules({ spec_fetch_table = [[
            local setups = 0
            return {
                setup = function() setups = setups + 1 end,
                fetch = function(t)
                    path = t.options.path
                    return "setups: " .. setups
                end,
                teardown = function() io.open(path, "a"):write("down\n"):close() end,
            }
        ]] }, function(folder)
            local path = folder .. "/teardowns"
            local runner = worker.open { fetch = "spec_fetch_table" }
            local _, targets = worker.run(runner, {
                { url = "a", options = { path = path } },
                { url = "b", options = { path = path } },
            })
            assert.equal("setups: 1", targets[2].result.content)
            assert.is_nil(io.open(path))
            runner:close()
            local file = assert(io.open(path))
            assert.equal("down\n", file:read "*a")
            file:close()
            os.remove(path)
        end)
    end)

    it("is set up once in each worker's state", function()
        local fetch = {
            setup = function() rawset(_G, "setups", (rawget(_G, "setups") or 0) + 1) end,
            fetch = function(_, ctx)
                ctx:sleep(0.05)
                return tostring(rawget(_G, "setups"))
            end,
        }
        local runner = worker.open { fetch = fetch, workers = 3, jobs_per_caller = 3 }
        local ids = {}
        for i = 1, 3 do
            ids[i] = assert(runner:submit("spec", { { url = "a" .. i }, { url = "b" .. i } }))
        end
        for _, id in ipairs(ids) do
            assert(runner:wait(id, 10))
            for target in runner:results(id) do
                assert.equal("1", target.result.content)
            end
        end
    end)

    it("may check targets, in the state that submits", function()
        rawset(_G, "spec_checks", {})
        with_modules({ spec_fetch_check = [[
            return {
                fetch = function() return "x" end,
                check = function(t)
                    table.insert(spec_checks, t.url .. " " .. tostring(t.options.deep))
                    if t.url == "bad" then return nil, "no such scheme" end
                    if t.url == "worse" then return false end
                    return true
                end,
            }
        ]] }, function()
            local runner = worker.open { fetch = "spec_fetch_check" }
            local targets = { { url = "a", options = { deep = 1 } }, { url = "bad" } }
            assert.same({ nil, "target 1: no such scheme", "invalid" },
                { runner:submit("spec", targets) })
            assert.same({ "a 1", "bad nil" }, rawget(_G, "spec_checks"))
            assert.equal("target 0: refused by the fetch's check",
                select(2, runner:submit("spec", { { url = "worse" } })))
            assert.equal("done", worker.run(runner, { { url = "good" } }).status)
        end)
        rawset(_G, "spec_checks", nil)
    end)

    it("is refused by name when it is missing, does not load or gives no function", function()
        with_modules({
            spec_fetch_broken = "return = 1",
            spec_fetch_raises = "error 'not today'",
            spec_fetch_number = "return 42",
            spec_fetch_empty = "return {}",
        }, function()
            for name, words in pairs {
                spec_fetch_missing = "not found",
                spec_fetch_broken = "unexpected symbol",
                spec_fetch_raises = "not today",
                spec_fetch_number = "gives no function",
                spec_fetch_empty = "gives no function",
            } do
                local got = refusal(name)
                assert.same({ nil, "invalid" }, { got[1], got[3] })
                assert.matches(name, got[2], 1, true)
                assert.matches(words, got[2], 1, true)
            end
        end)
    end)

    it("fails its targets when its setup raises, and tries again with the next one", function()
        with_modules({ spec_fetch_setup = [[
            return {
                setup = function()
                    if not io.open(os.getenv "HOME" .. "/.no-such-file-at-all") then
                        error "no licence"
                    end
                end,
                fetch = function() return "x" end,
            }
        ]] }, function()
            local runner, log = worker.open { fetch = "spec_fetch_setup" }
            local job, targets = worker.run(runner, { { url = "a" }, { url = "b" } })
            assert.same({ "failed", "internal error", "internal error" },
                { job.status, targets[1].error, targets[2].error })
            assert.matches("no licence", log[1].fields.detail, 1, true)
        end)
    end)
end)

local helper = { words = { "from", "a table" } }

local function joined(separator)
    return table.concat(helper.words, separator)
end

describe("a function given as fetch", function()
    after_each(worker.close_all)

    it("is carried with plain data, functions, library functions and modules", function()
        local upper, number, flag = string.upper, 7, true
        assert.equal('FROM A TABLE7true{"k":1}', content(function()
            return upper(joined " ") .. number .. tostring(flag) .. cjson.encode { k = 1 }
        end))
    end)

    it("may be a table of functions, whose check stays here and may be a closure", function()
        local checked = {}
        local runner = worker.open {
            fetch = {
                fetch = function() return "x" end,
                check = function(target)
                    checked[#checked + 1] = target.url
                    return true
                end,
            },
        }
        worker.run(runner, { { url = "a" }, { url = "b" } })
        assert.same({ "a", "b" }, checked)
    end)

    it("is refused with the path to what cannot be carried", function()
        local db = io.stdout
        assert.same({ nil, "fetch upvalue 'db': cannot carry a userdata", "invalid" },
            refusal(function() return db end))
        local holder = { inner = { thread = coroutine.create(print) } }
        assert.same({
            nil,
            "fetch upvalue 'holder' field 'inner' field 'thread': cannot carry a thread",
            "invalid",
        }, refusal(function() return holder end))
        local object = setmetatable({}, { __index = {} })
        assert.equal("fetch upvalue 'object': cannot carry a table with a metatable",
            refusal(function() return object end)[2])
    end)

    it("does not see the globals of this state", function()
        rawset(_G, "spec_global", "here")
        assert.equal("nil", content(function() return tostring(rawget(_G, "spec_global")) end))
        rawset(_G, "spec_global", nil)
    end)

    it("changes only its own copies", function()
        local count = 0
        local runner = worker.open {
            fetch = function()
                count = count + 1
                return tostring(count)
            end,
        }
        local _, targets = worker.run(runner, { { url = "a" }, { url = "b" } })
        assert.same({ "1", "2", 0 },
            { targets[1].result.content, targets[2].result.content, count })
    end)
end)
