-- SPDX-License-Identifier: MIT
--
-- A server whose results a slow reader streams while they come, and a quick one reads at the end:
-- how much memory that took, and how long the log got.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local lfs = require "lfs"
local service = require "spec.support.service"

local stream = {}

local CONFIG = [[
workers = 4
targets_per_job = 100000
max_bytes = "8GiB"
jobs_per_caller = 8
durability = "normal"
store = "%s"]]

-- The most memory that a process ever had, in bytes.
local function peak_bytes(pid)
    local file = assert(io.open(("/proc/%d/status"):format(pid)))
    local kib = file:read("*a"):match "VmHWM:%s*(%d+) kB"
    file:close()
    return kib * 1024
end

local function submit(server, n_results, size)
    local urls = {}
    for i = 1, n_results do
        urls[i] = ("bytes:%d#%d"):format(size, i)
    end
    local path = fresh.path "urls.json"
    local file = assert(io.open(path, "w"))
    file:write('{"targets":[{"url":"', table.concat(urls, '"},{"url":"'), '"}]}')
    file:close()
    local answer = server:curl("/v1/batches",
        ("-H 'content-type: application/json' --data-binary @%s"):format(path))
    assert(answer.status == 202, answer.body)
    return answer.body:match '"id":"([^"]+)"'
end

-- The slow reader: so many bytes a second, until it is told to end.
local function read_slowly(server, id, bytes_per_second)
    local command = "exec curl -sN --limit-rate %d '%s/v1/batches/%s/results?follow=true' >%s &"
        .. " echo $!"
    local pipe = assert(io.popen(command:format(bytes_per_second, server.base, id,
        fresh.path "slow")))
    local pid = pipe:read "*n"
    pipe:close()
    return function() os.execute("kill " .. pid) end
end

--- Streams results of one size to a slow reader while they are fetched, then to a quick one.
-- @treturn table `peak_bytes` of the server, `wal_bytes` at most, `file_bytes`, `n_lines` and
-- `read_bytes` of the quick reader, `slow_bytes` that the slow one had got
function stream.run(n_results, size)
    local store = fresh.path "batch.db"
    local server = service.start { batch = CONFIG:format(store) }
    local id = submit(server, n_results, size)
    local stop = read_slowly(server, id, 1024 * 1024)
    local wal_bytes = 0
    eventually(function()
        wal_bytes = math.max(wal_bytes, lfs.attributes(store .. "-wal", "size") or 0)
        core.poll_fd(-1, 0.05)
        local answer = server:curl("/v1/batches/" .. id .. "?results=false&limit=1")
        return answer.body:match '^{"job":{"id":"[^"]+","status":"done"'
    end, 60 + n_results / 20)
    local pipe = assert(io.popen(("curl -sN '%s/v1/batches/%s/results' | wc -lc"):format(
        server.base, id)))
    local n_lines, read_bytes = pipe:read("*n", "*n")
    pipe:close()
    stop()
    return {
        peak_bytes = peak_bytes(server.pid), wal_bytes = wal_bytes,
        file_bytes = lfs.attributes(store, "size"), n_lines = n_lines, read_bytes = read_bytes,
        slow_bytes = lfs.attributes(fresh.path "slow", "size"),
    }
end

--- Fails unless such a run was read whole and stayed within bounds.
function stream.check(figures, n_results, size)
    local mib = 1024 * 1024
    assert(figures.n_lines == n_results, "lines: " .. figures.n_lines)
    assert(figures.read_bytes > n_results * size, "bytes read: " .. figures.read_bytes)
    assert(figures.slow_bytes < n_results * size / 2, "the slow reader was quick")
    if not os.getenv "SANITIZER" then -- it keeps what was freed
        assert(figures.peak_bytes < 100 * mib, "bytes of memory: " .. figures.peak_bytes)
    end
    assert(figures.wal_bytes < 32 * mib, "bytes of log: " .. figures.wal_bytes)
end

return stream
