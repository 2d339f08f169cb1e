-- SPDX-License-Identifier: MIT
--
-- Measures the built-in pipeline: HTML to Markdown beside the bare parser, small pages of a server
-- on loopback beside a loop of the bare HTTP client, and memory over many targets.

local goals = require "goals"
local report = require "report"
local running = require "running"

local HERE = arg[0]:gsub("bench%.lua$", "")
local BUILD = (os.getenv "FLOOR" or ""):gsub("floor$", "")
local SECONDS = report.IS_QUICK and 1 or 3
local N_PAGES = 200
local N_WORKERS = 16
local FEW, MANY = 1000, report.IS_QUICK and 3000 or 10000
local SHAPES = { "article", "manual", "tables", "thread", "front" }

local function measure(mode, folder, ...)
    local store = folder .. "/fetch.db"
    os.execute(("rm -f '%s' '%s'-*"):format(store, store))
    return running.run(arg[-1] .. " " .. HERE .. "fetching.lua", mode, store, ...)
end

local function make_pages(folder)
    assert(os.execute(("mkdir -p '%s/pages'"):format(folder)))
    running.figures_of(("%s %sfetching.lua pages '%s/pages'"):format(arg[-1], HERE, folder))
    local pipe = io.popen(("cd '%s/pages' && pwd"):format(folder))
    local path = pipe:read "l"
    pipe:close()
    return path
end

local function speed(figures)
    return figures.count / figures.seconds / 1e3
end

local function compare_speed(folder, name, files, goal)
    report.row("fetch html", name, report.compare(function()
        return speed(measure("markdown", folder, SECONDS, files))
    end, function()
        return speed(running.figures_of(("%sfloor_html %g %s"):format(BUILD, SECONDS, files)))
    end), goal)
end

local function html(folder)
    report.title("HTML to Markdown, KB/s", "product", "gumbo")
    local pages, all = make_pages(folder), {}
    for i, shape in ipairs(SHAPES) do
        all[i] = ("%s/%s.html"):format(pages, shape)
        if not report.IS_QUICK then
            compare_speed(folder, shape, all[i])
        end
    end
    compare_speed(folder, "all shapes", table.concat(all, " "), goals.html)
end

-- Runs f(port) while the server runs.
local function with_server(folder, f)
    local pages = make_pages(folder)
    local pipe = assert(io.popen(("exec 2>/dev/null; %sweb '%s'/small-*.html & echo $!; wait $!")
        :format(BUILD, pages)))
    local pid = pipe:read "l"
    local port = assert(tonumber(assert(pipe:read "l"):match "listening on (%d+)"))
    local is_fine, message = pcall(f, port)
    os.execute("kill " .. pid)
    pipe:close()
    assert(is_fine, message)
end

local function pages(folder)
    report.title(("%d small pages, %d workers, ms"):format(N_PAGES, N_WORKERS), "product",
        "client alone")
    with_server(folder, function(port)
        report.row("fetch pages", "from opening to the last outcome", report.compare(function()
            return measure("fetch", folder, port, N_PAGES, N_WORKERS).seconds * 1e3
        end, function()
            return measure("client", folder, port, N_PAGES).seconds * 1e3
        end), goals.pages, "ms")
    end)
end

local function memory(folder)
    print "\nmemory of the pipeline"
    with_server(folder, function(port)
        local figures = measure("memory", folder, port, FEW, MANY, N_WORKERS)
        report.row_alone("fetch memory", ("after %d targets"):format(FEW),
            figures.before / 2 ^ 20, "MiB")
        report.row_alone("fetch memory", ("after %d targets"):format(MANY),
            figures.after / 2 ^ 20, "MiB", goals.pages_memory)
    end)
end

return { html = html, pages = pages, memory = memory }
