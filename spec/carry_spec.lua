-- SPDX-License-Identifier: MIT
--
-- Carrying functions: what arrives, what stays shared, what is refused. Most claims are checked on
-- a copy within this state; those about another state run a second interpreter.

local carry = require "batch.carry"
local cjson = require "cjson"

local interpreter = jit and "luajit" or _VERSION:lower():gsub(" ", "")

local function copy(value)
    return assert(carry.unpack(assert(carry.pack(value, "fetch"))))
end

-- What the packed function returns, as text, when another interpreter calls it.
local function called_elsewhere(value)
    local packed_path, script_path = os.tmpname(), os.tmpname()
    local packed_file = assert(io.open(packed_path, "wb"))
    packed_file:write((assert(carry.pack(value, "fetch"))))
    packed_file:close()
    local script = assert(io.open(script_path, "w"))
    script:write(([[
        package.path, package.cpath = %q, %q
        elsewhere = "a global of the other state"
        local packed = assert(io.open(%q, "rb")):read("*a")
        io.write(tostring(assert(require("batch.carry").unpack(packed))()))
    ]]):format(package.path, package.cpath, packed_path))
    script:close()
    local pipe = assert(io.popen(("%s %s 2>&1"):format(interpreter, script_path)))
    local output = pipe:read("*a")
    pipe:close()
    os.remove(packed_path)
    os.remove(script_path)
    return output
end

local function refusal(value)
    local packed, message = carry.pack(value, "fetch")
    assert.is_nil(packed)
    return message
end

local function holding(value)
    return function() return value end
end

describe("a carried function", function()
    it("takes arguments and returns results as before", function()
        local a, b = copy(function(x, y) return y, x end)(1, "two")
        assert.same({ "two", 1 }, { a, b })
    end)

    it("keeps every scalar exactly", function()
        for _, value in ipairs {
            true, false, 0, -1, 2 ^ 53, 0.1, 1e308, 5e-324, math.huge, -math.huge, "",
            "NUL \0 CR \r LF \n quote \" \\ \255", ("x"):rep(100000),
        } do
            assert.equal(value, copy(holding(value))())
        end
        assert.is_nil(copy(holding(nil))())
        local nan = copy(holding(0 / 0))()
        assert.is_true(nan ~= nan)
        assert.equal(-math.huge, 1 / copy(holding(-0.0))())
        assert.equal(cjson.null, copy(holding(cjson.null))())
    end)

    it("keeps integers integers and floats floats", function()
        if not math.type then
            return pending("this VM has one kind of number")
        end
        for _, value in ipairs { math.maxinteger, math.mininteger, 3, 3.0 } do
            assert.equal(math.type(value), math.type(copy(holding(value))()))
            assert.equal(value, copy(holding(value))())
        end
    end)

    it("keeps the identity and the cycles of tables", function()
        local leaf = { "leaf" }
        local graph = { left = leaf, right = leaf, [leaf] = "by key", [2.5] = true }
        graph.self = graph
        local carried = copy(holding(graph))()
        assert.equal(carried, carried.self)
        assert.equal(carried.left, carried.right)
        assert.equal("by key", carried[carried.left])
        assert.is_true(carried[2.5])
        assert.are_not.equal(graph, carried)
    end)

    it("keeps recursion, also of two functions by turns", function()
        local is_odd
        local function is_even(n) return n == 0 or is_odd(n - 1) end
        function is_odd(n) return n ~= 0 and is_even(n - 1) end
        assert.is_true(copy(is_even)(10))
        assert.is_false(copy(is_even)(7))
    end)

    it("shares an upvalue with the function that shared it before", function()
        local count = 5
        local both = copy {
            raise = function() count = count + 1 end,
            read = function() return count end,
        }
        both.raise()
        assert.equal(6, both.read())
        assert.equal(5, count)
    end)

    it("does not join upvalues that only held the same value", function()
        local a, b = 1, 1
        local both = copy {
            raise = function() a = a + 1 end,
            read = function() return a * 10 + b end,
        }
        both.raise()
        assert.equal(21, both.read())
    end)

    it("holds more than two hundred upvalue tables and functions", function()
        local list = {}
        for i = 1, 1000 do
            list[i] = { index = i, get = function() return list[i].index end }
        end
        assert.equal(777, copy(holding(list))()[777].get())
    end)

    it("may hold a list of 100,000 nodes", function()
        local head
        for i = 100000, 1, -1 do
            head = { value = i, next = head }
        end
        local node, sum = copy(holding(head))(), 0
        while node do
            node, sum = node.next, sum + node.value
        end
        assert.equal(5000050000, sum)
    end)

    it("keeps an environment of its own that is plain data", function()
        local source = "return function() return answer end"
        local made = assert(load(source, "=made", "t", { answer = 42 }))()
        assert.equal(42, copy(made)())
    end)
end)

