-- SPDX-License-Identifier: MIT
--
-- HTML as Markdown, element by element.

local html = require "batch.html"
local cmark = require "spec.support.cmark"

local BASE = "https://example.org/dir/page.html?q=1"

local function markdown(source, base)
    return assert(html.read(source, base or BASE)):markdown()
end

-- Each row is HTML and the Markdown that it becomes.
local function check(rows)
    for _, row in ipairs(rows) do
        assert.same(row[2] .. (row[2] ~= "" and "\n" or ""), markdown(row[1]))
    end
end

describe("Markdown of HTML", function()
    it("has headings, paragraphs and rules", function()
        check {
            { "<h1>One</h1><p>a<p>b<h6>Six</h6>c<hr>d",
                "# One\n\na\n\nb\n\n###### Six\n\nc\n\n---\n\nd" },
            { "<h2>A <b>bold</b> <i>one</i></h2>", "## A bold *one*" },
            { "<h2>C #</h2><h2>C#</h2><h2></h2>", "## C \\#\n\n## C#" },
            { "<h2>Two<br>lines</h2>", "## Two lines" },
            { "<div>a<div>b</div>c</div>", "a\n\nb\n\nc" },
            { "<h1>T<a class=headerlink href='#t'>¶</a></h1>", "# T" },
        }
    end)

    it("folds white space and drops what has no width", function()
        check {
            { "<p> a \n\t b&nbsp;&nbsp;c </p>", "a b c" },
            { "<p>soft\u{ad}hyphen zero\u{200b}width</p>", "softhyphen zerowidth" },
            { "<p>a <b> b </b> c</p>", "a **b** c" },
            { "<span>one</span> <span>two</span>", "one two" },
        }
    end)

    it("breaks lines, and paragraphs where two breaks stand", function()
        check {
            { "<p>a<br>b<br/>c<br></p>", "a  \nb  \nc" },
            { "a<br><br>b", "a\n\nb" },
            { "<p><br>a</p>", "a" },
        }
    end)

    it("makes links absolute", function()
        check {
            { "<a href='/x'>a</a>", "[a](https://example.org/x)" },
            { "<a href='y z'>a</a>", "[a](https://example.org/dir/y%20z)" },
            { "<a href='../y?b=2'>a</a>", "[a](https://example.org/y?b=2)" },
            { "<a href='?b'>a</a>", "[a](https://example.org/dir/page.html?b)" },
            { "<a href='#f'>a</a>", "[a](https://example.org/dir/page.html?q=1#f)" },
            { "<a href='//other/z'>a</a>", "[a](https://other/z)" },
            { "<a href=' HTTP://Other.example '>a</a>", "[a](http://Other.example/)" },
            { "<a href='mailto:a@b'>a</a>", "[a](mailto:a@b)" },
            { "<base href='/sub/'><a href='x'>a</a>", "[a](https://example.org/sub/x)" },
            { "<a href='x(1'>a</a>", "[a](https://example.org/dir/x%281)" },
            { "<a href='x_(1)'>a</a>", "[a](https://example.org/dir/x_(1))" },
        }
    end)

    it("leaves relative links as they are when it does not know where the page is", function()
        assert.same("[a](x/y)\n", assert(html.read("<a href='x/y'>a</a>")):markdown())
    end)

    it("makes text of links that lead nowhere", function()
        check {
            { "<p>a <a href='javascript:go()'>b</a> <a href='JAVA\nSCRIPT:x'>c</a></p>", "a b c" },
            { "<a href='data:text/html,x'>d</a> <a name=x>e</a>", "d e" },
            { "<p>a<a href='#top'></a></p>", "a" },
            { "<p>a <a href='/t' aria-label='Twitter'></a></p>",
                "a [Twitter](https://example.org/t)" },
        }
    end)

    it("puts the link of a card at its heading", function()
        check {
            { "<a href=c><div><p>before</p><h3>Card</h3><p>after</p></div></a>",
                "before\n\n### [Card](https://example.org/dir/c)\n\nafter" },
            { "<a href=c><div>one</div><div>two</div></a>",
                "[one](https://example.org/dir/c)\n\ntwo" },
        }
    end)

    it("shows images by what they stand for", function()
        check {
            { "<img src=i.png alt='A [b]'>", "![A \\[b\\]](https://example.org/dir/i.png)" },
            { "<img src=i.png>", "![](https://example.org/dir/i.png)" },
            { "<p>a <img src=i.png alt=''></p>", "a" },
            { "<img src=data:image/gif,x alt=pic>", "pic" },
            { "<img src=data:image/gif,x data-src=/i.png alt=pic>",
                "![pic](https://example.org/i.png)" },
            { "<p>a<img src=p.gif width=1 height=1>", "a" },
            { "<a href=x><img src=i.png alt=b></a>",
                "[![b](https://example.org/dir/i.png)](https://example.org/dir/x)" },
            { "<figure><img src=i alt=x><figcaption>Said.</figcaption></figure>",
                "![x](https://example.org/dir/i)\n\nSaid." },
        }
    end)

    it("marks emphasis where CommonMark will see it", function()
        check {
            { "<p>a <em>b</em> <strong>c</strong> <del>d</del></p>", "a *b* **c** ~~d~~" },
            { "<b>a<b>b</b></b>", "**ab**" },
            { "<b><i>a</i></b>", "***a***" },
            { "<b></b>a<i> </i>b", "a b" },
            { "a<b>'b'</b>c", "a'b'c" },
            { "<p><b>“a”</b>b", "“a”b" },
            { "<i>a</i><b>b</b>", "*a*b" },
            { "<b>a<p>b</p></b>", "**a**\n\n**b**" },
        }
        assert.same("<p><em><strong>a</strong></em></p>\n", cmark.html(markdown "<b><i>a</i></b>"))
    end)

    it("keeps code as it is", function()
        check {
            { "<code>a_b*</code>", "`a_b*`" },
            { "<code>a`b</code>", "``a`b``" },
            { "<code>`</code>", "`` ` ``" },
            { "<kbd>Ctrl</kbd><kbd>C</kbd>", "`CtrlC`" },
            { "<code><a href=q>f()</a></code>", "[`f()`](https://example.org/dir/q)" },
            { "<pre>\n  a\n\n b &lt;c&gt;\n</pre>", "```\n  a\n\n b <c>\n```" },
            { "<pre>a\n```\nb</pre>", "````\na\n```\nb\n````" },
            { "<pre>a<br>b<div>c</div><div>d</div></pre>", "```\na\nb\nc\nd\n```" },
            { "<pre><span class=lineno>1 </span><b>a</b></pre>", "```\na\n```" },
        }
    end)

    it("names the language of code", function()
        for _, source in ipairs {
            "<pre><code class='language-lua'>x</code></pre>",
            "<pre><code class='hljs lang-lua'>x</code></pre>",
            "<pre class='brush: lua'>x</pre>",
            "<pre lang=lua>x</pre>",
            "<div class='highlight highlight-source-lua'><pre>x</pre></div>",
            "<div class='highlight-lua notranslate'><div class=highlight><pre>x</pre></div></div>",
            "<div class=sourceCode><pre class='sourceCode lua'><code>x</code></pre></div>",
        } do
            assert.same("```lua\nx\n```\n", markdown(source))
        end
        check {
            { "<div class=highlight-default><pre>x</pre></div>", "```\nx\n```" },
            { "<div class=language-c><pre>x</pre></div><pre>y</pre>",
                "```c\nx\n```\n\n```\ny\n```" },
        }
    end)

    it("quotes, also in quotes", function()
        check {
            { "<blockquote><p>a<p>b<blockquote>c</blockquote></blockquote>d",
                "> a\n>\n> b\n>\n> > c\n\nd" },
            { "<blockquote><pre>a\n\nb</pre></blockquote>", "> ```\n> a\n>\n> b\n> ```" },
            { "<blockquote>a</blockquote><blockquote>b</blockquote>", "> a\n\n> b" },
        }
    end)

    it("nests lists", function()
        check {
            { "<ul><li>a<ul><li>b<ol><li>c<li>d</ol></ul><li>e</ul>",
                "- a\n  - b\n    1. c\n    2. d\n- e" },
            { "<ol start=9><li>a<li>b<li value=20>c</ol>", "9. a\n10. b\n20. c" },
            { "<ul><li><p>a<p>b<li>c</ul>", "- a\n\n  b\n\n- c" },
            { "<ul><li>a<ol start=3><li>b</ol></ul>", "- a\n\n  3. b" },
            { "<ul><li><ul><li>a</ul></ul>", "- - a" },
            { "<ul><li><li>a</ul>", "- a" },
            { "<ol><li>a<pre>b</pre></ol>", "1. a\n\n   ```\n   b\n   ```" },
            { "<ul><li><hr></ul>", "- ___" },
            { "<ul><li><input type=checkbox checked> a<li><input type=checkbox> b</ul>",
                "- [x] a\n- [ ] b" },
            { "<li>stray", "- stray" },
        }
    end)

    it("keeps lists apart that follow each other", function()
        local source = "<ul><li>a</ul><ul><li>b</ul><ol><li>c</ol><ol><li>d</ol>"
        assert.same("- a\n\n* b\n\n1. c\n\n1) d\n", markdown(source))
        local _, n_lists = cmark.html(markdown(source)):gsub("<[uo]l>", "")
        assert.same(4, n_lists)
    end)

    it("puts definitions below their terms", function()
        check {
            { "<dl><dt>a<dd>b<dd>c<dt>d<dd><p>e<p>f</dl>",
                "**a**\n- b\n- c\n\n**d**\n- e\n\n  f" },
            { "<dl><dt><code>a</code><dd>b</dl>", "**`a`**\n- b" },
        }
    end)

    it("writes tables of data with pipes", function()
        check {
            { "<table><tr><th>A<th>B<tr><td>1<td>2</table>",
                "| A | B |\n| --- | --- |\n| 1 | 2 |" },
            { "<table><tr><td>1<td>2<tr><td>3<td>4</table>",
                "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |" },
            { "<table><caption>C</caption><thead><tr><td>A<td>B<tbody><tr><td>1<td>2</table>",
                "**C**\n\n| A | B |\n| --- | --- |\n| 1 | 2 |" },
            { "<table><tr><th>A|B<th>C<tr><td><code>x|y</code><td>p<br>q<p>r</table>",
                "| A\\|B | C |\n| --- | --- |\n| `x\\|y` | p<br>q<br>r |" },
            { "<table><tr><th colspan=2>A<th>B<tr><td>1<td>2<td>3</table>",
                "| A |  | B |\n| --- | --- | --- |\n| 1 | 2 | 3 |" },
            { "<table><tr><th>A<th>B<tr><td rowspan=2>1<td>2<tr><td>3</table>",
                "| A | B |\n| --- | --- |\n| 1 | 2 |\n|  | 3 |" },
            { "<table><tr><th>A<tr><td>1<td>2</table>",
                "| A |  |\n| --- | --- |\n| 1 | 2 |" },
            { "<ul><li><table><tr><th>A<th>B<tr><td>1<td>2</table></ul>",
                "- | A | B |\n  | --- | --- |\n  | 1 | 2 |" },
        }
    end)

    it("writes tables that GitHub reads back", function()
        local source = "<table><tr><th>A<th>B<tr><td><code>x|y</code><td>a\\|b</table>"
        local read = cmark.github_html(markdown(source)):gsub("\n", "")
        assert.truthy(read:find("<td><code>x|y</code></td><td>a\\|b</td>", 1, true))
    end)

    it("takes tables that only lay out for what is in them", function()
        check {
            { "<table><tr><td>a<td>b</table>", "a\n\nb" },
            { "<table><tr><td><h2>a</h2>x<tr><td>b<td>c</table>", "## a\n\nx\n\nb\n\nc" },
            { "<table><tr><td><table><tr><th>A<th>B<tr><td>1<td>2</table></table>",
                "| A | B |\n| --- | --- |\n| 1 | 2 |" },
            { "<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>",
                "a\n\nb\n\nc\n\nd" },
        }
    end)

    it("writes formulas in code blocks as text", function()
        local document = assert(html.read("<pre>a <math alttext='x^2'><mi>x</mi></math> b</pre>"))
        assert.same("```\na x^2 b\n```\n", document:markdown())
        assert.same("a x^2 b\n", document:text())
        assert.same("<div><pre><code>a x^2 b</code></pre>\n</div>\n", document:html())
    end)

    it("writes formulas as their source, superscripts with a caret, readings in parentheses",
        function()
            check {
                { "<math><semantics><mrow><mi>x</mi></mrow>" ..
                    "<annotation encoding='application/x-tex'>\\frac{x}{2}</annotation>" ..
                    "</semantics></math>", "`\\frac{x}{2}`" },
                { "x<sup>2</sup> and 1<sup>st</sup>", "x^2 and 1st" },
                { "<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>", "漢(かん)" },
                { "<q>a</q>", "“a”" },
            }
        end)
end)
