-- SPDX-License-Identifier: MIT
--
-- The files of the example site, made here byte by byte: pages, a PDF, a body in gzip. Knows
-- nothing of requests.

local files = {}

-- PDF -------------------------------------------------------------------------------------------

local function pdf_stream(lines)
    local shown = {}
    for i, line in ipairs(lines) do
        shown[i] = "(" .. line:gsub("[()\\]", "\\%0") .. ") Tj T*"
    end
    local stream = "BT /F1 14 Tf 20 TL 72 720 Td " .. table.concat(shown, " ") .. " ET"
    return ("<< /Length %d >>\nstream\n%s\nendstream"):format(#stream, stream)
end

local function pdf_objects(title, pages)
    local objects, kids = {
        [1] = "<< /Type /Catalog /Pages 2 0 R >>",
        [3] = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        [4] = ("<< /Title (%s) >>"):format(title),
    }, {}
    for i, lines in ipairs(pages) do
        local number = 3 + 2 * i
        kids[i] = ("%d 0 R"):format(number)
        objects[number] = ("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            .. "/Resources << /Font << /F1 3 0 R >> >> >>"):format(number + 1)
        objects[number + 1] = pdf_stream(lines)
    end
    objects[2] = ("<< /Type /Pages /Kids [%s] /Count %d >>"):format(table.concat(kids, " "), #kids)
    return objects
end

--- A PDF: a list of numbered objects, and behind it a table of where each begins.
-- @tparam string title
-- @tparam table pages of each its lines, in ASCII
function files.pdf(title, pages)
    local objects, out, places = pdf_objects(title, pages), "%PDF-1.4\n%\226\227\207\211\n", {}
    for number, object in ipairs(objects) do
        places[number] = ("%010d 00000 n \n"):format(#out)
        out = out .. ("%d 0 obj\n%s\nendobj\n"):format(number, object)
    end
    return out
        .. ("xref\n0 %d\n0000000000 65535 f \n%s"):format(#objects + 1, table.concat(places))
        .. ("trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\n"):format(#objects + 1)
        .. ("startxref\n%d\n%%%%EOF\n"):format(#out)
end

-- gzip ------------------------------------------------------------------------------------------

-- LuaJIT has a library for it, later Luas an operator that LuaJIT cannot even read.
local bxor = rawget(_G, "bit") and bit.bxor or load "local a, b = ... return a ~ b"

local function crc32(bytes)
    local crc = 0xffffffff
    for i = 1, #bytes do
        crc = bxor(crc, bytes:byte(i)) % 2 ^ 32
        for _ = 1, 8 do
            crc = bxor(math.floor(crc / 2), crc % 2 * 0xedb88320) % 2 ^ 32
        end
    end
    return bxor(crc, 0xffffffff) % 2 ^ 32
end

local function little_endian(n)
    local function byte(i)
        return math.floor(n / 256 ^ i) % 256
    end
    return string.char(byte(0), byte(1), byte(2), byte(3))
end

--- The letter "a" over and over as gzip: one literal, then matches of 258 bytes at distance 1, in
-- the fixed code of DEFLATE. Gives at least `length` letters and about a 160th of that in bytes.
function files.gzip(length)
    local matches = math.ceil(math.max(length - 1, 0) / 258)
    local bits = "110" .. "10010001" .. ("1100010100000"):rep(matches) .. "0000000"
    bits = bits .. ("0"):rep(-#bits % 8)
    local deflated = bits:gsub("%d%d%d%d%d%d%d%d", function(byte)
        return string.char(tonumber(byte:reverse(), 2))
    end)
    local text = ("a"):rep(1 + 258 * matches)
    local head = "\31\139\8\0\0\0\0\0\0\255"
    return head .. deflated .. little_endian(crc32(text)) .. little_endian(#text)
end

-- Pages -----------------------------------------------------------------------------------------

--- A page with a title and one paragraph.
function files.page(title, paragraph)
    return ([[<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>%s</title></head>
<body>
<nav><a href="/">Home</a></nav>
<main>
<h1>%s</h1>
<p>%s</p>
</main>
</body>
</html>
]]):format(title, title, paragraph)
end

--- A page as they are: an article, and around it what nobody came for.
files.article = [[
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Two rivers &ndash; The River Almanac</title>
<style>nav { float: left }</style>
<script>track("everything");</script></head>
<body>
<div id="cookie-banner">We value your privacy. <a href="/accept">Accept all 847 cookies</a></div>
<header class="site-header"><a href="/">The River Almanac</a></header>
<nav><ul><li><a href="/">Home</a></li><li><a href="/rivers">Rivers</a></li>
<li><a href="/lakes">Lakes</a></li><li><a href="/shop">Shop</a></li></ul></nav>
<div class="content">
<h1>Two rivers</h1>
<p>The <a href="/pages/1">Rhine</a> rises in the Alps and reaches the North Sea after
<strong>1,233&nbsp;km</strong>. It passes Basel, Strasbourg and Cologne.</p>
<p>The <a href="/pages/2">Elbe</a> rises in the Giant Mountains. It passes Dresden and Hamburg, and
is <em>1,094&nbsp;km</em> long.</p>
<h2>In figures</h2>
<table>
<thead><tr><th>River</th><th>Length in km</th><th>Basin in km²</th></tr></thead>
<tbody><tr><td>Rhine</td><td>1233</td><td>185000</td></tr>
<tr><td>Elbe</td><td>1094</td><td>148268</td></tr></tbody>
</table>
<h2>How to get them</h2>
<ol><li>Take the list:<ul><li>as <a href="/data.json">JSON</a></li>
<li>as <a href="/manual.pdf">a manual</a></li></ul></li><li>Ask it something:</li></ol>
<pre><code class="language-sh">jq '.rivers[].name' data.json
</code></pre>
<blockquote><p>No man ever steps in the same river twice.</p></blockquote>
</div>
<aside class="related"><h2>Related</h2><p><a href="/pages/3">Ten lakes you must see</a></p></aside>
<div style="display: none">Hidden from readers.</div>
<footer>© The River Almanac. <a href="/imprint">Imprint</a></footer>
</body>
</html>
]]

--- A manual of four pages.
files.manual = files.pdf("A manual of rivers", {
    { "A manual of rivers", "In four pages" },
    { "1. Sources", "The Rhine rises in the Alps.", "The Elbe rises in the Giant Mountains." },
    { "2. Lengths", "The Rhine is 1233 km long.", "The Elbe is 1094 km long." },
    { "3. Mouths", "Both end in the North Sea." },
})

files.rivers = [[{"rivers":[{"name":"Rhine","km":1233},{"name":"Elbe","km":1094}]}]]

--- What a gauge wrote.
files.gauge = [[
06:00 level 212 cm
07:00 level 214 cm
08:00 level 219 cm
09:00 WARNING level 251 cm
10:00 level 248 cm
11:00 level 240 cm
12:00 level 233 cm
13:00 level 229 cm
14:00 level 226 cm
15:00 level 224 cm
16:00 level 223 cm
17:00 level 222 cm
18:00 WARNING no signal
19:00 level 221 cm
]]

return files
