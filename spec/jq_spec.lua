-- SPDX-License-Identifier: MIT
--
-- The option jq: what comes out of a filter, what it may not see, and what is said of its mistakes.

local jq = require "batch.jq"
local batch = require "batch"
local cancelled = require "spec.support.cancelled"
local fresh = require "spec.support.fresh"
local interpreter = require "spec.support.interpreter"
local shell = require "spec.support.shell"

local RIVERS = '{"rivers": [{"name": "Rhine", "km": 1233}, {"name": "Elbe", "km": 1094}]}'
local JSON_HINT = "jq works on JSON content; leave the option out for other content"
local FILTER_HINT = "the filter is not one that jq understands"
local FIT_HINT = "the filter does not fit this content; .name? and // pass over what is not there"

local function refusal(content, filter, ctx)
    local text, message, hint = jq.apply(content, filter, ctx)
    assert.is_nil(text)
    return { message, hint }
end

describe("a jq filter", function()
    local outputs = {
        { ".rivers[1]", '{"name":"Elbe","km":1094}' },
        { ".rivers[].name", '"Rhine"\n"Elbe"' },
        { "[.rivers[].km] | add", "2327" },
        { ".rivers[] | select(.km > 2000)", "" },
        { ".lakes", "null" },
        { '.rivers[0].name + "\\n" | .', '"Rhine\\n"' },
        { "def longest: max_by(.km); .rivers | longest | .name", '"Rhine"' },
        { "# a comment\n.rivers\n| length", "2" },
        { "-1", "-1" },
        { '"\195\169\\u00e9"', '"\195\169\195\169"' },
    }
    for _, output in ipairs(outputs) do
        local filter, expected = output[1], output[2]
        it(("gives compact JSON, one output a line: %s"):format(filter), function()
            assert.same(expected, (jq.apply(RIVERS, filter)))
        end)
    end

    it("is never taken for an option of jq's", function()
        assert.matches("version/0 is not defined", refusal(RIVERS, "--version")[1])
        assert.matches("n/0 is not defined", refusal(RIVERS, "-n")[1])
    end)

    it("runs on each value of JSON Lines", function()
        assert.same("1\n2", (jq.apply('{"a":1}\n{"a":2}\n', ".a")))
    end)

    it("takes megabytes", function()
        local list = {}
        for i = 1, 100000 do
            list[i] = '"' .. ("x"):rep(40) .. '"'
        end
        assert.same("100000", (jq.apply("[" .. table.concat(list, ",") .. "]", "length")))
    end)

    it("rounds what is beyond a double", function()
        assert.same("12345678901234567000", (jq.apply("12345678901234567890", ".")))
    end)

    it("sees no environment", function()
        assert.same("{}\n{}", (jq.apply("null", "env, $ENV")))
    end)

    it("reads no files", function()
        for _, head in ipairs { 'import "package" as $x', 'include "x"', "module {}" } do
            local filter = head .. ' {search: "/usr/share"}; .'
            assert.matches("^jq: syntax error", refusal("null", filter)[1])
        end
        assert.matches("^jq: module not found", refusal('"x"', "modulemeta")[1])
        assert.same('["/dev/null"]', (jq.apply("null", "get_search_list")))
        assert.same("[]", (jq.apply("null", "[inputs]")))
    end)
end)