describe("in another state a carried function", function()
    it("finds the globals of that state, not of this one", function()
        assert.equal("a global of the other state", called_elsewhere(function()
            return elsewhere -- luacheck: ignore 113
        end))
        local globals = _G
        assert.equal("a global of the other state", called_elsewhere(function()
            return globals.elsewhere
        end))
    end)

    it("finds library functions and required modules", function()
        local format, floor, decode, lpeg = string.format, math.floor, cjson.decode, require "lpeg"
        assert.equal("7 2", called_elsewhere(function()
            return format("%d %d", floor(decode("[7.5]")[1]), lpeg.match(lpeg.P "a", "a"))
        end))
    end)

    it("finds Lua functions of modules by their name", function()
        local nearest = require("batch.nearest").nearest
        assert.equal("workers", called_elsewhere(function()
            return nearest("worker", { "workers", "ttl" })
        end))
    end)

    it("keeps its data and its shared upvalues", function()
        local count, text = 0, "a\0b\r\n\"c"
        local function raise() count = count + #text end
        assert.equal("14", called_elsewhere(function()
            raise()
            raise()
            return ("%d"):format(count)
        end))
    end)

    it("is missed by name where its module cannot be loaded", function()
        package.loaded["spec.absent"] = { here = "only" }
        local absent = package.loaded["spec.absent"]
        local output = called_elsewhere(function() return absent.here end)
        package.loaded["spec.absent"] = nil
        assert.matches("module 'spec.absent' not found", output, 1, true)
    end)
end)

describe("what cannot be carried is refused by its path:", function()
    local file = io.stdout

    it("a userdata in an upvalue", function()
        local db = file
        assert.equal("fetch upvalue 'db': cannot carry a userdata",
            refusal(function() return db end))
    end)

    it("a userdata deep in tables and functions", function()
        local config = { log = file }
        assert.equal("fetch upvalue 'config' field 'log': cannot carry a userdata",
            refusal(function() return config end))
        local list = { { [true] = holding(file) } }
        assert.equal("fetch field 'run' upvalue 'list' field [1] field [true] upvalue 'value': "
            .. "cannot carry a userdata", refusal { run = function() return list end })
        assert.equal("fetch upvalue 'value' key: cannot carry a userdata",
            refusal(holding { [file] = 1 }))
    end)

    it("a coroutine", function()
        local worker = coroutine.create(print)
        assert.equal("fetch upvalue 'worker': cannot carry a thread",
            refusal(function() return worker end))
    end)

    it("a table with a metatable", function()
        local object = setmetatable({}, { __metatable = "hidden" })
        assert.equal("fetch upvalue 'object': cannot carry a table with a metatable",
            refusal(function() return object end))
    end)

    it("a C function that no module exports", function()
        local step = ("x"):gmatch(".")
        if debug.getinfo(step, "S").what ~= "C" then
            return pending("this VM writes gmatch in Lua")
        end
        assert.equal("fetch upvalue 'step': cannot carry a C function that no loaded module "
            .. "exports", refusal(function() return step end))
    end)

    it("a userdata given as the function", function()
        assert.equal("fetch: cannot carry a userdata", refusal(file))
    end)

    it("a userdata at the end of a long list, with the middle of the path left out", function()
        local head = { file = file }
        for _ = 1, 100 do
            head = { next = head }
        end
        assert.equal("fetch upvalue 'value' field 'next' field 'next' field 'next' … "
            .. "field 'next' field 'next' field 'file': cannot carry a userdata",
            refusal(holding(head)))
    end)
end)
