-- SPDX-License-Identifier: MIT
--
-- Measures how fast a page becomes Markdown, in one thread, beside gumbo's parsing of the same
-- bytes and nothing more. The page is made here: prose, links, lists, code, a table, navigation.

local html = require "batch.html"
local report = require "report"

local FLOOR = os.getenv "FLOOR"
local TIMES = report.IS_QUICK and 10 or 100 -- that a page is read in a round

local SECTION = [[
<section id="part%d"><h2>Part %d<a class="headerlink" href="#part%d">¶</a></h2>
<p>Some <em>words</em> about <a href="/topic/%d">a topic</a>, with <code>code_of(it)</code> in the
middle and <strong>more of it</strong> than needed &mdash; as pages have. Then a plain sentence
follows that is rather longer than the others, for most of the text on most pages is plain.</p>
<ul><li>one item</li><li>another <a href="other.html?x=%d&amp;y=2">with a link</a></li></ul>
<div class="highlight"><pre><code class="language-lua"><span class="k">local</span>
<span class="n">x</span> = <span class="mi">%d</span></code></pre></div>
<table><tr><th>name</th><th>value</th></tr><tr><td>n</td><td>%d</td></tr></table></section>
]]

local function page()
    local parts = { "<html><head><title>A page</title></head><body><nav><a href='/'>Home</a></nav>",
        "<main><h1>A page</h1>" }
    for i = 1, 100 do
        parts[#parts + 1] = SECTION:gsub("%%d", tostring(i))
    end
    parts[#parts + 1] = "</main><footer>Imprint</footer></body></html>"
    return table.concat(parts)
end

local function kilobytes_a_second(bytes, seconds)
    return bytes / seconds / 1000
end

local function product(text)
    local began = os.clock()
    for _ = 1, TIMES do
        assert(html.read(text, "https://example.org/")):markdown()
    end
    return kilobytes_a_second(#text * TIMES, os.clock() - began)
end

local function floor(path)
    local pipe = assert(io.popen(("%s html '%s' %d"):format(FLOOR, path, TIMES)))
    local count, seconds = pipe:read("a"):match "count (%d+)\nseconds ([%d.]+)"
    assert(pipe:close())
    return kilobytes_a_second(tonumber(count), tonumber(seconds))
end

local function run(folder)
    local text, path = page(), folder .. "/page.html"
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
    report.title("HTML to Markdown, kB/s", "product", "gumbo alone")
    report.row("html", ("a page of %d kB"):format(#text // 1000), report.compare(function()
        return product(text)
    end, function()
        return floor(path)
    end), "20 000")
    os.remove(path)
end

return { run = run }
