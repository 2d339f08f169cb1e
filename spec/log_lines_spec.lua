-- SPDX-License-Identifier: MIT
--
-- The lines that servers log: their form, and that nobody's text can break out of it.

local cjson = require "cjson"
local core = require "batch.core"
local log = require "batch.log"
local worker = require "spec.support.worker"

-- What a log made with the options writes for one call, a text for each write.
local function written(options, level, message, fields)
    local lines = {}
    options.write = function(line) lines[#lines + 1] = line end
    log.new(options):write(level, message, fields)
    return lines
end

-- The part of a logfmt line behind the message.
local function fields_of(fields)
    local line = written({}, "info", "m", fields)[1]
    return line:match('^time=%S+ level=info message="m"(.*)\n$')
end

local function json_of(message, fields)
    return written({ format = "json" }, "warn", message, fields)[1]
end

describe("a log line", function()
    it("has time, level, message, and its fields sorted by name", function()
        local lines = written({}, "error", "it broke", { seconds = 0.25, id = "a-1", ok = false })
        assert.equal(1, #lines)
        assert.matches("^time=%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ level=error "
            .. 'message="it broke" id=a%-1 ok=false seconds=0%.25\n$', lines[1])
    end)

    it("has its time in UTC with milliseconds", function()
        local now = core.now
        finally(function() core.now = now end)
        core.now = function() return 1793468710.0625 end
        assert.equal('time=2026-10-31T17:45:10.062Z level=info message="m"\n',
            written({}, "info", "m")[1])
        core.now = function() return 1793468710 end
        assert.equal('{"time":"2026-10-31T17:45:10.000Z","level":"warn","message":"m"}\n',
            json_of "m")
    end)

    it("is one JSON object with the same names, if that is wanted", function()
        local line = json_of("it's late", { n = 3, ok = true, path = "/v1/é" })
        assert.matches('^{"time":"[^"]+","level":"warn","message":"it\'s late",'
            .. '"n":3,"ok":true,"path":"/v1/é"}\n$', line)
    end)

    it("goes to standard error when nobody says where", function()
        local text = worker.program [[require("batch.log").new():write("info", "m", { a = 1 })]]
        assert.matches('^time=%S+ level=info message="m" a=1\n$', text)
    end)
end)

describe("the level of a log", function()
    local ORDER = { "debug", "info", "warn", "error" }

    it("keeps what is below it away", function()
        for least, level in ipairs(ORDER) do
            for rank, other in ipairs(ORDER) do
                assert.equal(rank >= least and 1 or 0, #written({ level = level }, other, "m"))
            end
        end
    end)

    it("is info unless another is set", function()
        local n_lines = 0
        local logger = log.new { write = function() n_lines = n_lines + 1 end }
        logger:write("debug", "m")
        assert.equal(0, n_lines)
        logger:set_level "debug"
        logger:write("debug", "m")
        assert.equal(1, n_lines)
        logger:set_level "error"
        logger:write("warn", "m")
        assert.equal(1, n_lines)
    end)

    it("is one of four, and the format one of two", function()
        local logger = log.new { write = print }
        assert.has_error(function() logger:write("loud", "m") end, "unknown log level 'loud'")
        assert.has_error(function() logger:set_level "loud" end, "unknown log level 'loud'")
        assert.has_error(function() log.new { level = "loud" } end,
            'level must be "debug", "info", "warn" or "error", got "loud"')
        assert.has_error(function() log.new { format = "xml" } end,
            'format must be "logfmt" or "json", got "xml"')
    end)
end)

describe("a value in logfmt", function()
    for value, text in pairs {
        ["plain"] = "plain",
        ["/v1/batches/0198-a:b+c@d_e.f"] = "/v1/batches/0198-a:b+c@d_e.f",
        [""] = '""',
        ["two words"] = '"two words"',
        ["a=b"] = '"a=b"',
        ['say "hi"'] = [["say \"hi\""]],
        ["back\\slash"] = [["back\\slash"]],
        ["a\nb\rc\td"] = [["a\nb\rc\td"]],
        ["\0\27[31m\127"] = [["\u0000\u001b[31m\u007f"]],
        ["é"] = '"é"',
        ["%0A"] = '"%0A"',
        [true] = "true",
        [200] = "200",
        [2 ^ 53] = "9007199254740992",
        [-0.1] = "-0.1",
        [math.huge] = "inf",
    } do
        it(("is written %s"):format(text), function()
            assert.equal(" v=" .. text, fields_of { v = value })
        end)
    end

    it("is its type where it cannot be shown", function()
        local rude = setmetatable({}, { __tostring = function() error "no" end })
        assert.equal(' v="a table"', fields_of { v = rude })
    end)
end)

describe("a stranger's text", function()
    local FORGED = '/\ntime=2026-01-01T00:00:00.000Z level=error message="all is lost"'

    it("cannot forge a line", function()
        for _, format in ipairs { "logfmt", "json" } do
            for _, fields in ipairs { { path = FORGED }, { [FORGED] = 1 } } do
                local line = written({ format = format }, "info", FORGED, fields)[1]
                assert.equal(#line, line:find("\n", 1, true))
                assert.is_nil(line:find("[%z\1-\9\11-\31\127]"))
            end
        end
    end)

    it("cannot forge a field", function()
        assert.equal([[ path="/\" status=200 x=\""]], fields_of { path = [[/" status=200 x="]] })
        assert.equal(" a_b_c_=1", fields_of { ['a b"c='] = 1 })
    end)

    it("comes back from JSON as it was", function()
        local path = "/\0\n\27\"\\é/"
        assert.equal(path, cjson.decode(json_of("m", { path = path })).path)
    end)

    it("is UTF-8 whatever it was", function()
        for bytes, clean in pairs {
            ["\255\254a"] = "��a",
            ["\226\130"] = "��",
            ["\195"] = "�",
            ["\237\160\128"] = "���",
            ["\192\175"] = "��",
        } do
            assert.equal((' v="%s" w=1'):format(clean), fields_of { v = bytes, w = 1 })
            assert.equal(clean, cjson.decode(json_of("m", { v = bytes })).v)
        end
    end)

    it("moves no terminal and no editor by what lies outside ASCII", function()
        local text = "\194\155 \194\133 \226\128\168 \226\128\174 \226\129\166 \226\128\167"
        assert.equal(' v="\\u009b \\u0085 \\u2028 \\u202e \\u2066 \226\128\167"',
            fields_of { v = text })
        local line = json_of("m", { v = text })
        assert.is_nil(line:find("\194\155", 1, true))
        assert.equal(text, cjson.decode(line).v)
    end)
end)

describe("a field", function()
    it("never takes the place of time, level or message", function()
        local fields = { time = 1, level = "x", message = "y", message_ = "z" }
        assert.equal(" level_=x message_=y message__=z time_=1", fields_of(fields))
        local object = cjson.decode(json_of("m", fields))
        assert.same({ "warn", "m", "x", "y", "z", 1 }, { object.level, object.message,
            object.level_, object.message_, object.message__, object.time_ })
    end)

    it("never takes the place of another one", function()
        assert.equal(" a_b=1 a_b_=1", fields_of { ["a b"] = 1, ["a_b"] = 1 })
    end)

    it("has a name, even if it was given none", function()
        assert.equal(" _=2 1=1", fields_of { 1, [""] = 2 })
    end)
end)
