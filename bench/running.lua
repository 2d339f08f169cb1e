-- SPDX-License-Identifier: MIT
--
-- Runs the programs of a bench: product.lua and the floor, a process each, on stores that are made
-- anew. Environment: as in bench.lua.

local FOLDER = os.getenv "BENCH_DIR" or "build/bench"
local PRODUCT = arg[-1] .. " " .. arg[0]:gsub("bench%.lua$", "product.lua")
local FLOOR = assert(os.getenv "FLOOR", "FLOOR must name the floor's program (use make bench)")
local SUBMITTING = FLOOR:gsub("floor$", "submitting")
local STORE, DEEP = FOLDER .. "/bench.db", FOLDER .. "/deep.db"

local function remove(path)
    os.execute(("rm -f '%s' '%s'-* '%s'.*"):format(path, path, path))
end

-- On the disk before it is used: what is still to be written would slow down what comes next.
local function copy(from, to)
    remove(to)
    assert(os.execute(("cp '%s' '%s' && sync '%s'"):format(from, to, to)))
end

-- What a command prints as lines of a name and a number.
local function figures_of(command)
    local pipe = assert(io.popen(command))
    local figures = {}
    for name, value in pipe:read("a"):gmatch "(%S+) (%S+)" do
        figures[name] = tonumber(value)
    end
    assert(pipe:close(), "failed: " .. command)
    return figures
end

local function run(program, mode, store, ...)
    return figures_of(table.concat({ program, mode, "'" .. store .. "'", ... }, " "))
end

local function run_fresh(program, mode, ...)
    remove(STORE)
    return run(program, mode, STORE, ...)
end

local function rate(figures)
    return figures.count / figures.seconds
end

return {
    FOLDER = FOLDER, PRODUCT = PRODUCT, FLOOR = FLOOR, SUBMITTING = SUBMITTING, STORE = STORE,
    DEEP = DEEP, remove = remove, copy = copy, figures_of = figures_of, run = run,
    run_fresh = run_fresh, rate = rate,
}
