-- SPDX-License-Identifier: MIT
--
-- A small web site on loopback, for trying things out and for the specs: pages, files, and the bad
-- habits of servers (slow, busy, failing). Needs lua-http; all that it serves is made here.
--
--     lua5.4 examples/site.lua [--port N] [--seconds N] [--scheme https] [--list FILE]
--
-- It says "listening on http://127.0.0.1:PORT", then serves until it is killed, its parent has
-- died, or the seconds (600) are over. --list writes the addresses of the site, one a line, to FILE
-- ("-": standard output). With https the certificate is self-signed.

for _, version in ipairs { "5.3", "5.2", "5.1" } do
    package.path = package.path .. ";/usr/share/lua/" .. version .. "/?.lua"
end

local cqueues = require "cqueues"
local json = require "cjson"
local http_headers = require "http.headers"
local http_server = require "http.server"
local http_util = require "http.util"

local HOST = "127.0.0.1"
local USAGE = "usage: site.lua [--port N] [--seconds N] [--scheme http|https] [--list FILE]\n"

local listed = {
    { "/", "the front page" },
    { "/pages/1", "a page, and two more" },
    { "/pages/2" },
    { "/pages/3" },
    { "/data.json", "a JSON file" },
    { "/document.pdf", "a PDF of one page" },
    { "/latin1.txt", "a text in ISO-8859-1" },
    { "/moved", "a redirect to page 1" },
    { "/slow?seconds=2", "a slow page" },
    { "/busy", "busy twice, then there" },
    { "/missing", "one that is not there" },
    { "/fails", "one that always fails" },
}

-- Files -----------------------------------------------------------------------------------------

local function page(title, paragraph)
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

