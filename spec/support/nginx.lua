-- SPDX-License-Identifier: MIT
--
-- Debian's nginx for specs: masters and workers of the test's own, on free ports of loopback, their
-- files in a folder of the test's own. Only what was started here is ended. One that a killed spec
-- leaves behind is ended by a shell whose standard input ends with the spec.

local cjson = require "cjson"
local config_text = require "spec.support.nginx_config"
local cqueues = require "cqueues"
local cqueues_socket = require "cqueues.socket"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local web = require "spec.support.web"

local unpack = unpack or table.unpack
local SANITIZER = os.getenv "SANITIZER"
-- How many times slower everything is than without a sanitizer.
local SLOWNESS = SANITIZER and 10 or 1

local function read(path)
    local file = io.open(path, "rb")
    local text = file and file:read("*a") or ""
    if file then
        file:close()
    end
    return text
end

local function write(path, text)
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
    return path
end

local function output_of(command)
    local pipe = assert(io.popen(command))
    local text = pipe:read("*a"):gsub("\n$", "")
    pipe:close()
    return text
end

local ROOT = output_of "pwd"
local IS_ROOT = output_of "id -u" == "0"
local BUILD = ROOT .. "/build/" .. (SANITIZER and SANITIZER .. "-" or "") .. "luajit"
-- By its whole path: an upgrade does not look along PATH for the new program.
local PROGRAM = output_of "PATH=$PATH:/usr/sbin:/sbin command -v nginx"

-- The build that nginx loads is LuaJIT's, whichever Lua runs the spec.
local function check_build()
    local core = io.open(BUILD .. "/batch/core.so")
    assert(core, "nginx needs the module for LuaJIT: make LUA=luajit")
    core:close()
end

-- A port of loopback that is free now.
local function free_port()
    local socket = assert(cqueues_socket.listen { host = "127.0.0.1", port = 0 })
    assert(socket:listen())
    local _, _, port = socket:localname()
    socket:close()
    return port
end

-- Processes --------------------------------------------------------------------------------------

-- A shell that has nginx go to the background, and stays to end it when the spec's end of the pipe
-- goes. A master in the foreground could not be upgraded while the process that started it lives.
local SHELL = [[
exec 3<&0 2>/dev/null
cd ${folder}
env -u LUA_PATH -u LUA_CPATH ${variables} ${program} -p ${folder} -c ${folder}/nginx.conf \
    >out 2>err </dev/null 3<&-
echo $? >code
read -r _ <&3
kill -s TERM $(cat nginx.pid nginx.pid.oldbin)
]]

-- The sanitizer's runtime has to be there before nginx's own libraries are. What nginx leaves to
-- the end of its process is no leak of ours.
local function variables()
    if not SANITIZER then
        return ""
    end
    local cc = os.getenv "CC" or "cc"
    local runtime = output_of(("%s -print-file-name=lib%s.so"):format(cc, SANITIZER))
    local leaks = (os.getenv "ASAN_OPTIONS" or "") .. ":detect_leaks=0"
    return ("LD_PRELOAD=%s ASAN_OPTIONS='%s'"):format(runtime, leaks:gsub("^:", ""))
end

local function is_alive(pid)
    local state = read(("/proc/%d/stat"):format(pid)):match "^%d+ %b() (%a)"
    return state ~= nil and state ~= "Z"
end

local function send_signal(name, pid)
    os.execute(("kill -s %s %d 2>/dev/null"):format(name, pid))
end

