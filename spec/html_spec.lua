-- SPDX-License-Identifier: MIT
--
-- A document of HTML: its title, its text, its links, and itself cleaned.

local html = require "batch.html"
local cmark = require "spec.support.cmark"

local function read(source, base)
    return assert(html.read(source, base or "https://example.org/dir/"))
end

describe("a document's title", function()
    it("is <title>, folded, with its entities decoded", function()
        assert.same("a & b", read("<title>\n a &amp;\n\tb </title>").title)
        assert.same("é — x", read("<TITLE>&eacute; &mdash;&nbsp;x</TITLE>").title)
    end)

    it("is og:title or the first heading where that is empty", function()
        local og = "<meta property='og:title' content='Og'>"
        assert.same("T", read("<title>T</title>" .. og).title)
        assert.same("Og", read("<title> </title>" .. og .. "<h1>H</h1>").title)
        assert.same("H x", read("<p>a<h1></h1><h1>H <i>x</i></h1>").title)
        assert.same(nil, read("<p>a").title)
    end)

    it("is cut to 300 bytes between characters", function()
        assert.same(("x"):rep(300), read("<title>" .. ("x"):rep(301) .. "</title>").title)
        assert.same(("x"):rep(299), read("<title>" .. ("x"):rep(299) .. "é</title>").title)
        assert.same(("€"):rep(100), read("<title>" .. ("€"):rep(101) .. "</title>").title)
    end)
end)

describe("a document's text", function()
    it("has paragraphs, lists, code and tables without marks", function()
        local source = "<h1>T</h1><p>a <b>*b*</b> <a href=x>c</a><br>d<ul><li>e<li>f<ol>" ..
            "<li>g</ol></ul><pre>h\n  i</pre><table><tr><th>j<th>k<tr><td>l<p>m<td>n" ..
            "</table><blockquote>o"
        assert.same("T\n\na *b* c\nd\n- e\n- f\n  1. g\n\nh\n  i\n\nj\tk\nl m\tn\n\no\n",
            read(source):text())
    end)

    it("numbers lists from where they say, unless that is no number for a list", function()
        for start, first in pairs { ["7"] = "7", ["-5"] = "-5", ["1e300"] = "1", ["1e400"] = "1",
            nan = "1", ["1.5"] = "1", ["99999999999"] = "1" } do
            local source = ("<ol start='%s'><li>a</ol>"):format(start)
            assert.same(first .. ". a\n", read(source):text())
        end
    end)

    it("leaves out what the Markdown leaves out", function()
        assert.same("a\n", read("<nav>n</nav><p>a<script>s</script>"):text())
        assert.same("2^48 “bytes” 漢(かん)\n",
            read("2<sup>48</sup> <q>bytes</q> <ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>"):text())
    end)
end)

describe("a document's links", function()
    it("are those of the whole page, absolute, in order and once each", function()
        local source = "<nav><a href=/n>N</a></nav><p><a href='a'>A <b>b</b></a> " ..
            "<a href=a>A b</a><a href='a'>other</a><a href=i><img alt=Pic src=x></a>" ..
            "<a href=l aria-label=L></a>" ..
            "<a href='mailto:x@y'>m</a><map><area href=r alt=R></map>"
        assert.same({
            { url = "https://example.org/n", text = "N" },
            { url = "https://example.org/dir/a", text = "A b" },
            { url = "https://example.org/dir/a", text = "other" },
            { url = "https://example.org/dir/i", text = "Pic" },
            { url = "https://example.org/dir/l", text = "L" },
            { url = "mailto:x@y", text = "m" },
            { url = "https://example.org/dir/r", text = "R" },
        }, read(source):links())
    end)

    it("are not what runs, holds data, is hidden or leads nowhere", function()
        local source = "<a href='javascript:x'>a</a><a href='data:,x'>b</a><a name=c>c</a>" ..
            "<a href=d hidden>d</a>"
        assert.same({}, read(source):links())
    end)

    it("follow <base>", function()
        assert.same({ { url = "https://cdn.example/x/y", text = "a" } },
            read("<head><base href='//cdn.example/x/'></head><a href=y>a</a>"):links())
    end)

    it("are resolved as RFC 3986 says", function()
        local known = { g = "/b/c/g", ["./g"] = "/b/c/g", ["g/"] = "/b/c/g/", ["/g"] = "/g",
            ["?y"] = "/b/c/d;p?y", ["g?y"] = "/b/c/g?y", ["#s"] = "/b/c/d;p?q#s", ["."] = "/b/c/",
            [".."] = "/b/", ["../g"] = "/b/g", ["../../g"] = "/g", ["../../../g"] = "/g",
            ["/./g"] = "/g", ["g;x=1/../y"] = "/b/c/y", ["g."] = "/b/c/g.", ["..g"] = "/b/c/..g",
            ["g?y/../x"] = "/b/c/g?y/../x", ["é"] = "/b/c/%C3%A9" }
        for reference, expected in pairs(known) do
            local source = ("<a href='%s'>x</a>"):format(reference)
            assert.same("http://a" .. expected, read(source, "http://a/b/c/d;p?q"):links()[1].url)
        end
    end)
end)

