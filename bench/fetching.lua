-- SPDX-License-Identifier: MIT
--
-- One measurement of the built-in pipeline, in a process of its own, as product.lua does for the
-- rest. fetch_sections.lua starts it.
--
--   fetching.lua pages FOLDER             writes the pages, 100 KiB each, and SMALL small ones
--   fetching.lua markdown STORE SECONDS FILE...    as a worker turns them into Markdown
--   fetching.lua fetch STORE PORT TARGETS WORKERS  seconds from opening to the last outcome
--   fetching.lua client STORE PORT TARGETS         the same with the bare HTTP client
--   fetching.lua memory STORE PORT FEW MANY WORKERS    resident bytes after so many targets

package.path = arg[0]:gsub("fetching%.lua$", "?.lua;") .. package.path

local batch = require "batch"
local core = require "batch.core"
local fetch = require "batch.fetch"
local pages = require "pages"

local SMALL = 20
local LOOPBACK = { "127.0.0.0/8" }

local function report(figures)
    for name, value in pairs(figures) do
        print(("%s %.9g"):format(name, value))
    end
end

local function write(path, text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
end

local modes = {}

function modes.pages(folder)
    for _, name in ipairs(pages.names) do
        write(folder .. "/" .. name .. ".html", pages.make(name))
    end
    for i = 1, SMALL do
        write(("%s/small-%d.html"):format(folder, i), pages.small(i))
    end
end

-- The target's URL is how long, its option which files: the loop runs as a user's fetch would, with
-- the hook that stops it.
local function turn_into_markdown(target)
    local now, html = require("batch.core").now, require "batch.html"
    local texts, count = {}, 0
    for path in target.url:gmatch "/[^ ]+" do
        texts[#texts + 1] = assert(io.open(path)):read "a"
    end
    local began, seconds = now(), tonumber(target.url:match "^%S+")
    repeat
        for _, text in ipairs(texts) do
            assert(html.read(text, "https://example.com/some/page.html")):markdown()
            count = count + #text
        end
    until now() - began >= seconds
    return ("%d %.9g"):format(count, now() - began)
end

function modes.markdown(store, seconds, ...)
    local runner = assert(batch.new { store = store, fetch = turn_into_markdown })
    local id = assert(runner:submit("bench", { { url = seconds .. " "
        .. table.concat({ ... }, " ") } }))
    assert(runner:wait(id).status == "done")
    local _, targets = runner:status(id)
    runner:close()
    local count, took = targets[1].result.content:match "(%S+) (%S+)"
    report { count = tonumber(count), seconds = tonumber(took) }
end

local function url_of(port, number)
    return ("http://127.0.0.1:%d/page-%d"):format(port, number)
end

local function open(store, n_workers)
    return assert(batch.new {
        store = store, workers = n_workers, targets_per_job = 10000, jobs_per_caller = 1000,
        jobs_total = 1000,
        fetch = assert(fetch.configure { allow = LOOPBACK, per_host = n_workers }),
    })
end

-- As many jobs as there are workers, as `luabatch run` deals a list.
local function drain(runner, port, from, upto, n_jobs)
    local lists, ids = {}, {}
    for number = from, upto do
        local job = number % n_jobs + 1
        lists[job] = lists[job] or {}
        table.insert(lists[job], { url = url_of(port, number) })
    end
    for job, list in ipairs(lists) do
        ids[job] = assert(runner:submit("bench", list))
    end
    for _, id in ipairs(ids) do
        local job = assert(runner:wait(id))
        assert(job.status == "done", job.error)
    end
end

function modes.fetch(store, port, n_targets, n_workers)
    local began = core.now()
    local runner = open(store, n_workers)
    drain(runner, port, 1, n_targets, n_workers)
    local seconds = core.now() - began
    runner:close()
    report { seconds = seconds }
end

function modes.client(_, port, n_targets)
    local client = assert(core.http.new { allow = LOOPBACK })
    local began = core.now()
    for number = 1, n_targets do
        assert(client:get(url_of(port, number)).status == 200)
    end
    report { seconds = core.now() - began }
end

local function resident_bytes()
    return tonumber(io.open("/proc/self/status"):read("a"):match "VmRSS:%s*(%d+)") * 1024
end

function modes.memory(store, port, few, many, n_workers)
    local runner = open(store, n_workers)
    drain(runner, port, 1, few, n_workers)
    collectgarbage()
    local before = resident_bytes()
    for from = few + 1, many, few do
        drain(runner, port, from, from + few - 1, n_workers)
    end
    collectgarbage()
    report { before = before, after = resident_bytes() }
    runner:close()
end

local arguments = {}
for i = 2, #arg do
    arguments[i - 1] = math.tointeger(arg[i]) or arg[i]
end
modes[arg[1]](table.unpack(arguments))
