-- SPDX-License-Identifier: MIT
--
-- Each rule for a configuration file, held against every field of the table that it is about.

local config = require "batch.config"
local sections = require "batch.sections"
local units = require "batch.units"

local DEFAULTS = config.parse ""

-- Calls visit(field, path of the section, section) for each field of a file that holds a value, but
-- for those of lists.
local function each_field(visit, section, path)
    for _, field in ipairs(sections[section or "file"]) do
        local name = (path and path .. "." or "") .. field.name
        if field.type == "section" and field.only ~= "lua" then
            each_field(visit, field.section, name)
        elseif field.type ~= "list" and field.only ~= "lua" then
            visit(field, path)
        end
    end
end

-- What a file gives in which one field is set.
local function parse_with(path, field, value)
    return config.parse(("\n[%s]\n%s = %s"):format(path, field.name, value))
end

local function value_in(full, path, field)
    for key in path:gmatch "[^.]+" do
        full = full[key]
    end
    return full[field.name]
end

local function refusal_with(path, field, value)
    local full, message = parse_with(path, field, value)
    assert.is_nil(full, ("%s.%s = %s"):format(path, field.name, value))
    return message
end

local function refusal(text)
    local full, message = config.parse(text)
    assert.is_nil(full)
    return message
end

describe("every field of a file", function()
    it("takes its default where it is 0", function()
        each_field(function(field, path)
            local full, warnings = parse_with(path, field, "0")
            assert.same(DEFAULTS, full)
            assert.same({}, warnings)
        end)
    end)

    it("refuses a negative number, with line, name and value", function()
        each_field(function(field, path)
            for _, value in ipairs { "-1", "-0.5", "-inf" } do
                local message = refusal_with(path, field, value)
                local start = ("line 3: %s.%s must be "):format(path, field.name)
                assert.equal(start, message:sub(1, #start))
                assert.equal("got " .. value, message:match "got %S+$")
            end
        end)
    end)

    it("refuses values of another type", function()
        each_field(function(field, path)
            local is_list, is_boolean = field.type == "networks", field.type == "boolean"
            local wrong = { "nan", "1979-05-27T07:32:00Z", "07:32:00", "{}", "{ a = 1 }", "[[]]" }
            wrong[#wrong + 1] = not is_list and "[]" or nil
            wrong[#wrong + 1] = not is_boolean and "true" or '"true"'
            for _, value in ipairs(wrong) do
                assert.matches("^line 3: [%l._]+ must be .+, got ",
                    refusal_with(path, field, value))
            end
        end)
    end)

    it("names the nearest for a mistyped one", function()
        each_field(function(field, path)
            local message = refusal(("[%s]\n\n%sx = 1"):format(path, field.name))
            assert.equal(("line 3: unknown field '%s.%sx', did you mean '%s.%s'?"):format(
                path, field.name, path, field.name), message)
        end)
    end)
end)

describe("a text that is no duration", function()
    it("means the default, with a warning that names field and value", function()
        each_field(function(field, path)
            if field.type == "duration" then
                for _, text in ipairs { "soon", "", "-5s", "5", "1 h", "106752d" } do
                    local full, warnings = parse_with(path, field, '"' .. text .. '"')
                    assert.same(DEFAULTS, full)
                    assert.same({ ('line 3: %s.%s = "%s" is no duration, so the default "%s" holds')
                        :format(path, field.name, text, field.default) }, warnings)
                end
            end
        end)
    end)

    it("is not one that is too long: that is refused", function()
        each_field(function(field, path)
            if field.type == "duration" then
                assert.matches("up to %d+[hd], got ", refusal_with(path, field, '"3651d"'))
                local most = field.max or "3650d"
                local full = assert(parse_with(path, field, '"' .. most .. '"'))
                assert.equal(units.duration(most), value_in(full, path, field))
            end
        end)
    end)
end)

describe("a text that is no size", function()
    local WRONG = { "64MB", "64mib", "1.5GiB", "-1", "0x10", "", "9007199254740993" }

    it("means the default for batch.max_bytes, with a warning", function()
        for _, text in ipairs(WRONG) do
            local full, warnings = config.parse(('[batch]\nmax_bytes = "%s"'):format(text))
            assert.same(DEFAULTS, full)
            assert.same({ ('line 2: batch.max_bytes = "%s" is no size, '
                .. 'so the default "64MiB" holds'):format(text) }, warnings)
        end
    end)

    it("is refused for all other fields", function()
        each_field(function(field, path)
            if field.type == "size" and field.name ~= "max_bytes" then
                for _, text in ipairs(WRONG) do
                    assert.matches("must be a size such as .+, got \"" .. text:gsub("%p", "%%%0"),
                        refusal_with(path, field, '"' .. text .. '"'))
                end
            end
        end)
    end)
end)

describe("a file is refused", function()
    for _, case in ipairs {
        { "a token without a hash", "[[auth.token]]\ncaller = 'a'\nsha256 = 0",
            "line 3: auth.token.sha256 must be the 64 hexadecimal digits of a SHA-256, got 0" },
        { "a token without a caller", ("[[auth.token]]\ncaller = 0\nsha256 = '%064d'"):format(0),
            "line 2: auth.token.caller must be a non-empty string, got 0" },
        { "a list for a table", "[[server]]\nlisten = '127.0.0.1:1'",
            "line 1: server must be a table, got a list" },
        { "an empty list for a table", "\nbatch = []",
            "line 2: batch must be a table, got a list" },
        { "a table for a list", "[auth.token]\n",
            "line 1: auth.token must be a list of tables" },
        { "a list of no tables", "auth.token = [1]", "line 1: auth.token must be a table, got 1" },
        { "what has no near name", "[log]\nzzz = 1",
            "line 2: unknown field 'log.zzz', known are 'level' and 'format'" },
        { "what has one other name", "[auth]\nzzz = 1",
            "line 2: unknown field 'auth.zzz', known is 'token'" },
        { "a name with a line break", '[log]\n"a\\nb" = 1',
            [[line 2: unknown field 'log.a\010b', known are 'level' and 'format']] },
        { "a path with a NUL", '[batch]\nstore = "a\\u0000b"',
            [[line 2: batch.store must be a non-empty string, got "a\000b"]] },
        { "a network with bits behind its prefix", "[fetch]\ndeny = ['fd00::1/8']",
            'line 2: fetch.deny must be a list of networks such as "10.0.0.0/8", '
            .. 'got "fd00::1/8" (its address has bits behind the prefix)' },
        { "a header with a line break", '[fetch]\nuser_agent = "a\\r\\nb: c"',
            "line 2: fetch.user_agent must be a line of text of 1 to 255 bytes, "
            .. [[got "a\013\010b: c"]] },
        { "a body above what a fetch may hold", "[fetch]\nmax_body = '2GiB'",
            'line 2: fetch.max_body must be a size such as "64MiB", or a whole number of bytes, '
            .. 'up to 1GiB, got "2GiB"' },
    } do
        it("for " .. case[1], function()
            assert.equal(case[3], refusal(case[2]))
        end)
    end

    it("with a long value cut between two characters", function()
        local message = refusal("[log]\nlevel = '" .. ("ä"):rep(79) .. "'")
        assert.equal(("ä"):rep(39) .. "…\"", message:match 'got "(.*)$')
    end)
end)
