-- SPDX-License-Identifier: MIT
--
-- Lists of targets: what counts as a line, what a line means, and where a wrong one is.

local list = require "batch.cli.list"

local function write_file(text)
    local path = os.tmpname()
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
    finally(function() os.remove(path) end)
    return path
end

local function collect(arguments)
    local seen = {}
    local is_read, message = list.each(arguments, function(text, number)
        seen[#seen + 1] = { number, text }
        return true
    end)
    assert.is_nil(message)
    assert.is_true(is_read)
    return seen
end

local function url(mode)
    return { url = "http://a/", options = mode and { mode = mode } }
end

describe("the lines of a list", function()
    it("are one URL each, numbered from 1", function()
        local path = write_file("http://a/\nhttp://b/\n")
        assert.same({ { 1, "http://a/" }, { 2, "http://b/" } }, collect { path })
    end)

    it("may be blank or comments, which keep their numbers but are no targets", function()
        local path = write_file("# a list\n\nhttp://a/\n   \n  # indented\nhttp://b/#part\n")
        assert.same({ { 3, "http://a/" }, { 6, "http://b/#part" } }, collect { path })
    end)

    it("may end in CRLF, and the last in nothing", function()
        local path = write_file("http://a/\r\n\r\nhttp://b/")
        assert.same({ { 1, "http://a/" }, { 3, "http://b/" } }, collect { path })
    end)

    it("lose the blanks around them and a byte order mark", function()
        local path = write_file("\239\187\191http://a/ \t\n  http://b/\n")
        assert.same({ { 1, "http://a/" }, { 2, "http://b/" } }, collect { path })
    end)

    it("are numbered through several files and URLs", function()
        local one, two = write_file("http://a/\n#\n"), write_file("http://c/")
        local expected = { { 1, "http://a/" }, { 3, "http://b/" }, { 4, "http://c/" } }
        assert.same(expected, collect { one, "http://b/", two })
    end)

    it("are none in an empty file", function()
        assert.same({}, collect { write_file("") })
    end)
end)

describe("a list that cannot be read", function()
    it("is named when it is missing", function()
        local is_read, message = list.each({ "/nowhere/urls.txt" }, assert)
        assert.is_nil(is_read)
        assert.equal("cannot read /nowhere/urls.txt: No such file or directory", message)
    end)

    it("is taken for a URL without its beginning when it looks like one", function()
        for _, name in ipairs { "example.com", "www.example.com/a", "a.example.org:80" } do
            local message = select(2, list.each({ name }, assert))
            assert.equal("cannot read " .. name .. ": No such file or directory; "
                .. "a URL begins with http:// or https://", message)
        end
        for _, name in ipairs { "urls.txt", "a.b.jsonl", "urls" } do
            local message = select(2, list.each({ name }, assert))
            assert.equal("cannot read " .. name .. ": No such file or directory", message)
        end
    end)

    it("is named when it is a folder", function()
        local is_read, message = list.each({ "/" }, assert)
        assert.is_nil(is_read)
        assert.equal("cannot read /: Is a directory", message)
    end)

    it("ends at the first refused line, which is named as file:line", function()
        local path = write_file("http://a/\n\nhttp://b/\nhttp://c/\n")
        local n_visits = 0
        local is_read, message = list.each({ "http://x/", path }, function(text)
            n_visits = n_visits + 1
            return text ~= "http://b/", "not today"
        end)
        assert.is_false(is_read or false)
        assert.equal(path .. ":3: not today", message)
        assert.equal(3, n_visits)
    end)

    it("names a refused URL of the command line by itself", function()
        local _, message = list.each({ "http://b/" }, function() return nil, "not today" end)
        assert.equal("http://b/: not today", message)
    end)

    it("is a URL of several lines", function()
        local is_read, message = list.each({ "http://a/\nhttp://b/" }, assert)
        assert.is_nil(is_read)
        assert.match("a URL must be one line", message, 1, true)
    end)
end)

describe("a line", function()
    it("is a URL, whatever it holds", function()
        assert.same({ url = "no url at all" }, list.parse("no url at all"))
    end)

    it("that begins with a brace is a target in JSON", function()
        local target = list.parse('{"url":"http://a/","options":{"grep":"x","context":true}}')
        assert.same({ url = "http://a/", options = { grep = "x", context = true } }, target)
    end)

    it("may leave options out or null", function()
        assert.same(url(), list.parse('{"url":"http://a/"}'))
        assert.same(url(), list.parse('{"url":"http://a/","options":null}'))
    end)

    it("takes the defaults only where it says nothing", function()
        local defaults = { mode = "raw" }
        assert.same(url("raw"), list.parse("http://a/", defaults))
        for written, expected in pairs { ['""'] = "raw", null = "raw", ['"text"'] = "text" } do
            local line = ('{"url":"http://a/","options":{"mode":%s}}'):format(written)
            assert.same(url(expected), list.parse(line, defaults))
        end
        assert.same(url(), list.parse("http://a/", {}))
    end)

    local wrong = {
        { '{"url":"http://a/"', "not JSON" },
        { '{"url":"http://a/"} x', "not JSON" },
        { '{"url":"http://a/","options":{"n":NaN}}', "not JSON" },
        { '"http://a/"', "a target must be an object with a url" },
        { '["http://a/"]', "a target must be an object with a url" },
        { '{"url":""}', "url must be a non-empty string" },
        { '{"url":7}', "url must be a non-empty string" },
        { '{"options":{}}', "url must be a non-empty string" },
        { '{"url":null}', "url must be a non-empty string" },
        { '{"url":"http://a/","options":["raw"]}', "options must be an object" },
        { '{"url":"http://a/","options":"raw"}', "options must be an object" },
        { '{"url":"http://a/","optoins":{}}', "unknown field 'optoins'" },
    }
    for _, case in ipairs(wrong) do
        local text, expected = case[1], case[2]
        it(("is refused as %s: %s"):format(text, expected), function()
            local target, message = list.parse(text)
            assert.is_nil(target)
            assert.match(expected, message, 1, true)
        end)
    end
end)