describe("a jq filter that is wrong", function()
    it("is answered with jq's own words", function()
        assert.same({ "jq: syntax error, unexpected '|', line 1", FILTER_HINT },
            refusal(RIVERS, ".a || .b"))
        assert.same({ "jq: syntax error, unexpected end of filter, line 2", FILTER_HINT },
            refusal(RIVERS, ".a\n| ("))
        assert.same({ "jq: foo/1 is not defined, line 1", FILTER_HINT }, refusal(RIVERS, "foo(1)"))
        assert.same({ 'jq: Cannot index array with string "name"', FIT_HINT },
            refusal(RIVERS, ".rivers.name"))
        assert.same({ "jq: my own words", FIT_HINT }, refusal(RIVERS, 'error("my own words")'))
        assert.same({ "jq: the end", FIT_HINT }, refusal(RIVERS, '"the end" | halt_error(9)'))
        assert.same({ "jq: after all", FIT_HINT }, refusal(RIVERS, 'debug | error("after all")'))
    end)

    it("gives no part of its outputs", function()
        assert.same("jq: enough", refusal(RIVERS, '1, 2, error("enough")')[1])
    end)

    it("is told before jq is asked, where that can be", function()
        assert.is_true(jq.check(".rivers[]"))
        local refusals = {
            ["jq must be a string, got a number"] = 3,
            ["jq must not be blank"] = " \n",
            ["jq must not hold NUL"] = ".a\0.b",
            ["jq must be at most 65536 bytes, got 65537"] = (" "):rep(65536) .. ".",
        }
        for message, filter in pairs(refusals) do
            local is_fine, got, hint = jq.check(filter)
            assert.same({ nil, message }, { is_fine, got })
            assert.matches("^jq takes a filter such as ", hint)
        end
        assert.same("jq must not hold NUL", refusal(RIVERS, ".a\0")[1])
    end)

    it("may be as long as that", function()
        assert.same("null", (jq.apply("null", (" "):rep(65535) .. ".")))
    end)

    it("is stopped when it never ends", function()
        local begun = os.time()
        assert.same({ "jq was stopped after 10 s",
            "the filter may never end; limit(n; …) and first(…) end what goes on" },
            refusal("null", "def f: f; f"))
        assert.is_true(os.time() - begun < 30)
    end)

    it("is stopped when its output never ends", function()
        assert.same({ "jq was stopped: more than 64 MiB of output",
            "limit(n; …) gives the first n outputs" },
            refusal(('"%s"'):format(("x"):rep(2 ^ 20)), "repeat(.)"))
    end)

    it("is stopped when it takes all memory", function()
        assert.same({ "jq ran out of memory",
            "the filter has 512 MiB; take a smaller part of the content" },
            refusal(('"%s"'):format(("x"):rep(2 ^ 20)), "[limit(1000; repeat(.))] | add | length"))
    end)

    it("is stopped with the target's time, and when the fetch is cancelled", function()
        assert.same("timed out", refusal("1", "def f: f; f", { deadline = os.time() + 1 })[1])
        assert.same("cancelled", refusal("1", "def f: f; f", cancelled.ctx())[1])
        assert.same("1", (jq.apply("1", ".", cancelled.not_yet())))
    end)
end)

describe("content that is not JSON", function()
    local contents = {
        ["hello"] = "Invalid numeric literal at EOF at line 1, column 5",
        ['{"a": 1'] = "Unfinished JSON term at EOF at line 1, column 7",
        ['{"a": 1,}'] = "Expected another key-value pair at line 1, column 9",
        ["<html></html>"] = "Invalid numeric literal at EOF at line 1, column 13",
    }
    for content, complaint in pairs(contents) do
        it(("is told by jq: %s"):format(content), function()
            assert.same({ "jq: the content is not JSON: " .. complaint, JSON_HINT },
                refusal(content, "."))
        end)
    end

    it("is told though it begins as JSON", function()
        assert.matches("not JSON", refusal('{"a": 1} and so on', ".a")[1])
    end)

    it("is what is empty, too", function()
        assert.same({ "jq: the content is empty", JSON_HINT }, refusal(" \n", "."))
    end)
end)

describe("jq", function()
    before_each(function()
        fresh.start()
        shell.start()
    end)
    after_each(function()
        shell.finish()
        fresh.finish()
    end)

    it("is named with its package where it is missing", function()
        shell.write("apply.lua", [[print(require("batch.jq").apply("1", "."))]])
        local lua = io.popen("command -v " .. interpreter):read("*l")
        local _, output, errors = shell.run("PATH=/nonexistent " .. lua .. " apply.lua")
        assert.same("nil\tthe program 'jq' is missing\tinstall the package 'jq'\n", output, errors)
    end)

    it("is not waited for by a runner that closes", function()
        local jobs = assert(batch.new {
            store = fresh.path "batch.db",
            fetch = function(target, ctx)
                return require("batch.jq").apply("1", target.url, ctx)
            end,
        })
        local id = assert(jobs:submit("me", { { url = "def f: f; f" } }))
        while jobs:status(id).status == "queued" do
            jobs:wait(id, 0.05)
        end
        local begun = os.time()
        assert.is_true(jobs:close(30))
        assert.is_true(os.time() - begun < 8)
    end)
end)
