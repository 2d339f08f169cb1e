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

package.path = (arg[0]:match "^.*/" or "./") .. "?.lua;" .. package.path

local cqueues = require "cqueues"
local files = require "site.files"
local http_headers = require "http.headers"
local http_server = require "http.server"
local http_util = require "http.util"
local json = require "cjson"
local model = require "site.model"

local HOST = "127.0.0.1"
local USAGE = "usage: site.lua [--port N] [--seconds N] [--scheme http|https] [--list FILE]\n"

local listed = {
    { "/", "the front page" },
    { "/pages/1", "a page, and two more" },
    { "/pages/2" },
    { "/pages/3" },
    { "/data.json", "a JSON file" },
    { "/article", "an article in the middle of a page" },
    { "/manual.pdf", "a PDF of four pages" },
    { "/gauge.log", "a log" },
    { "/latin1.txt", "a text in ISO-8859-1" },
    { "/moved", "a redirect to page 1" },
    { "/slow?seconds=2", "a slow page" },
    { "/busy", "busy twice, then there" },
    { "/missing", "one that is not there" },
    { "/gone", "one that is gone, but for its copy in the archive" },
    { "/fails", "one that always fails" },
}

-- Routes: path → function(query, request, stream) → status, body, headers -----------------------

local routes = {}
local n_asked, n_present = {}, 0

local function html(title, paragraph)
    return 200, files.page(title, paragraph), { ["content-type"] = "text/html; charset=utf-8" }
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

routes["/article"] = function()
    return 200, files.article, { ["content-type"] = "text/html; charset=utf-8" }
end

routes["/data.json"] = function()
    return 200, files.rivers, { ["content-type"] = "application/json" }
end

routes["/manual.pdf"] = function()
    return 200, files.manual, { ["content-type"] = "application/pdf" }
end

routes["/gauge.log"] = function()
    return plain(200, files.gauge)
end

routes["/latin1.txt"] = function()
    local headers = { ["content-type"] = "text/plain; charset=ISO-8859-1" }
    return plain(200, "caf\233 cr\232me\n", headers)
end

routes["/moved"] = function()
    return plain(302, "moved\n", { location = "/pages/1" })
end

-- Whether a path was asked for less than three times; each ?key= counts for itself.
local function is_early(path, query)
    local name = path .. (query.key or "")
    n_asked[name] = (n_asked[name] or 0) + 1
    return n_asked[name] <= 2
end

routes["/busy"] = function(query)
    if is_early("/busy", query) then
        return plain(503, "busy\n", { ["retry-after"] = "1" })
    end
    return plain(200, "here at last\n")
end

routes["/stumbles"] = function(query)
    return plain(is_early("/stumbles", query) and 502 or 200, "on its feet\n")
end

-- How many of these are being answered at once.
routes["/crowd"] = function(query)
    n_present = n_present + 1
    local n_seen = n_present
    cqueues.sleep(tonumber(query.seconds) or 0.1)
    n_seen = math.max(n_seen, n_present)
    n_present = n_present - 1
    return plain(200, tostring(n_seen))
end

routes["/gone"] = function()
    return plain(410, "gone\n")
end

routes["/v1/chat/completions"] = function(_, _, stream)
    local answer = model.answer(stream:get_body_as_string())
    return 200, answer, { ["content-type"] = "application/json" }
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
    return plain(200, files.gzip(tonumber(query.bytes) or 1000), headers)
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
    -- An archive, which leads from the newest copy's address to that copy.
    { "^/archive/2id_/(.+)$", function(url)
        return plain(302, "", { location = "/archive/20260102030405id_/" .. url })
    end },
    { "^/archive/%d+id_/.+/([^/]+)$", function(name)
        if name == "never-kept" then
            return plain(404, "no copy\n")
        end
        return html("The page as it was", "This is the archived copy of " .. name .. ".")
    end },
    { "^/status/(%d%d%d)$", function(status, query)
        local headers = { ["retry-after"] = query["retry-after"] }
        return plain(tonumber(status), "status " .. status .. "\n", headers)
    end },
}

local function route(path, query, request, stream)
    if routes[path] then
        return routes[path](query, request, stream)
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
    local status, body, fields = route(path, query, request, stream)
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
