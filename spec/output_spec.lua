-- SPDX-License-Identifier: MIT
--
-- Outcomes as JSON Lines: exact bytes, and that any reader of JSON gets back what was fetched.

local cjson = require "cjson"
local output = require "batch.cli.output"

local function outcome(fields)
    local full = { url = "http://a/?x=1&y=<2>", status = "done", result = { content = "hello" } }
    for name, value in pairs(fields or {}) do
        full[name] = value
    end
    return full
end

local function result_of(content)
    local line = output.encode_outcome(outcome { result = { content = content } }, 1)
    assert.is_nil(line:find("\n"))
    return cjson.decode(line).result
end

describe("an outcome", function()
    it("is one line with its fields in a fixed order", function()
        local full = outcome {
            idx = 4, job = "some id", seq = 9, options = { mode = "raw", context = true },
            attempts = 2, started_at = 1700000000, finished_at = 1700000001.5,
            result = { content = "hello", meta = { status = 200, title = "A/B" } },
        }
        assert.equal('{"line":7,"url":"http://a/?x=1&y=<2>",'
            .. '"options":{"context":true,"mode":"raw"},"status":"done",'
            .. '"result":{"content":"hello","meta":{"status":200,"title":"A/B"}},'
            .. '"attempts":2,"started_at":"2023-11-14T22:13:20.000Z",'
            .. '"finished_at":"2023-11-14T22:13:21.500Z"}', output.encode_outcome(full, 7))
    end)

    it("that failed has error and hint, and no result", function()
        local failed = { url = "u", status = "failed", error = "404", hint = 'say "please"' }
        assert.equal('{"line":1,"url":"u","status":"failed","error":"404",'
            .. '"hint":"say \\"please\\""}', output.encode_outcome(failed, 1))
    end)

    it("has an object for meta, even an empty or absent one", function()
        for _, meta in ipairs { {}, false } do
            local result = { content = "", meta = meta or nil }
            local line = output.encode_outcome(outcome { result = result }, 1)
            assert.match('"result":{"content":"","meta":{}}', line, 1, true)
        end
    end)

    it("has times to the millisecond, rounded", function()
        local line = output.encode_outcome(outcome { finished_at = 1700000000.9996 }, 1)
        assert.match('"finished_at":"2023-11-14T22:13:21.000Z"', line, 1, true)
    end)
end)

describe("content", function()
    local texts = {
        "", "plain", "a\0b", "\1\31\127", 'q"\\/\b\f\n\r\t', "\\/", "gr\195\188n",
        "\226\130\172", "\237\159\191\238\128\128", "\240\144\128\128\244\143\191\191",
    }
    for i, text in ipairs(texts) do
        it(("in UTF-8 comes back as text (%d)"):format(i), function()
            local result = result_of(text)
            assert.is_nil(result.encoding)
            assert.equal(text, result.content)
        end)
    end

    local bytes = {
        { "\255", "/w==" }, { "\255\0", "/wA=" }, { "\255\0\1", "/wAB" },
        { "\128", "gA==" }, -- a lone continuation
        { "\192\175", "wK8=" }, -- an overlong slash
        { "\237\160\128", "7aCA" }, -- half of a surrogate pair
        { "\244\144\128\128", "9JCAgA==" }, -- beyond U+10FFFF
        { "\224\130", "4II=" }, -- cut off
        { "\195\195\188\188", "w8O8vA==" }, -- well-formed only once its middle is taken out
        { "%PDF\226\227\207\211\n", "JVBERuLjz9MK" },
    }
    for _, case in ipairs(bytes) do
        it("that is not UTF-8 comes as base64: " .. case[2], function()
            assert.same({ content = case[2], encoding = "base64", meta = {} }, result_of(case[1]))
        end)
    end

    it("of every byte is encoded", function()
        local all = {}
        for byte = 0, 255 do
            all[byte + 1] = string.char(byte)
        end
        local digits = result_of(table.concat(all)).content
        assert.equal(4 * math.ceil(256 / 3), #digits)
        assert.match("^AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBka", digits)
        assert.equal("3x9fn+AgYKDh", digits:sub(166, 177))
        assert.match("+fr7/P3+/w==", digits, 1, true)
    end)
end)

describe("an output", function()
    it("empties its file and holds each line once", function()
        local path = os.tmpname()
        finally(function() os.remove(path) end)
        for _ = 1, 2 do
            local out = assert(output.open(path))
            assert.is_true(out:write({ url = "u", status = "done" }, 1))
            assert.is_true(out:close())
        end
        local file = assert(io.open(path))
        assert.equal('{"line":1,"url":"u","status":"done"}\n', file:read("*a"))
        file:close()
    end)

    it("says what cannot be opened", function()
        local out, message = output.open("/nowhere/out.jsonl")
        assert.is_nil(out)
        assert.equal("cannot write /nowhere/out.jsonl: No such file or directory", message)
    end)

    it("says when the disk is full", function()
        local out = assert(output.open("/dev/full"))
        finally(function() out:close() end)
        assert.is_true(out:write({ url = "u", status = "done" }, 1))
        local is_flushed, message, code = out:flush()
        assert.is_nil(is_flushed)
        assert.equal("cannot write /dev/full: No space left on device", message)
        assert.equal("output", code)
    end)
end)
