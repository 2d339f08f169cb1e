-- SPDX-License-Identifier: MIT
--
-- Documents that were not meant to be read: deep, long, broken. Each ends in an answer or a clear
-- error, soon.

local core = require("batch.core").html
local html = require "batch.html"
local socket = require "cqueues.socket"

local HINT = "mode 'raw' gives the bytes as they are"

-- All that can be made of a document, which must be made in time.
local function read_all(source)
    local start = os.clock()
    local document, message, hint = html.read(source, "https://example.org/")
    if document then
        document:markdown()
        document:text()
        document:html()
        document:links()
    end
    assert.is_true(os.clock() - start < 20)
    return document, message, hint
end

describe("a hostile document", function()
    it("may be as deep as 10,000 elements", function()
        for tag, depth in pairs { ["<div>"] = 10000, ["<span>"] = 10000, ["<blockquote>"] = 10000,
            ["<b>"] = 5000, ["<ul><li>x"] = 5000, ["<table><tr><td>x"] = 5000,
            ["<dl><dd>"] = 2000, ["<a href=x><p>x"] = 2000, ["<q>"] = 5000, ["<code>x"] = 5000,
            ["<h1><div>x"] = 2000 } do
            local document = read_all(tag:rep(depth) .. "the end")
            assert.truthy(document:markdown():find("the end", 1, true))
        end
    end)

    it("nests no deeper in Markdown than anybody could read", function()
        local document = read_all(("<ul><li>a"):rep(1000))
        for line in document:markdown():gmatch("[^\n]+") do
            assert.is_true(#line < 100)
        end
    end)

    it("is refused when it takes too long to parse", function()
        local tree, message = core.parse(("<div>"):rep(20000), { max_seconds = 0.05 })
        assert.same(nil, tree)
        assert.same("the document is too deeply nested or too malformed to be parsed in time",
            message)
    end)

    it("is refused when it has too many elements or takes too much memory", function()
        local refusal = { nil, "the document has too many elements", "invalid" }
        assert.same(refusal, { core.parse(("<p>x"):rep(100), { max_nodes = 50 }) })
        assert.same(refusal, { core.parse(("<p>x"):rep(10000), { max_bytes = 1e6 }) })
    end)

    it("is given up when its fetch ends", function()
        local near, far = socket.pair()
        far:xwrite("x", "bn")
        local options = { cancel_fd = near:pollfd() }
        assert.same({ nil, "cancelled", "closed" },
            { core.parse(("<p>x"):rep(10000), options) })
        near:close()
        far:close()
    end)

    it("is refused with a hint", function()
        local parse = core.parse
        finally(function()
            core.parse = parse
        end)
        core.parse = function(source, limits)
            limits.max_nodes = 10
            return parse(source, limits)
        end
        assert.same({ nil, "the document has too many elements", HINT },
            { html.read(("<p>x"):rep(100)) })
    end)

    it("may have 100,000 attributes", function()
        local attributes = {}
        for i = 1, 100000 do
            attributes[i] = ("a%d='%d'"):format(i, i)
        end
        local source = "<p " .. table.concat(attributes, " ") .. ">x</p><p>y > z</p>"
        assert.same("x\n\ny > z\n", read_all(source):markdown())
    end)

    it("loses nothing to that rule, whatever looks like a tag with too many", function()
        local many = (" x"):rep(600)
        for _, harmless in ipairs {
            "<script>for(i=0;i<n;i++){%s}</script>", "<!-- i<n %s-->", "<style>a<b%s</style>",
            "<textarea>a<b%s</textarea>", "<SCRIPT src=a>a<b%s</scripts></SCRIPT >",
            "<div title= \"%s\"></div>", "<div title='%s'></div>", "<br" .. ("\n"):rep(600) .. ">",
        } do
            local source = harmless:gsub("%%s", many) .. "<p>there</p>"
            assert.same("there\n", read_all(source):markdown())
        end
        assert.truthy(read_all("<p>1 < 2" .. many .. " there</p>"):markdown():find "there")
    end)

    it("may be broken anywhere", function()
        local whole = "<!DOCTYPE html><html><head><title>T</title></head><body class='a'>" ..
            "<h1>H</h1><p>a &amp; <a href=\"x\">b</a><table><tr><td>c</table>" ..
            "<pre>d</pre><!-- e --></body>"
        for stop = 0, #whole do
            assert.truthy(read_all(whole:sub(1, stop)))
        end
    end)

    it("may hold NUL and bytes that are no UTF-8", function()
        assert.same("ab", (read_all("<p>a\0b"):markdown():gsub("[\n\239\191\189]", "")))
        assert.truthy(read_all(("\255\254<\0>\192\128&#0;&#xffffff;"):rep(1000)))
    end)

    it("may consist of one sign alone", function()
        for _, sign in ipairs { "<", ">", "&", "*", "_", "[", "]", "`", "\\", "~", " ", "\n", "</",
            "<!--", "<br>", "<p>", "<li>", "&nbsp;", "a<", "<a href=", "<table>", "<svg>" } do
            assert.truthy(read_all(sign:rep(50000)))
        end
    end)

    it("may have long runs of white space where it counts", function()
        local run = (" "):rep(1000000)
        for _, frame in ipairs { "<p>a%sb", "<pre>a%sb</pre>", "<a href='a%sb'>c</a>",
            "<title>a%sb</title>", "<code>a%sb</code>", "<p class='a%sb'>c",
            "<table><tr><th>a<th>b<tr><td><pre>|%s|</pre><td>c</table>" } do
            assert.truthy(read_all((frame:gsub("%%s", run))))
        end
    end)

    it("may claim cells without end", function()
        local row = "<tr><th colspan=1000000>a<td rowspan=1000000>b"
        assert.is_true(#read_all("<table>" .. row:rep(5000)):markdown() < 2000000)
    end)

    it("leaves no memory behind, whether it is read or refused", function()
        local source = ("<p>some text"):rep(20000)
        local function resident()
            local pages = io.open("/proc/self/statm"):read("a"):match("^%d+ (%d+)")
            return tonumber(pages) * 4096
        end
        local function read_often()
            for _ = 1, 20 do
                assert.truthy(core.parse(source))
                assert.falsy(core.parse(source, { max_nodes = 30000 }))
            end
            collectgarbage()
        end
        read_often()
        local before = resident()
        read_often()
        -- Each of the forty takes 8 MB while it is parsed.
        assert.is_true(resident() - before < 60e6)
    end)
end)