-- The children of a process.
local function children_of(pid)
    local pids = {}
    for child in read(("/proc/%d/task/%d/children"):format(pid, pid)):gmatch "%d+" do
        pids[#pids + 1] = tonumber(child)
    end
    return pids
end

local Nginx = {}
Nginx.__index = Nginx

local n_servers = 0

--- Starts nginx, and waits until it has gone to the background or has refused to.
-- @tparam table parts of its configuration, see spec/support/nginx_config.lua; `may_raise`: what
-- init_worker raises is no fault of the test
local function launch(parts)
    check_build()
    n_servers = n_servers + 1
    local self = setmetatable({
        folder = fresh.path("nginx" .. n_servers), port = free_port(),
        masters = {}, -- all that were seen
    }, Nginx)
    os.execute("mkdir -m 755 " .. self.folder)
    self:configure(parts)
    local values = { folder = self.folder, variables = variables(), program = PROGRAM }
    local script = write(self.folder .. "/nginx.sh", (SHELL:gsub("%${([%w_]+)}", values)))
    self.pipe = assert(io.popen("sh " .. script, "w"))
    fresh.keep(self)
    self.code = eventually(function() return tonumber(read(self.folder .. "/code")) end,
        10 * SLOWNESS)
    return self
end

--- Starts nginx, and waits until all its workers are there and requests are answered.
local function start(parts)
    local self = launch(parts)
    assert(self.code == 0, "nginx did not start: " .. read(self.folder .. "/err"))
    eventually(function()
        self.pid = self:master()
        return self.pid and #children_of(self.pid) >= (parts.workers or 4)
    end, 10 * SLOWNESS)
    assert(self:get("/hello").body == "hello")
    local raised = self:line_with "init_worker_by_lua error"
    assert(not raised or parts.may_raise, raised)
    return self
end

--- Writes a configuration, which a reload takes.
function Nginx:configure(parts)
    local all = {
        folder = self.folder, port = self.port, root = ROOT, build = BUILD,
        user = IS_ROOT and "root" or nil, is_environment_kept = SANITIZER ~= nil,
    }
    for name, part in pairs(parts) do
        all[name] = part
    end
    write(self.folder .. "/nginx.conf", config_text(all))
end

--- Runs `nginx -t` on the configuration; gives whether it is content, and what it said.
function Nginx:test()
    local said = output_of(("env -u LUA_PATH -u LUA_CPATH %s %s -t -p %s -c %s/nginx.conf 2>&1;"
        .. " echo $?"):format(variables(), PROGRAM, self.folder, self.folder))
    return said:match "\n0$" ~= nil, said
end

--- The process that rules now: of an upgrade, the new one.
function Nginx:master()
    local pid = tonumber(read(self.folder .. "/nginx.pid"))
    if pid then
        self.masters[pid] = true
    end
    return pid
end

--- The processes below the master, other than a new master of an upgrade.
function Nginx:workers(master)
    local pids, new = {}, self:master()
    for _, pid in ipairs(children_of(master or new)) do
        if pid ~= new and is_alive(pid) then
            pids[#pids + 1] = pid
        end
    end
    return pids
end

--- Sends a signal to the master: HUP reloads, QUIT waits for what is in flight, TERM does not.
function Nginx:signal(name)
    send_signal(name, self:master())
end

--- Kills one worker as the kernel does it.
function Nginx:kill(pid)
    send_signal("KILL", pid)
end

--- Reloads, and waits until new workers have started and the old ones have gone.
function Nginx:reload(seconds)
    local old = self:workers()
    self:signal "HUP"
    eventually(function()
        for _, pid in ipairs(old) do
            if is_alive(pid) then
                return false
            end
        end
        return #self:workers() >= #old
    end, seconds)
end

--- Has a new master with new workers take over, as for a new version of nginx, and the old ones end
-- when they are done. pause(seconds) is what waits.
function Nginx:upgrade(pause)
    local old = self:master()
    send_signal("USR2", old)
    repeat
        pause(0.02)
        local new = self:master()
    until new and new ~= old and #self:workers(new) > 0
    send_signal("QUIT", old)
    while is_alive(old) do
        pause(0.02)
    end
end

--- Ends nginx by a signal. A master that does not crash takes its file with its number away.
-- @treturn boolean whether it has ended by itself and in order
-- @treturn number the seconds that it took
function Nginx:finish(signal, seconds)
    local began_at, master = cqueues.monotime(), self:master()
    send_signal(signal, master)
    eventually(function() return not is_alive(master) end, seconds)
    return self:master() == nil, cqueues.monotime() - began_at
end

-- The masters that still live, and their workers. What has another command line is none of ours.
local function all_pids(self)
    local pids = {}
    self:master()
    for master in pairs(self.masters) do
        if read(("/proc/%d/cmdline"):format(master)):find(self.folder, 1, true) then
            for _, pid in ipairs(children_of(master)) do
                pids[#pids + 1] = pid
            end
            pids[#pids + 1] = master
        end
    end
    return pids
end

-- UBSan, beside ASan, prints to nginx's log, but .ci/test looks for that in what a spec prints.
local function print_reports(self)
    for line in self:error_log():gmatch "[^\n]*:%d+:%d+: runtime error: [^\n]*" do
        print(line)
    end
end

--- Ends what still runs. A second call does nothing.
function Nginx:close()
    if not self.pipe then
        return
    end
    local pids = all_pids(self)
    for _, pid in ipairs(pids) do
        if self.masters[pid] then
            send_signal("TERM", pid)
        end
    end
    self.pipe:close()
    self.pipe = nil
    local give_up_at = cqueues.monotime() + 5 * SLOWNESS
    for _, pid in ipairs(pids) do
        while is_alive(pid) and cqueues.monotime() < give_up_at do
            cqueues.poll(0.01)
        end
        if is_alive(pid) then
            send_signal("KILL", pid)
        end
    end
    print_reports(self)
end

-- Requests and the log ---------------------------------------------------------------------------

--- Makes a request; see `spec.support.web`.
function Nginx:request(method, path, body, headers)
    return web.request(self.port, method, path, body, headers)
end

--- Begins a request whose answer is read line by line.
function Nginx:begin(method, path, body, headers)
    return web.begin(self.port, method, path, body, headers)
end

function Nginx:get(path, headers)
    return assert(self:request("GET", path, nil, headers))
end

--- Runs a chunk of Lua in the content phase of some worker; gives what it returns, as JSON tells
-- it. What it raises is raised.
function Nginx:run(code)
    local answer = assert(self:request("POST", "/run", code))
    assert(answer.status == 200, answer.body)
    local values = answer:json()
    if values.raised then
        error(values.raised, 2)
    end
    for i = 1, values.n do
        local value = values[tostring(i)]
        if value ~= cjson.null then
            values[i] = value
        end
    end
    return unpack(values, 1, values.n)
end

--- What nginx has printed at its start.
function Nginx:said()
    return read(self.folder .. "/err")
end

--- What nginx has logged so far.
function Nginx:error_log()
    return read(self.folder .. "/error.log")
end

--- The last line of the log that has the text, or nil.
function Nginx:line_with(text)
    local found
    for line in self:error_log():gmatch("([^\n]*)\n") do
        found = line:find(text, 1, true) and line or found
    end
    return found
end

--- The lines of the log that tell of something wrong, without those that have one of the texts.
function Nginx:complaints(...)
    local lines = {}
    for line in self:error_log():gmatch("([^\n]*)\n") do
        local is_wrong = line:find "%[error%]" or line:find "%[alert%]" or line:find "%[crit%]"
            or line:find "%[emerg%]"
        for _, text in ipairs { ... } do
            is_wrong = is_wrong and not line:find(text, 1, true)
        end
        if is_wrong then
            lines[#lines + 1] = line
        end
    end
    return lines
end

return {
    start = start, launch = launch, free_port = free_port, is_alive = is_alive,
    IS_ROOT = IS_ROOT, SLOWNESS = SLOWNESS,
}
