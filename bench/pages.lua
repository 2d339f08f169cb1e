-- SPDX-License-Identifier: MIT
--
-- Pages of about 100 KiB each as they are found on the web, made here: the same ones on each run.
-- Each shape has what such pages have around their content: head, scripts, navigation, footer.

local SIZE = 100 * 1024

local WORDS = {}
for word in ([[time server page request which under answer of the a and to in is that for with as
    on by from this not but what all were when we there can an your each will about up out them
    then many some so would make like into has more write go see number no way could people my
    than first water been call who oil its now find long down day did get come made may part
    result memory storage network thread queue worker limit client history language document
    paragraph don't it's &amp; caf&eacute; na&iuml;ve Größe état 日本語]]):gmatch "%S+" do
    WORDS[#WORDS + 1] = word
end

-- Numbers that are the same everywhere (a linear congruence that doubles hold).
local seed = 1

local function pick(n)
    seed = (seed * 16807) % 2147483647
    return seed % n + 1
end

local function words(n)
    local chosen = {}
    for i = 1, n do
        chosen[i] = WORDS[pick(#WORDS)]
    end
    chosen[1] = chosen[1]:gsub("^%l", string.upper)
    return table.concat(chosen, " ")
end

local function address()
    return ("/%s/%s-%d.html?id=%d&amp;ref=list"):format(WORDS[pick(40)], WORDS[pick(40)],
        pick(1000), pick(100000))
end

local function link(n_words)
    return ('<a class="link" href="%s">%s</a>'):format(address(), words(n_words))
end

-- Sentences, some with emphasis, links, code and notes as authors put them in.
local function prose(n_sentences)
    local sentences = {}
    for i = 1, n_sentences do
        local tail = ({
            " <em>" .. words(2) .. "</em>", " " .. link(3), " <strong>" .. words(1) .. "</strong>",
            " <code>some_name(" .. pick(9) .. ")</code>", " (" .. words(3) .. ")",
            " <sup id=\"r1\"><a href=\"#n1\">[" .. pick(9) .. "]</a></sup>",
            "", "", "", "", "", "",
        })[pick(12)]
        sentences[i] = words(6 + pick(12)) .. tail .. "."
    end
    return table.concat(sentences, "\n")
end

local function code(n_lines)
    local lines = {}
    for i = 1, n_lines do
        lines[i] = ('<span class="k">local</span> <span class="n">%s_%d</span> <span '
            .. 'class="o">=</span> <span class="s">&quot;%s&quot;</span>')
            :format(WORDS[pick(40)], i, WORDS[pick(40)])
    end
    return '<pre><code class="language-lua">' .. table.concat(lines, "\n") .. "</code></pre>"
end

local function list(n_items, make)
    local items = {}
    for i = 1, n_items do
        items[i] = '  <li class="item item-' .. i .. '">' .. make(i) .. "</li>"
    end
    return "<ul>\n" .. table.concat(items, "\n") .. "\n</ul>"
end

local function grid(n_rows)
    local rows = { "<tr><th>name</th><th>kind</th><th>size</th><th>note</th></tr>" }
    for i = 1, n_rows do
        rows[i + 1] = ('<tr class="row"><td>%s</td><td>%s</td><td align="right">%d</td><td>%s</td>'
            .. "</tr>"):format(link(1), words(1), pick(100000), words(4))
    end
    return '<table class="data">\n' .. table.concat(rows, "\n") .. "\n</table>"
end

local function script(n)
    local lines = {}
    for i = 1, n do
        lines[i] = ("window.items.push({id: %d, name: '%s', on: function (e) { return e < %d; }});")
            :format(i, WORDS[pick(40)], pick(100))
    end
    return "<script>\n" .. table.concat(lines, "\n") .. "\n</script>"
end

local shapes = {}

function shapes.article(i)
    return (i % 5 == 1 and "<h2 id=\"s" .. i .. "\">" .. words(4) .. "</h2>\n" or "")
        .. "<p>" .. prose(5) .. "</p>"
        .. (i % 7 == 0 and '\n<figure><img src="/img/' .. i .. '.jpg" alt="' .. words(5)
            .. '"><figcaption>' .. words(8) .. "</figcaption></figure>" or "")
end

function shapes.manual(i)
    return '<section class="section" id="s' .. i .. '"><h3>' .. words(3)
        .. '<a class="headerlink" href="#s' .. i .. '">¶</a></h3>\n<p>' .. prose(3) .. "</p>\n"
        .. code(6) .. "\n" .. list(4, function()
            return prose(1)
        end) .. "<dl><dt><code>" .. words(1) .. "</code></dt><dd><p>" .. prose(1)
        .. "</p></dd></dl></section>"
end

function shapes.tables()
    return "<h2>" .. words(3) .. "</h2>\n<p>" .. prose(2) .. "</p>\n" .. grid(25)
end

function shapes.thread(i)
    return '<div class="comment" id="c' .. i .. '" data-author="u' .. pick(99) .. '"><div '
        .. 'class="comment-head"><img src="/u/' .. pick(99) .. '.png" width="32" height="32">'
        .. '<a class="author" href="/u/' .. pick(99) .. '">' .. words(1) .. "</a> <time>"
        .. pick(24) .. ' hours ago</time></div>\n<div class="comment-body">'
        .. (i % 3 == 0 and "<blockquote><p>" .. prose(1) .. "</p></blockquote>\n" or "")
        .. "<p>" .. prose(2) .. "<br>\n" .. prose(1) .. '</p></div>\n<div class="comment-foot">'
        .. '<button type="button">reply</button> <span>' .. pick(50) .. "</span></div></div>"
end

function shapes.front(i)
    return '<div class="card card--' .. i % 4 .. '"><div class="card__inner"><div '
        .. 'class="card__media"><a href="' .. address() .. '" tabindex="-1"><img loading="lazy" '
        .. 'src="/img/w320/' .. i .. '.jpg" srcset="/img/w320/' .. i .. ".jpg 320w, /img/w640/" .. i
        .. '.jpg 640w" alt="' .. words(4) .. '"></a></div><div class="card__text"><h3 class="card'
        .. '__title">' .. link(6) .. '</h3><p class="card__summary">' .. words(18)
        .. '.</p><span class="card__meta">' .. words(2) .. "</span></div></div></div>"
end

local function menu()
    return list(30, function()
        return link(2)
    end)
end

local function page(name)
    local parts = {
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
        words(5), "</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n<style>",
        (".a { color: red; margin: 0 auto }\n"):rep(40), "</style>\n", script(40),
        '</head>\n<body class="page"><header class="site"><nav>', menu(), "</nav></header>\n",
        '<div id="content" class="container"><h1>', words(5), "</h1>\n",
    }
    local tail = "</div>\n<aside class=\"sidebar\">" .. menu() .. "</aside>\n<footer><p>"
        .. words(20) .. "</p>" .. menu() .. "</footer>\n" .. script(60) .. "</body></html>\n"
    local size, i = #table.concat(parts) + #tail, 0
    while size < SIZE do
        i = i + 1
        local part = shapes[name](i) .. "\n"
        parts[#parts + 1] = part
        size = size + #part
    end
    parts[#parts + 1] = tail
    return table.concat(parts)
end

--- The names of the shapes, in a fixed order.
local names = { "article", "manual", "tables", "thread", "front" }

local function make(name)
    seed = 1
    return page(name)
end

--- A small page of about 2 KiB.
local function small(number)
    seed = number * 7919 % 2147483646 + 1
    return "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>" .. words(4)
        .. "</title></head><body><nav>" .. list(5, function()
            return link(1)
        end) .. "</nav><article><h1>" .. words(4) .. "</h1><p>" .. prose(4) .. "</p><p>"
        .. prose(4) .. "</p></article></body></html>\n"
end

return { names = names, make = make, small = small }
