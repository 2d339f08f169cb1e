-- SPDX-License-Identifier: MIT
--
-- Other processes for specs: each runs a chunk of Lua beside this one, on a store in a folder that
-- they share, and tells what it does in files there.

local system = require "system"

local LUA = require "spec.support.interpreter"

-- What every chunk begins with. note() appends a whole line at once: O_APPEND keeps the lines of
-- several processes apart.
local PRELUDE = [[
local folder = ...
local batch, core = require "batch", require "batch.core"
local STORE = folder .. "/batch.db"
local function note(name, line)
    local file = assert(io.open(folder .. "/" .. name, "a"))
    file:write(line, "\n")
    file:close()
end
local function urls(prefix, count)
    local list = {}
    for i = 1, count do
        list[i] = { url = prefix .. i }
    end
    return list
end
local function settings(more)
    local all = { store = STORE, durability = "normal", jobs_per_caller = 1000, jobs_total = 1000,
        targets_per_job = 10000 }
    for name, value in pairs(more) do
        all[name] = value
    end
    return all
end
]]

local Process = {}
Process.__index = Process

--- Sends a signal by its name, KILL unless told otherwise.
function Process:kill(signal)
    os.execute("kill -" .. (signal or "KILL") .. " " .. self.pid)
end

--- Kills it and the processes that it has started, if it was started by setsid: which may not have
-- come that far.
function Process:kill_group()
    os.execute(("kill -KILL -%d 2>/dev/null || kill -KILL %d"):format(self.pid, self.pid))
end

--- Waits for the end. Returns the exit status as a shell counts it (137 after KILL).
function Process:wait()
    if not self.status then
        self.status = tonumber(self.pipe:read("l"))
        self.pipe:close()
    end
    return self.status
end

--- What it has printed, on both streams.
function Process:output()
    return self.folder:read(self.name .. ".out")
end

local Folder = {}
Folder.__index = Folder

--- A new folder for one spec.
local function new_folder()
    local pipe = assert(io.popen("mktemp -d"))
    local path = pipe:read("l")
    pipe:close()
    return setmetatable({ path = path, store = path .. "/batch.db", processes = {} }, Folder)
end

--- Writes a file into the folder and gives its path.
function Folder:write(name, text)
    local path = self.path .. "/" .. name
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    return path
end

--- Runs a command of the shell in a process of its own, behind words that prepare for it.
function Folder:launch(command, preparation)
    local name = "process" .. #self.processes + 1
    local pipe = assert(io.popen(
        ("%s\n%s >%s/%s.out 2>&1 </dev/null & echo $!; wait $!; echo $?"):format(
            preparation or "", command, self.path, name)))
    local process = setmetatable({
        name = name, folder = self, pipe = pipe, pid = pipe:read("l"),
    }, Process)
    self.processes[#self.processes + 1] = process
    return process
end

--- Runs a chunk in a process of its own, with some variables of the shell if they are given.
function Folder:start(code, variables)
    local script = self:write(("process%d.lua"):format(#self.processes + 1), PRELUDE .. code)
    return self:launch(("%s %s %s %s"):format(variables or "", LUA, script, self.path))
end

--- The same with another Lua: words that put its build on the paths, and its program.
function Folder:start_with(paths, lua, code)
    local script = self:write(("process%d.lua"):format(#self.processes + 1), PRELUDE .. code)
    return self:launch(("%s %s %s"):format(lua, script, self.path), paths)
end

function Folder:read(name)
    local file = io.open(self.path .. "/" .. name, "rb")
    local text = file and file:read("a") or ""
    if file then
        file:close()
    end
    return text
end

--- The whole lines of a file that processes note things in.
function Folder:lines(name)
    local lines = {}
    for line in self:read(name):gmatch("([^\n]*)\n") do
        lines[#lines + 1] = line
    end
    return lines
end

--- Kills what still runs and removes the folder.
function Folder:remove()
    for _, process in ipairs(self.processes) do
        if not process.status then
            process:kill()
            process:wait()
        end
    end
    os.execute("rm -rf " .. self.path)
end

--- Asks until the claim holds, for some seconds (30). Returns what it gave last.
local function eventually(claim, seconds)
    local deadline = system.monotime() + (seconds or 30)
    repeat
        local holds = claim()
        if holds then
            return holds
        end
        system.sleep(0.002)
    until system.monotime() > deadline
    return claim()
end

return { folder = new_folder, eventually = eventually, now = system.monotime,
    sleep = system.sleep }
