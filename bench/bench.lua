-- SPDX-License-Identifier: MIT
--
-- Measures the product beside the floor, which does the bare SQLite work of the same rows, and
-- prints a table. Both run in turns, a process and a fresh store each; a figure is the median of
-- its rounds with the lowest and the highest, and a ratio the median of the rounds' own ratios, so
-- that whatever else the machine does hits both sides alike. Goals are printed, never asserted.
--
-- Environment: FLOOR (path of the program), BENCH_QUICK=1 (fewer rows and rounds), BENCH_JSON=FILE
-- (also writes the figures there, for plot.lua), BENCH_DIR (where the stores lie; build/bench),
-- BENCH_ONLY (a word: only the sections with it in their title).

package.path = arg[0]:gsub("bench%.lua$", "?.lua;") .. package.path

local cjson = require "cjson"
local core = require "core_sections"
local fetch = require "fetch_sections"
local http = require "http_sections"
local nginx = require "nginx_sections"
local report = require "report"
local running = require "running"
local wide = require "wide_sections"

local FOLDER = running.FOLDER
local ONLY = os.getenv "BENCH_ONLY" or ""

local function machine()
    local cpu = io.open("/proc/cpuinfo"):read("a"):match "model name%s*: ([^\n]*)" or "?"
    local cores = io.popen("nproc"):read "l"
    local disk = io.popen(("stat -f -c %%T '%s'"):format(FOLDER)):read "l"
    return ("%s, %s cores, %s; %d rounds"):format(cpu, cores, disk, report.ROUNDS)
end

assert(os.execute(("mkdir -p '%s'"):format(FOLDER)))
print(machine())
print "median (lowest–highest); a ratio is the median of the rounds' ratios"
for _, section in ipairs {
    { "drain", core.drain }, { "sizes", core.sizes }, { "submit", core.submit },
    { "start", core.start }, { "depth", core.depth }, { "stored", core.stored },
    { "memory", core.memory }, { "reading", wide.reading }, { "processes", wide.processes },
    { "many", wide.many }, { "http get", http.get }, { "http post", http.post },
    { "http streams", http.streams }, { "fetch html", fetch.html }, { "fetch pages", fetch.pages },
    { "fetch memory", fetch.memory }, { "nginx", nginx.all },
} do
    if section[1]:find(ONLY, 1, true) then
        section[2](FOLDER)
    end
end
running.remove(running.STORE)

local path = os.getenv "BENCH_JSON"
if path and path ~= "" then
    local file = assert(io.open(path, "w"))
    local figures = { machine = machine(), rounds = report.ROUNDS, rows = report.records }
    file:write(cjson.encode(figures), "\n")
    file:close()
end
