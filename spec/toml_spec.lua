-- SPDX-License-Identifier: MIT
--
-- TOML: the official conformance files, where they lie beside the checkout, and cases by hand.

local cjson = require "cjson"
local lfs = require "lfs"
local toml = require "batch.toml"

local root = debug.getinfo(1, "S").source:match("^@(.-)[^/]*$")
local conformance = (root == "" and "./" or root) .. "../../shared/toml-test"

local function read_file(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

-- All .toml files below a folder, sorted.
local function toml_files(folder, found)
    found = found or {}
    for name in lfs.dir(folder) do
        local path = folder .. "/" .. name
        if name:find("%.toml$") then
            found[#found + 1] = path
        elseif not name:find("^%.") and lfs.attributes(path, "mode") == "directory" then
            toml_files(path, found)
        end
    end
    table.sort(found)
    return found
end

local function canonical_time(text)
    local seconds, fraction, offset = text:match("^(.*:%d%d)%.(%d+)(.*)$")
    if not seconds then
        return text
    end
    fraction = fraction:gsub("0+$", "")
    return seconds .. (fraction == "" and "" or "." .. fraction) .. offset
end

local function number_of(text)
    local odd = { inf = math.huge, ["+inf"] = math.huge, ["-inf"] = -math.huge }
    return odd[text] or tonumber(text)
end

local function is_float(value)
    return not math.type or math.type(value) == "float"
end

local is_scalar = {
    string = function(value, text) return value == text end,
    bool = function(value, text) return value == (text == "true") end,
    integer = function(value, text)
        return value == tonumber(text) and (not math.type or math.type(value) == "integer")
    end,
    float = function(value, text)
        if text:find("nan") then
            return value ~= value
        end
        return value == number_of(text) and is_float(value)
    end,
}

local function is_time(value, text)
    return type(value) == "table" and canonical_time(tostring(value)) == canonical_time(text)
end

-- Whether a value is what the tagged JSON says.
local function is_expected(expected, value)
    if type(expected.type) == "string" and type(expected.value) == "string" then
        return (is_scalar[expected.type] or is_time)(value, expected.value)
    elseif type(value) ~= "table" then
        return false
    end
    for key, item in pairs(expected) do
        if value[key] == nil or not is_expected(item, value[key]) then
            return false
        end
    end
    for key in pairs(value) do
        if expected[key] == nil then
            return false
        end
    end
    return true
end

local function message_of(text)
    local value, message = toml.parse(text)
    assert.is_nil(value)
    return message
end

describe("TOML's conformance files:", function()
    if not lfs.attributes(conformance, "mode") then
        return pending("toml-test does not lie beside the checkout")
    end

    for _, path in ipairs(toml_files(conformance .. "/valid")) do
        it("reads " .. path:sub(#conformance + 2), function()
            local value = assert(toml.parse(read_file(path)))
            local expected = cjson.decode(read_file((path:gsub("toml$", "json"))))
            assert.is_true(is_expected(expected, value))
        end)
    end

    for _, path in ipairs(toml_files(conformance .. "/invalid")) do
        it("refuses " .. path:sub(#conformance + 2), function()
            assert.matches("^line %d+, column %d+: .", message_of(read_file(path)))
        end)
    end
end)

describe("toml.parse", function()
    it("reads tables, arrays of tables, inline tables and dotted keys", function()
        assert.same({
            title = "a",
            server = { listen = "x:1", limits = { body = 5 } },
            token = { { caller = "alice" }, { caller = "bob", tags = { "x", "y" } } },
            point = { x = 1, y = { z = true } },
        }, (assert(toml.parse [==[
            title = "a"
            point = { x = 1, y.z = true }
            [server]
            listen = 'x:1' # a comment
            limits.body = 5
            [[token]]
            caller = "alice"
            [[token]]
            caller = "bob"
            tags = [ "x", # one
                     "y", ]
        ]==])))
    end)

    it("writes dates and times as RFC 3339", function()
        local value = assert(toml.parse [[
            moment = 1987-07-05t17:45:56.10z
            offset = 1987-07-05 17:45:00-05:30
            here = 1987-07-05 17:45:00
            day = 2024-02-29
            hour = 07:32:00
        ]])
        assert.equal("1987-07-05T17:45:56.10Z", tostring(value.moment))
        assert.equal("1987-07-05T17:45:00-05:30", tostring(value.offset))
        assert.equal("1987-07-05T17:45:00", tostring(value.here))
        assert.equal("2024-02-29", tostring(value.day))
        assert.equal("07:32:00", tostring(value.hour))
        assert.equal(1987, value.moment.year)
    end)

    it("keeps integers exact to 64 bits where the VM has them", function()
        local value = assert(toml.parse [[
            a = 9223372036854775807
            b = -9223372036854775808
            c = 1.0
        ]])
        if math.type then
            assert.equal(math.maxinteger, value.a)
            assert.equal(math.mininteger, value.b)
            assert.equal("float", math.type(value.c))
        end
        assert.matches("64 bits", message_of "a = 9223372036854775808")
        assert.matches("64 bits", message_of "a = 0x8000000000000000")
    end)

    it("reads quotes at the end of a multi-line string", function()
        local value = assert(toml.parse('a = """""two"""""\nb = \'\'\'\'one\'\'\'\'\nc = """"""'))
        assert.same({ a = '""two""', b = "'one'", c = "" }, value)
        assert.equal("line 1, column 14: expected the end of the line",
            message_of 'a = """x""""""')
    end)

    it("tells line and column, counting characters", function()
        assert.equal("line 2, column 5: expected a value", message_of "a = 1\nb = ")
        assert.equal("line 1, column 9: not an escape", message_of 'a = "äöü\\x"')
        assert.equal("line 3, column 1: 'a' is already defined", message_of "a = 1\r\n\r\na = 2")
        assert.equal("line 1, column 7: a string is not closed", message_of 'a = "x')
        assert.equal("line 1, column 5: not a value: 1__0", message_of "a = 1__0")
        assert.equal("line 2, column 3: not UTF-8", message_of "# ok\n# \255")
    end)

    it("tells the line of each key", function()
        local value, lines = toml.parse "a = [\n1,\n]\n[b]\nc.d = 1\n\n[[e]]\n[[e]]\nf = 2"
        assert.equal(1, lines[value].a)
        assert.equal(2, lines[value.a][1])
        assert.equal(4, lines[value].b)
        assert.equal(5, lines[value.b.c].d)
        assert.equal(8, lines[value.e][2])
        assert.equal(9, lines[value.e[2]].f)
    end)

    it("tells arrays from tables, empty ones too", function()
        local value, _, arrays = toml.parse "a = []\nb = {}\n[c]\n[[d]]\ne = [{}]"
        assert.is_true(arrays[value.a] and arrays[value.d] and arrays[value.d[1].e])
        assert.is_nil(arrays[value.b] or arrays[value.c] or arrays[value.d[1]] or arrays[value])
        assert.is_nil(arrays[value.d[1].e[1]])
    end)

    it("refuses values nested too deep instead of overflowing the stack", function()
        local message = message_of("a = " .. ("["):rep(100000))
        assert.equal("line 1, column 105: more than 100 values in one another", message)
    end)
end)
