-- SPDX-License-Identifier: MIT
--
-- Measures the server: `luabatch serve` in a process of its own beside a bare server of lua-http
-- that answers as many bytes, both under wrk from this machine. Which figure belongs to which goal
-- stands in docs/performance.md.

local cqueues = require "cqueues"
local goals = require "goals"
local report = require "report"
local socket = require "cqueues.socket"

local HERE = arg[0]:gsub("bench%.lua$", "")
local SECONDS = report.IS_QUICK and 1 or 4
local CONNECTIONS = 16
local N_STREAMS = 1000
local N_TARGETS = 32

local FETCHES = {
    answers = "return function(target) return { content = ('c'):rep(200), "
        .. "meta = { url = target.url } } end",
    sleeps = "return function(_, ctx) ctx:sleep(3600) return nil, 'too late' end",
}

local CONFIG = [[
[batch]
store = "%s/http.db"
fetch = "bench_fetch"
durability = "%s"
jobs_per_caller = 1000000
jobs_total = 1000000
[server]
listen = "127.0.0.1:0"
]]

local function write(path, text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
end

-- Starts a program in the background; gives its number and what `pattern` finds in its log.
local function start(command, log, pattern)
    write(log, "")
    local pipe = assert(io.popen(("%s >'%s' 2>&1 & echo $!"):format(command, log)))
    local pid = pipe:read "l"
    pipe:close()
    for _ = 1, 200 do
        local found = io.open(log):read("a"):match(pattern)
        if found then
            return pid, found
        end
        cqueues.sleep(0.05)
    end
    error("did not start: " .. command)
end

local function stop(pid)
    os.execute(("kill %s; while kill -0 %s 2>/dev/null; do sleep 0.05; done"):format(pid, pid))
end

local function serve(folder, fetch, durability)
    os.execute(("rm -f '%s'/http.db*"):format(folder))
    write(folder .. "/bench_fetch.lua", FETCHES[fetch])
    write(folder .. "/http.toml", CONFIG:format(folder, durability))
    return start(("LUA_PATH='%s/?.lua;'\"$LUA_PATH\" exec luabatch serve -c '%s/http.toml'")
        :format(folder, folder), folder .. "/http.log", "address=(%S+)")
end

local function bare(folder, n_bytes)
    return start(("exec lua5.4 %sbare_http.lua %d"):format(HERE, n_bytes), folder .. "/bare.log",
        "listening on (%S+)")
end

local function read(command)
    local pipe = assert(io.popen(command))
    local text = pipe:read "a"
    pipe:close()
    return text
end

-- Requests a second with a status of 2xx.
local function load(address, options)
    local text = read(("wrk -t1 -c%d -d%ds %s http://%s"):format(CONNECTIONS, SECONDS,
        options or "", address))
    local n = tonumber(text:match "(%d+) requests in")
    local n_refused = tonumber(text:match "Non%-2xx or 3xx responses: (%d+)") or 0
    assert(n_refused == 0, text)
    return n / tonumber(text:match "requests in ([%d.]+)s")
end

local function submit(address, n_targets)
    local targets = {}
    for i = 1, n_targets do
        targets[i] = ('{"url":"https://example.com/some/page-%d"}'):format(i)
    end
    local answer = read(("curl -s -H 'content-type: application/json' -d '{\"targets\":[%s]}'"
        .. " http://%s/v1/batches"):format(table.concat(targets, ","), address))
    return assert(answer:match '"id":"([^"]+)"', answer)
end

-- A finished job beside the same bytes.
local function get(folder)
    report.title("GET of a job of 32 targets, 1/s", "product", "bare lua-http")
    local server, address = serve(folder, "answers", "normal")
    local id = submit(address, N_TARGETS)
    local path = address .. "/v1/batches/" .. id
    read(("curl -s 'http://%s/results?follow=true'"):format(path))
    local n_bytes = #read("curl -s http://" .. path)
    local other, other_address = bare(folder, n_bytes)
    report.row("http get", ("%d bytes"):format(n_bytes), report.compare(function()
        return load(path)
    end, function()
        return load(other_address)
    end), goals.http_get)
    stop(server)
    stop(other)
end

-- New jobs of 32 targets that nothing fetches meanwhile, beside bare answers to the same requests.
local function post(folder)
    report.title("POST of 32 targets, 16 clients, 1/s", "product", "bare lua-http")
    local script = ("-s %spost.lua"):format(HERE)
    for _, durability in ipairs { "normal", "full" } do
        local other, other_address = bare(folder, 137)
        report.row("http post", durability, report.compare(function()
            local server, address = serve(folder, "sleeps", durability)
            local rate = load(address, script)
            stop(server)
            return rate
        end, function()
            return load(other_address, script)
        end), goals.http_post[durability])
        stop(other)
    end
end

local function resident_bytes(pid)
    local status = io.open(("/proc/%s/status"):format(pid)):read "a"
    return tonumber(status:match "VmRSS:%s*(%d+)") * 1024
end

-- Opens event streams and waits for the first event of each.
local function open_streams(address, id, n)
    local host, port = address:match "^(.*):(%d+)$"
    local streams, loop = {}, cqueues.new()
    for i = 1, n do
        loop:wrap(function()
            local stream = assert(socket.connect(host, tonumber(port)))
            stream:setmode("b", "b")
            stream:write(("GET /v1/batches/%s/events HTTP/1.1\r\nHost: %s\r\n\r\n"):format(id,
                address))
            stream:flush()
            repeat
                local line = assert(stream:read "*l")
            until line:find "retry:"
            streams[i] = stream
        end)
    end
    assert(loop:loop())
    return streams
end

local function streams(folder)
    print "\nopen event streams"
    local server, address = serve(folder, "sleeps", "normal")
    local id = submit(address, N_TARGETS)
    open_streams(address, id, 10)
    collectgarbage()
    local before = resident_bytes(server)
    local opened = open_streams(address, id, N_STREAMS)
    local each = (resident_bytes(server) - before) / #opened / 1024
    report.row_alone("http streams", ("one of %d"):format(N_STREAMS), each, "KiB",
        goals.stream)
    for _, stream in ipairs(opened) do
        stream:close()
    end
    stop(server)
end

return { get = get, post = post, streams = streams }