-- A PDF is a list of numbered objects, and behind it a table of where each begins.
local function pdf(text)
    local stream = ("BT /F1 24 Tf 72 720 Td (%s) Tj ET"):format(text)
    local objects = {
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            .. "/Resources << /Font << /F1 5 0 R >> >> >>",
        ("<< /Length %d >>\nstream\n%s\nendstream"):format(#stream, stream),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    local out, places = "%PDF-1.4\n", {}
    for number, object in ipairs(objects) do
        places[number] = ("%010d 00000 n \n"):format(#out)
        out = out .. ("%d 0 obj\n%s\nendobj\n"):format(number, object)
    end
    return out
        .. ("xref\n0 %d\n0000000000 65535 f \n%s"):format(#objects + 1, table.concat(places))
        .. ("trailer\n<< /Size %d /Root 1 0 R >>\n"):format(#objects + 1)
        .. ("startxref\n%d\n%%%%EOF\n"):format(#out)
end

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

-- The letter "a" over and over as gzip: one literal, then matches of 258 bytes at distance 1, in
-- the fixed code of DEFLATE. Gives at least `length` letters and about a 160th of that in bytes.
local function gzip(length)
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

-- Routes: path → function(query, request) → status, body, headers -------------------------------

local routes = {}
local busy_left = 2 -- times from the start

local function html(title, paragraph)
    return 200, page(title, paragraph), { ["content-type"] = "text/html; charset=utf-8" }
end

local function plain(status, body, extra)
    local headers = extra or {}
    headers["content-type"] = headers["content-type"] or "text/plain; charset=utf-8"
    return status, body, headers
end

routes["/"] = function()
    local items = {}
    for i, row in ipairs(listed) do
        items[i] = ('<a href="%s">%s</a>'):format(row[1], row[1])
    end
    return html("The example site", table.concat(items, " "))
end

routes["/data.json"] = function()
    local rivers = { { name = "Rhine", km = 1233 }, { name = "Elbe", km = 1094 } }
    return 200, json.encode { rivers = rivers }, { ["content-type"] = "application/json" }
end

routes["/document.pdf"] = function()
    return 200, pdf "Hello from a PDF", { ["content-type"] = "application/pdf" }
end

routes["/latin1.txt"] = function()
    local headers = { ["content-type"] = "text/plain; charset=ISO-8859-1" }
    return plain(200, "caf\233 cr\232me\n", headers)
end

routes["/moved"] = function()
    return plain(302, "moved\n", { location = "/pages/1" })
end

routes["/busy"] = function()
    if busy_left > 0 then
        busy_left = busy_left - 1
        return plain(503, "busy\n", { ["retry-after"] = "1" })
    end
    return plain(200, "here at last\n")
end

routes["/fails"] = function()
    return plain(500, "out of order\n")
end

routes["/slow"] = function(query)
    cqueues.sleep(tonumber(query.seconds) or 2)
    return plain(200, "slow but sure\n")
end

routes["/big"] = function(query)
    return plain(200, ("x"):rep(tonumber(query.bytes) or 1024))
end

routes["/gzip"] = function(query)
    local headers = { ["content-encoding"] = "gzip" }
    return plain(200, gzip(tonumber(query.bytes) or 1000), headers)
end

routes["/redirect"] = function(query)
    local n = tonumber(query.n) or 1
    return plain(302, "", { location = n > 1 and ("/redirect?n=%d"):format(n - 1) or "/" })
end

routes["/redirect-to"] = function(query)
    return plain(302, "", { location = query.url })
end

-- The given bytes under the given type: /text?type=text/plain&bytes=%ff
routes["/text"] = function(query)
    return plain(200, query.bytes or "", { ["content-type"] = query.type })
end

routes["/echo"] = function(_, request)
    local fields = {}
    for name, value in request:each() do
        fields[name] = value
    end
    return 200, json.encode(fields), { ["content-type"] = "application/json" }
end

local patterns = {
    { "^/pages/(%d+)$", function(number)
        return html("Page " .. number, "This is page " .. number .. " of the example site.")
    end },
    { "^/status/(%d%d%d)$", function(status, query)
        local headers = { ["retry-after"] = query["retry-after"] }
        return plain(tonumber(status), "status " .. status .. "\n", headers)
    end },
}

local function route(path, query, request)
    if routes[path] then
        return routes[path](query, request)
    end
    for _, row in ipairs(patterns) do
        local capture = path:match(row[1])
        if capture then
            return row[2](capture, query)
        end
    end
    return plain(404, "not found\n")
end

-- Serving ---------------------------------------------------------------------------------------

local function answer(_, stream)
    local request = assert(stream:get_headers())
    local path, query_text = request:get(":path"):match "^([^?#]*)%??([^#]*)"
    local query = {}
    for name, value in http_util.query_args(query_text) do
        query[name] = value
    end
    local status, body, fields = route(path, query, request)
    local headers = http_headers.new()
    headers:append(":status", tostring(status))
    headers:append("content-length", tostring(#body))
    for name, value in pairs(fields) do
        headers:append(name, value)
    end
    assert(stream:write_headers(headers, #body == 0))
    if #body > 0 then
        stream:write_chunk(body, true)  -- a client that leaves early is no fault
    end
end

local function parent()
    local file = io.open "/proc/self/stat" or io.open "/dev/null"
    local line = file:read "*a"
    file:close()
    return line:match "^.*%) %S+ (%d+)"
end

local function parse_arguments(words)
    local arguments = { port = "0", seconds = "600", scheme = "http", list = "" }
    for i = 1, #words, 2 do
        local name = words[i]:match "^%-%-(%l+)$"
        if not arguments[name] or not words[i + 1] then
            io.stderr:write(USAGE)
            os.exit(2)
        end
        arguments[name] = words[i + 1]
    end
    return arguments
end

local function write_list(name, base)
    local file = name == "-" and io.stdout or assert(io.open(name, "w"))
    for _, row in ipairs(listed) do
        if row[2] then
            file:write("# ", row[2], "\n")
        end
        file:write(base, row[1], "\n")
    end
    file:flush()
end

local function main(arguments)
    local server = assert(http_server.listen {
        host = HOST, port = tonumber(arguments.port),
        tls = arguments.scheme == "https",
        onstream = answer,
        onerror = function() end,  -- clients that hang up
    })
    assert(server:listen())
    local _, _, port = server:localname()
    local base = ("%s://%s:%d"):format(arguments.scheme, HOST, port)
    if arguments.list ~= "" then
        write_list(arguments.list, base)
    end
    print("listening on " .. base)
    io.stdout:flush()
    local born_to, ends_at = parent(), cqueues.monotime() + tonumber(arguments.seconds)
    repeat
        assert(server:step(0.25))
    until parent() ~= born_to or cqueues.monotime() > ends_at
end

main(parse_arguments(arg))
