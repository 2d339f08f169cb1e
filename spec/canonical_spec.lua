-- SPDX-License-Identifier: MIT
--
-- The canonical form of targets and its hash: known answers, what does not count, what is refused.

local batch = require "batch"
local cjson = require "cjson"

local function vectors()
    local file = assert(io.open("spec/fixtures/canonical.json", "rb"))
    local text = file:read "*a"
    file:close()
    return cjson.decode(text)
end

-- The options of one target in canonical form.
local function canonical_options(options)
    local text = assert(batch.canonical { { url = "u", options = options } })
    return text:match '^%[{"url":"u","options":(.*)}%]$'
end

local function assert_refused(expected, targets)
    local text, message, code = batch.canonical(targets)
    assert.is_nil(text)
    assert.same({ expected, "invalid" }, { message, code })
end

-- The same for the option 'x' of the fourth target.
local function assert_option_refused(message, value)
    local targets = { { url = "a" }, { url = "b" }, { url = "c" }, { url = "d" } }
    targets[4].options = { x = value }
    assert_refused("target 3: " .. message, targets)
end

-- Lists within lists, so many of them.
local function nested(depth)
    local value = {}
    for _ = 2, depth do
        value = { value }
    end
    return value
end

describe("the canonical form", function()
    for _, vector in ipairs(vectors()) do
        it("and its key are those of the independent implementation: " .. vector.name, function()
            local targets = cjson.decode(vector.submitted)
            assert.same(vector.canonical, batch.canonical(targets))
            assert.same(vector.idem_key, batch.idem_key(vector.caller, targets))
        end)
    end

    it("is that of its own decoded text", function()
        for _, vector in ipairs(vectors()) do
            local text = assert(batch.canonical(cjson.decode(vector.submitted)))
            assert.same(text, batch.canonical(cjson.decode(text)))
        end
    end)

    it("does not depend on the order in which options were set", function()
        local names = { "mode", "grep", "jq", "question", "pages", "zeta", "alpha", "Beta", "é" }
        local expected = '{"mode":"v","question":"v","pages":"v","grep":"v","jq":"v",'
            .. '"Beta":"v","alpha":"v","zeta":"v","é":"v"}'
        for first = 1, #names do
            local options = {}
            for i = 0, #names - 1 do
                options[names[(first + i - 1) % #names + 1]] = "v"
            end
            assert.same(expected, canonical_options(options))
        end
    end)

    it("sorts keys by their bytes at every depth", function()
        local inner = { ["<"] = 1, ["Z"] = 2, [""] = 3, ["é"] = 4, z = 5, ["z "] = 6 }
        assert.same('{"x":{"a":{"":3,"\\u003c":1,"Z":2,"z":5,"z ":6,"é":4},"b":1}}',
            canonical_options { x = { b = 1, a = inner } })
    end)

    it("leaves out what is empty among the known options alone", function()
        assert.same('{"extra":"","flag":false}', canonical_options {
            mode = "", context = false, extra = "", flag = false,
        })
    end)

    it("takes null for absent in objects and keeps it in lists", function()
        local null = cjson.null
        assert.same("{}", canonical_options(null))
        assert.same('{"x":{},"y":[null,null]}', canonical_options {
            mode = null, context = null, further = null, x = { a = null }, y = { null, null },
        })
    end)

    it("takes an empty table for an object", function()
        assert.same('{"x":{},"y":[{}]}', canonical_options { x = {}, y = { {} } })
    end)

    it("writes integral numbers without a fraction", function()
        assert.same('{"x":[3,-3,0,0,9007199254740992,-9007199254740992]}', canonical_options {
            x = { 3.0, -3.0, 0.0, -0.0, 2 ^ 53, -2 ^ 53 },
        })
    end)

    it("writes other numbers as short as they are read back", function()
        assert.same('{"x":[0.1,-1.5,0.30000000000000004,0.000001,1e-7,1.5e-10,5e-324]}',
            canonical_options { x = { 0.1, -1.5, 0.1 + 0.2, 1e-6, 1e-7, 1.5e-10, 5e-324 } })
    end)

    it("keeps list items in order, however the list was filled", function()
        local list = {}
        for i = 20, 1, -1 do
            list[i] = i
        end
        assert.same('{"x":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}',
            canonical_options { x = list })
    end)

    it("escapes keys as it does values", function()
        assert.same('{"\\u0000\\n\\"\\u0026\\u2028":"\\u0001\\t\\\\\\u003e\\u2029/\127"}',
            canonical_options { ['\0\n"&\226\128\168'] = '\1\t\\>\226\128\169/\127' })
    end)

    it("looks at no metatable", function()
        local options = setmetatable({ mode = "text" }, {
            __index = error, __pairs = error, __len = error, __metatable = "locked",
        })
        assert.same('{"mode":"text"}', canonical_options(options))
    end)

    it("holds tables a hundred deep", function()
        assert.truthy(canonical_options { x = nested(99) })
    end)

    it("leaves its arguments as they were", function()
        local targets = { { url = "a", options = { mode = "", x = { 1.5, cjson.null } } } }
        assert(batch.canonical(targets))
        assert.same({ { url = "a", options = { mode = "", x = { 1.5, cjson.null } } } }, targets)
    end)
end)

describe("the idempotency key", function()
    it("tells callers, urls, options and orders apart", function()
        local one, two = { url = "a" }, { url = "b" }
        local keys = {
            batch.idem_key("alice", { one }),
            batch.idem_key("bob", { one }),
            batch.idem_key("", { one }),
            batch.idem_key("alice", { two }),
            batch.idem_key("alice", { one, one }),
            batch.idem_key("alice", { one, two }),
            batch.idem_key("alice", { two, one }),
            batch.idem_key("alice", { { url = "a", options = { mode = "text" } } }),
        }
        local seen, count = {}, 0
        for _, key in ipairs(keys) do
            assert.truthy(key:match("^" .. ("[0-9a-f]"):rep(64) .. "$"))
            count = count + (seen[key] and 0 or 1)
            seen[key] = true
        end
        assert.same(8, count)
    end)

    it("is the same for a list that says the same", function()
        local plain = { { url = "a", options = { x = 3 } } }
        local options = { x = 3.0, mode = "", recover = false, y = cjson.null }
        local wordy = { { url = "a", options = options } }
        assert.same(batch.idem_key("alice", plain), batch.idem_key("alice", wordy))
    end)

    it("refuses what the canonical form refuses", function()
        local _, message, code = batch.idem_key("alice", { { url = "" } })
        assert.same({ "target 0: url must be a non-empty string", "invalid" }, { message, code })
    end)

    it("refuses a caller that is not UTF-8", function()
        local _, message, code = batch.idem_key("a\255", { { url = "a" } })
        assert.same({ 'caller must be UTF-8, got "a\239\191\189"', "invalid" }, { message, code })
    end)
end)

describe("a list of targets", function()
    it("is refused when it is no list or has nothing in it", function()
        local rule = "targets must be a non-empty list, got "
        assert_refused(rule .. "an empty table", {})
        assert_refused(rule .. "nil", nil)
        assert_refused(rule .. '"https://example.com/"', "https://example.com/")
        assert_refused(rule .. "3.5", 3.5)
        assert_refused(rule .. "null", cjson.null)
        assert_refused(rule .. 'key "url"', { url = "a" })
        assert_refused(rule .. 'key "n"', { { url = "a" }, n = 1 })
        assert_refused(rule .. "key 0", { [0] = { url = "a" } })
        assert_refused(rule .. "key 1.5", { [1.5] = { url = "a" } })
    end)

    it("is refused when it has a hole", function()
        local hole = { { url = "a" }, nil, { url = "c" } }
        assert_refused("target 1: must be a table with a url, got nil", hole)
    end)

    it("is refused when a target is no table", function()
        local rule = "must be a table with a url, got "
        assert_refused("target 0: " .. rule .. '"a"', { "a" })
        assert_refused("target 1: " .. rule .. "null", { { url = "a" }, cjson.null })
    end)

    it("is refused when a target has another field", function()
        local rule = "target 0: must have no fields but url and options, got key "
        assert_refused(rule .. '"urls"', { { url = "a", urls = "b" } })
        assert_refused(rule .. '"mode"', { { url = "a", mode = "text" } })
        assert_refused(rule .. "1", { { "a" } })
    end)

    it("is refused when a url is missing, empty or no string", function()
        local rule = "target 1: url must be a non-empty string"
        assert_refused(rule, { { url = "a" }, {} })
        assert_refused(rule, { { url = "a" }, { url = "" } })
        assert_refused(rule .. ", got 42", { { url = "a" }, { url = 42 } })
        assert_refused(rule .. ", got true", { { url = "a" }, { url = true } })
        assert_refused(rule .. ", got null", { { url = "a" }, { url = cjson.null } })
        assert_refused(rule .. ", got a table", { { url = "a" }, { url = { "b" } } })
    end)

    it("is refused when a url is not UTF-8", function()
        assert_refused('target 0: url must be UTF-8, got "a\239\191\189b"', { { url = "a\255b" } })
        for _, url in ipairs { "\192\128", "\237\160\128", "\244\144\128\128", "\226\130" } do
            local _, message, code = batch.canonical { { url = url } }
            assert.truthy(message:find("target 0: url must be UTF-8", 1, true))
            assert.same("invalid", code)
        end
    end)

    it("is refused when options are no object", function()
        local rule = "target 0: options must be a table with string keys, got "
        assert_refused(rule .. '"text"', { { url = "a", options = "text" } })
        assert_refused(rule .. "false", { { url = "a", options = false } })
        assert_refused(rule .. "key 1", { { url = "a", options = { "text" } } })
        assert_refused(rule .. "key true", { { url = "a", options = { [true] = 1 } } })
    end)
end)

describe("an option", function()
    it("is refused when it is of the wrong type", function()
        for _, name in ipairs { "mode", "question", "pages", "grep", "jq" } do
            assert_refused(("target 0: option '%s': must be a string, got 5"):format(name),
                { { url = "a", options = { [name] = 5 } } })
        end
        for _, name in ipairs { "context", "recover" } do
            assert_refused(("target 0: option '%s': must be a boolean, got \"yes\""):format(name),
                { { url = "a", options = { [name] = "yes" } } })
        end
    end)

    it("is refused when it is no finite number", function()
        assert_option_refused("option 'x': must be a finite number, got nan", 0 / 0)
        assert_option_refused("option 'x': must be a finite number, got inf", 1 / 0)
        assert_option_refused("option 'x.y[2]': must be a finite number, got -inf", {
            y = { 1, -1 / 0 },
        })
    end)

    it("is refused when it is an integer that JSON's readers would round", function()
        local rule = "option 'x': must be a number from -2^53 to 2^53, got "
        assert_option_refused(rule .. "9007199254740994", 2 ^ 53 + 2)
        assert_option_refused(rule .. "-9007199254740994", -2 ^ 53 - 2)
        assert_option_refused(rule .. "1e+300", 1e300)
        if math.maxinteger then
            assert_option_refused(rule .. "9007199254740993", math.tointeger(2 ^ 53) + 1)
            assert_option_refused(rule .. "-9223372036854775808", math.mininteger)
        end
    end)

    it("is refused when JSON cannot hold it", function()
        local rule = "option 'x.y': must be a value that JSON holds, got "
        assert_option_refused(rule .. "a function", { y = print })
        assert_option_refused(rule .. "a thread", { y = coroutine.create(print) })
        assert_option_refused(rule .. "a userdata", { y = io.stdout })
    end)

    it("is refused when it contains itself", function()
        local rule = "must not be a table that it lies in"
        local inner = {}
        inner.again = { inner }
        assert_option_refused("option 'x.again[1]': " .. rule, inner)
        local options = { mode = "text" }
        options.me = options
        assert_refused("target 0: option 'me': " .. rule, { { url = "a", options = options } })
    end)

    it("may hold the same table twice", function()
        local shared = { 1 }
        assert.same('{"x":[[1],[1]]}', canonical_options { x = { shared, shared } })
    end)

    it("is refused when it is more than a hundred tables deep", function()
        local _, message = batch.canonical { { url = "a", options = { x = nested(100) } } }
        local expected = "^target 0: option 'x%[1%].*…': must be at most 100 tables deep$"
        assert.truthy(message:find(expected))
    end)

    it("is refused when it is neither list nor object", function()
        local rule = "option 'x': must be a table with string keys or a list without holes"
            .. ", got key "
        assert_option_refused(rule .. '"a"', { 1, a = 2 })
        assert_option_refused(rule .. "0", { [0] = 1 })
        assert_option_refused(rule .. "2.5", { [2.5] = 1 })
        assert_option_refused(rule .. "false", { [false] = 1 })
    end)

    it("is refused when it is a list with a hole", function()
        assert_option_refused("option 'x[2]': must not be a hole in a list, got nil", { 1, nil, 3 })
        assert_option_refused("option 'x[1]': must not be a hole in a list, got nil", { [7] = 1 })
    end)

    it("is refused when its text is not UTF-8", function()
        assert_option_refused("option 'x': must be UTF-8, got \"\239\191\189\"", "\255")
        assert_option_refused("option 'x.y[1]': must be UTF-8, got \"\239\191\189\"", {
            y = { "\255" },
        })
        assert_option_refused("option 'x': must have keys in UTF-8, got key \"\239\191\189\"", {
            ["\255"] = 1,
        })
        assert_refused("target 0: options must have keys in UTF-8, got key \"\239\191\189\"",
            { { url = "a", options = { ["\255"] = 1 } } })
    end)

    it("is refused in a short sentence of one line, however long and odd it is", function()
        local value = { [("k"):rep(1000)] = { ["a\nb\0"] = { ("é"):rep(1000), print } } }
        local _, message = batch.canonical { { url = "a", options = { x = value } } }
        assert.truthy(#message < 512)
        assert.falsy(message:find "%c")
        assert.truthy(message:find("must be a value that JSON holds, got a function", 1, true))
    end)

    it("unfolds no further than memory allows", function()
        local value = { ("x"):rep(1000) }
        for _ = 1, 60 do
            value = { value, value }
        end
        local _, message, code = batch.canonical { { url = "a", options = { x = value } } }
        assert.truthy(message:find "must be at most 256 MiB long")
        assert.same("invalid", code)
    end)
end)
