-- SPDX-License-Identifier: MIT
--
-- Nonsense at every door: targets of every kind of value, fetches that misbehave in every way. The
-- answer is a refusal or a failed target, never an error, never the end of the process.

local batch = require "batch"
local fresh = require "spec.support.fresh"

local function cycle()
    local a = {}
    a.b = { a }
    return a
end

local function deep(n)
    local inner = { x = 1 }
    for _ = 1, n do
        inner = { inner = inner }
    end
    return inner
end

local raising = setmetatable({}, {
    __index = function() error "looked into" end,
    __len = function() error "counted" end,
    __pairs = function() error "walked" end,
    __tostring = function() error "shown" end,
})

-- Values that JSON cannot hold.
local function unholdable()
    return {
        print, function() end, coroutine.create(print), io.stdout, 0 / 0, 1 / 0, -1 / 0,
        2 ^ 53 + 2, -2 ^ 60, 1e308, cycle(), deep(5000), "\255", "a\xc3", "\xed\xa0\x80",
        { [1] = 1, [3] = 3 }, { 1, 2, x = 3 }, { [1.5] = 1 }, { [true] = 1 }, { [print] = 1 },
        { ["\255"] = 1 }, { [2 ^ 53] = 1 }, { a = { b = { print } } },
    }
end

-- Values that are no list of targets.
local function no_lists()
    local lists = {
        {}, raising, { url = "a" }, { [0] = { url = "a" } }, { [2] = { url = "a" } },
        { { url = "a" }, [3] = { url = "b" } }, { { url = "a" }, x = 1 }, { 7 }, { "a" }, { {} },
        { { url = 7 } }, { { url = "" } }, { { url = {} } }, { { url = "\255" } },
        { { url = "a", options = 7 } }, { { url = "a", options = "x" } },
        { { url = "a", options = { 1, 2 } } }, { raising }, { { url = raising } },
        { { url = "a", options = { mode = 7 } } }, { { url = "a", options = { context = "yes" } } },
        { { url = "a", option = {} } },
    }
    for _, value in ipairs(unholdable()) do
        lists[#lists + 1] = value
        lists[#lists + 1] = { value }
        lists[#lists + 1] = { { url = "a" }, { url = value } }
        lists[#lists + 1] = { { url = "a", options = value } }
        lists[#lists + 1] = { { url = "a", options = { further = value } } }
    end
    return lists
end

describe("bad input", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("as targets is refused with the place", function()
        local runner = fresh.runner()
        for i, targets in ipairs(no_lists()) do
            local id, message, code = runner:submit("ann", targets)
            assert.same({ i, nil, "invalid" }, { i, id, code })
            assert.is_truthy(message:find "^targets? ", message)
            assert.is_true(#message < 512)
            assert.equal(message, select(2, batch.canonical(targets)))
            assert.equal(message, select(2, batch.idem_key("ann", targets)))
        end
        assert.equal(0, #runner:jobs())
    end)

    it("as caller or class is refused by its name", function()
        local runner = fresh.runner()
        for _, value in ipairs { 7, true, {}, print, raising, "\255", "a\xc3" } do
            assert.matches("^caller must be ", select(2, runner:submit(value, fresh.targets(1))))
            assert.matches("^class must be ",
                select(2, runner:submit("ann", fresh.targets(1), { class = value })))
        end
    end)
end)

-- name → { the fetch, the error that is stored }
local FETCHES = {
    ["raises a string"] = { function() error "boom" end, "internal error" },
    ["raises a table"] = { function() error { code = 7 } end, "internal error" },
    ["raises nil"] = { function() error() end, "internal error" },
    ["raises a value whose text raises"] = { function()
        error(setmetatable({}, { __tostring = function() error "no" end }))
    end, "internal error" },
    ["returns nothing"] = { function() end, "internal error" },
    ["returns a number"] = { function() return 7 end, "internal error" },
    ["returns true"] = { function() return true end, "internal error" },
    ["returns a table without content"] = { function() return {} end, "internal error" },
    ["returns content that is no string"] = { function()
        return { content = 7 }
    end, "internal error" },
    ["returns a meta that JSON cannot hold"] = { function()
        return { content = "", meta = { f = print } }
    end, "internal error" },
    ["returns a meta that goes in a circle"] = { function()
        local meta = {}
        meta.meta = meta
        return { content = "", meta = meta }
    end, "internal error" },
    ["returns an error that is a number"] = { function() return nil, 7 end, "internal error" },
    ["returns an error table without a message"] = { function()
        return nil, {}
    end, "internal error" },
    ["yields"] = { function() coroutine.yield(1) end, "internal error" },
    ["recurses for ever"] = { function()
        local function f() return 1 + f() end
        return f()
    end, "internal error" },
    ["runs out of memory"] = { function()
        return ("x"):rep(rawget(_G, "jit") and 2 ^ 31 - 1 or 2 ^ 50)
    end, "internal error" },
    ["loops for ever"] = { function() while true do end end, "timed out" },
    ["loops for ever and catches errors"] = { function()
        while true do pcall(function() while true do end end) end
    end, "timed out" },
    ["sleeps for ever"] = { function(_, ctx) ctx:sleep(1e9) end, "timed out" },
    ["takes the time-out's hook away"] = { function()
        pcall(debug.sethook)
        while true do end
    end, "timed out" },
    ["fails with text that is not UTF-8"] = { function() return nil, "a\255b" end, "a\u{fffd}b" },
    ["fails with a novel"] = { function() return nil, ("ä"):rep(5000) end, ("ä"):rep(2048) },
    ["breaks its own libraries"] = { function()
        local globals = _G
        for name in next, globals do
            globals[name] = nil
        end
        return print "gone"
    end, "internal error" },
}

describe("a fetch that", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    for name, case in pairs(FETCHES) do
        it(name .. " fails its target, and the process lives", function()
            local bad = case[1]
            local runner = fresh.runner {
                executor = "threads", log = function() end,
                target_timeout = case[2] == "timed out" and 0.2 or 60,
                fetch = function(target, ctx)
                    if target.url == "u1" then
                        return bad(target, ctx)
                    end
                    return "good"
                end,
            }
            local id = runner:submit("ann", fresh.targets(2))
            local job = runner:wait(id, 20)
            local _, targets = runner:status(id)
            assert.same({ "failed", case[2], "good" },
                { targets[1].status, targets[1].error, (targets[2].result or {}).content })
            assert.equal("partial", job.status)
            assert.is_nil(targets[1].hint)
        end)
    end
end)
