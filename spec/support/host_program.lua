-- SPDX-License-Identifier: MIT
--
-- A server for specs: the HTTP API on a store, with bad habits if it is told so. Words are
-- NAME=VALUE; prints the URL that it listens on.
--
-- - store: the file; workers fetch what is submitted to it; beside it, in a file whose name ends in
--   .requests, each request is noted once its answer has begun
-- - token: the only one that is welcome; its caller is alice
-- - scheme: http, https or unix (in the store's folder)
-- - prefix: what stands before /v1
-- - cut: breaks each stream off after so many chunks
-- - answer: answers every request with this status, and with body, if that is given

local api = require "batch.api"
local batch = require "batch"
local condition = require "cqueues.condition"
local cqueues = require "cqueues"
local http_headers = require "http.headers"
local http_server = require "http.server"
local notifier = require "batch.notifier"

local MAX_SECONDS = 120

local function fetch(target, ctx)
    if target.url:find "missing" then
        return nil, "404 not found", "look elsewhere"
    elseif target.url:find "slow" and not ctx:sleep(0.1) then
        return nil, "cancelled"
    elseif target.url:find "stuck" and not ctx:sleep(60) then
        return nil, "cancelled"
    elseif target.url:find "bytes" then
        return "\255\0"
    end
    return { content = "of " .. target.url, meta = { status = 200 } }
end

local function check(target)
    return not target.url:find "forbidden" or nil, "not this one"
end

local words = {}
for _, word in ipairs(arg) do
    local name, value = word:match "^(%l+)=(.*)$"
    words[name] = value
end

local runner = assert(batch.new {
    store = words.store, fetch = { fetch = fetch, check = check }, workers = 4,
    durability = "normal", on_restart = "resume",
    jobs_per_caller = 10, targets_per_job = 1000,
})

local served = api.new {
    identify = function(request)
        if words.token and request.header "authorization" ~= "Bearer " .. words.token then
            return nil, "the token is unknown"
        end
        return "alice", "user"
    end,
    max_body = 1024 * 1024,
    settings = {},
}
local waiting = notifier.new(runner, condition.new)
served:attach(runner, waiting)

local function write_body(stream, body)
    if type(body) == "string" then
        return stream:write_chunk(body, true)
    end
    local n_chunks = 0
    for chunk in body do
        stream:write_chunk(chunk, false)
        n_chunks = n_chunks + 1
        if n_chunks == tonumber(words.cut) then
            return stream.connection:close()
        end
    end
    stream:write_chunk("", true)
end

local function note(method, path)
    local file = assert(io.open(words.store .. ".requests", "a"))
    file:write(method, " ", path, "\n")
    file:close()
end

local function fixed_answer()
    return {
        status = words.answer, headers = { location = "http://127.0.0.1:1/" },
        body = words.body or "no JSON",
    }
end

local function answer(_, stream)
    local sent = assert(stream:get_headers())
    local path, query = sent:get(":path"):match "^([^?]*)%??(.*)$"
    if words.prefix then
        path = path:sub(1, #words.prefix) == words.prefix and path:sub(#words.prefix + 1) or "/"
    end
    local response = words.answer and fixed_answer() or served:handle {
        method = sent:get ":method", path = path, query = query ~= "" and query or nil,
        header = function(name) return sent:get(name) end,
        read_body = function() return stream:get_body_as_string() end,
    }
    local headers = http_headers.new()
    headers:append(":status", tostring(response.status))
    for name, value in pairs(response.headers) do
        headers:append(name, value)
    end
    assert(stream:write_headers(headers, false))
    note(sent:get ":method", sent:get ":path")
    write_body(stream, response.body)
end

local function listen()
    local settings = {
        tls = words.scheme == "https", onstream = answer, onerror = function() end,
        host = "127.0.0.1", port = 0,
    }
    if words.scheme == "unix" then
        settings.host, settings.port, settings.path = nil, nil, words.store .. ".sock"
        settings.unlink = true
    end
    local server = assert(http_server.listen(settings))
    assert(server:listen())
    if words.scheme == "unix" then
        return server, "unix:" .. settings.path
    end
    local _, _, port = server:localname()
    return server, ("%s://127.0.0.1:%d"):format(words.scheme or "http", port)
end

local server, url = listen()
print(url)
io.stdout:flush()

local controller = cqueues.new()
controller:wrap(function() assert(server:loop()) end)
controller:wrap(function()
    while true do
        cqueues.poll({ pollfd = runner:fd(), events = "r" }, waiting:dispatch())
    end
end)
local ends_at = cqueues.monotime() + MAX_SECONDS
repeat
    assert(controller:step(0.25))
until cqueues.monotime() > ends_at