describe("a document cleaned", function()
    it("has the structure and absolute addresses, and nothing that runs or styles", function()
        local source = "<main><h1 onclick=x style='color:red' class=c>T</h1><p>a &lt; b & " ..
            "<a href=x target=_blank>l</a><a href='javascript:x'>j</a>" ..
            "<img src=i onerror=x alt='\"q\"'><script>s</script><font>f</font></main>"
        assert.same('<div><h1>T</h1>\n<p>a &lt; b &amp; ' ..
            '<a href="https://example.org/dir/x">l</a>j' ..
            '<img src="https://example.org/dir/i" alt="&quot;q&quot;">f</p>\n</div>\n',
            read(source):html())
    end)

    it("keeps spans of cells, numbers of items and the language of code", function()
        assert.truthy(read("<table><tr><th colspan=2>a<tr><td>b<td>c</table>"):html()
            :find('<th colspan="2">a</th>', 1, true))
        assert.truthy(read("<ol start=3><li>a</ol>"):html():find('<ol start="3"><li>a', 1, true))
        assert.truthy(read("<pre class=lang-c>a&lt;b</pre>"):html()
            :find('<pre><code class="language-c">a&lt;b</code></pre>', 1, true))
    end)
end)

describe("text in Markdown", function()
    it("stays text, whatever signs it has", function()
        for _, text in ipairs {
            "# a", "###### a", "#", "- a", "-", "--- ", "+ a", "* a", "* * *", "1. a", "12) a",
            "> a", "```", "~~~", "a *b* c", "a _b_ c", "__a__", "a ** b", "[a](b)", "[a]: b",
            "![a](b)", "<b>a</b>", "<!-- a", "a & b &amp; c &#35;", "\\* \\a \\", "`a`", "=== ",
            "a\\", "http://a/b_c_d", "snake_case_name", "2 * 3 < 4", "[ ] a", "| a | b |", "![",
            "*a", "a*", "_a", "~~a~~", "a]( b", "1986. x", "&copy", "<a@b.c>", "<http://a>",
        } do
            local source = text:gsub("&", "&amp;"):gsub("<", "&lt;")
            for _, frame in ipairs { "<p>%s</p>", "<ul><li>%s</ul>", "<p>x<br>%s</p>" } do
                local document = read((frame:gsub("%%s", (source:gsub("%%", "%%%%")))))
                local back = cmark.html(document:markdown())
                assert.same(document:text(), read(back):text())
            end
        end
    end)

    it("has a backslash only where it needs one", function()
        for _, text in ipairs { "snake_case", "2 * 3", "a < b", "a & b", "C:\\dir", "a - b", "x[1]",
            "1.5", "#tag", "-5", "~/bin", "a! (b)" } do
            local source = text:gsub("&", "&amp;"):gsub("<", "&lt;")
            assert.same(text .. "\n", read(source):markdown())
        end
    end)
end)
