-- SPDX-License-Identifier: MIT
--
-- Which lines of lua/ the tests reach. Debian has no package of LuaCov. Named by LUA_INIT it notes,
-- in every interpreter that starts, each line that runs, and writes them to LUA_COVER, a folder, at
-- the end; what is killed writes nothing. Given that folder as argument it reports, file by file:
-- lines reached against lines that luac has code for. The Lua states of worker threads and of nginx
-- begin without LUA_INIT: what runs there alone is not seen, and nginx's part is left out.
--
-- Usage: LUA_INIT=@.ci/lua_cover.lua LUA_COVER=FOLDER lua5.4 …
--        lua5.4 .ci/lua_cover.lua FOLDER [PERCENT TO BE REACHED]

local FOLDER, LEAST = ...
local reached = {} -- [source][line] = true; [source] = false: somebody else's
local getinfo, sethook = debug.getinfo, debug.sethook

local function note(_, line)
    local source = getinfo(2, "S").source
    if reached[source] == nil then
        reached[source] = source:find "[/@]lua/batch" and {} or false
    end
    if reached[source] then
        reached[source][line] = true
    end
end

-- A coroutine has a hook of its own, so whatever makes one is told to set it.
local function hooked(f)
    return function(...)
        sethook(note, "l")
        return f(...)
    end
end

local function hook_coroutines()
    local create, wrap = coroutine.create, coroutine.wrap
    rawset(coroutine, "create", function(f) return create(hooked(f)) end)
    rawset(coroutine, "wrap", function(f) return wrap(hooked(f)) end)
    local has_cqueues, cqueues = pcall(require, "cqueues")
    if has_cqueues then
        local methods = getmetatable(cqueues.new()).__index
        local wrap_in = methods.wrap
        function methods.wrap(cq, f, ...) return wrap_in(cq, hooked(f), ...) end
        package.loaded.cqueues = nil -- as if nobody had asked for it
    end
end

local function write(folder)
    sethook()
    local file = io.open(("%s/%d"):format(folder, io.open "/proc/self/stat":read "*n"), "a")
    for source, lines in pairs(reached) do
        for line in pairs(lines or {}) do
            file:write(source:match "lua/batch.*", " ", line, "\n")
        end
    end
    file:close()
    reached = {}
end

local function begin(folder)
    local exit, finish = os.exit, function() write(folder) end
    rawset(os, "exit", function(...) finish() exit(...) end)
    debug.getregistry().lua_cover = setmetatable({}, { __gc = finish })
    hook_coroutines()
    sethook(note, "l")
end

-- What only closes a block has code that a return before it leaves unreached.
local function is_bare(text)
    text = text:gsub("%f[%w]end%f[%W]", ""):gsub("%f[%w]else%f[%W]", "")
    return text:find "^[%s%)%]},;]*$" or text:find "^%s*%-%-"
end

-- The numbers of the lines of a file that have code.
local function lines_with_code(path)
    local with_code, texts = {}, {}
    for text in io.lines(path) do
        texts[#texts + 1] = text
    end
    for line in io.popen("luac5.4 -l -p " .. path):lines() do
        local n = tonumber(line:match "^%s+%d+%s+%[(%d+)%]")
        with_code[n or 0] = n and texts[n] and not is_bare(texts[n]) or nil
    end
    return with_code
end

local function read_reached(folder)
    for line in io.popen("sort -u " .. folder .. "/*"):lines() do
        local path, number = line:match "^(%S+) (%d+)$"
        reached[path] = reached[path] or {}
        reached[path][tonumber(number)] = true
    end
end

local function print_row(name, n, n_reached, missing)
    local share = n > 0 and 100 * n_reached / n or 100
    print(("%-36s %6d %6d %5.1f %%  %s"):format(name, n, n_reached, share, missing))
    return share
end

local function report(folder, least)
    local n_all, n_reached_all = 0, 0
    read_reached(folder)
    for path in io.popen "find lua -name '*.lua' ! -path '*openresty*' | sort":lines() do
        local n, missing = 0, {}
        for number in pairs(lines_with_code(path)) do
            n = n + 1
            missing[#missing + 1] = not (reached[path] or {})[number] and number or nil
        end
        table.sort(missing)
        n_all, n_reached_all = n_all + n, n_reached_all + n - #missing
        print_row(path, n, n - #missing, table.concat(missing, ","):sub(1, 100))
    end
    return print_row("all", n_all, n_reached_all, "") >= least
end

if FOLDER then
    os.exit(report(FOLDER, tonumber(LEAST or 0)))
elseif os.getenv "LUA_COVER" then
    begin(os.getenv "LUA_COVER")
end
