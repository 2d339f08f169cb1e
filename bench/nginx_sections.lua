-- SPDX-License-Identifier: MIT
--
-- Measures batch inside of a real nginx (bench/nginx.conf): its HTTP API beside a bare answer in
-- Lua, its draining beside light threads that fetch the same pages without it, and its memory. Each
-- round of draining has an nginx and a store of its own, so that nothing is left of the other side.

local cqueues = require "cqueues"
local goals = require "goals"
local report = require "report"
local socket = require "cqueues.socket"

local HERE = arg[0]:gsub("bench%.lua$", "")
local CORE = "build/luajit/batch/core.so"
local MODULES = "/usr/lib/nginx/modules"
local SECONDS = report.IS_QUICK and 1 or 4
local CONNECTIONS = 16
local N_PROCESSES, N_THREADS = 4, 16
local N_TARGETS, N_JOBS = report.IS_QUICK and 2000 or 10000, 100
local N_WARM_UP = 1000
local MEMORY_STEPS = report.IS_QUICK and { 2000, 6000, 10000 }
    or { 20000, 60000, 100000, 200000 }

local function read(command)
    local pipe = assert(io.popen(command))
    local text = pipe:read "a"
    pipe:close()
    return text
end

local function contents(path)
    local file = io.open(path, "rb")
    local text = file and file:read "a"
    if file then
        file:close()
    end
    return text
end

local ROOT = read("pwd"):gsub("\n", "")
local NGINX = read("PATH=$PATH:/usr/sbin command -v nginx"):gsub("\n", "")
local AS_USER = read "id -u" == "0\n" and "-g 'user root;'" or ""

-- What is missing, if something is.
local function missing()
    if NGINX == "" or not contents(MODULES .. "/ngx_http_lua_module.so") then
        return "nginx with its Lua module"
    end
    return not contents(CORE) and "the build for LuaJIT" or nil
end

local function free_port()
    local listening = assert(socket.listen("127.0.0.1", 0))
    assert(listening:listen())
    local _, _, port = listening:localname()
    listening:close()
    return port
end

local running -- the nginx that is, if one is

local function get(nginx, path)
    local text = read(("curl -sf 'http://%s%s'"):format(nginx.address, path))
    return text ~= "" and text or error(path .. " failed:\n" .. contents(nginx.log))
end

-- Starts an nginx in a folder of its own. fields: processes, store ("": none), durability
local function start(folder, fields)
    folder = ("%s/%s/nginx"):format(ROOT, folder)
    os.execute(("rm -rf '%s' && mkdir -p '%s'"):format(folder, folder))
    local values = {
        modules = MODULES, root = ROOT, port = free_port(), processes = N_PROCESSES,
        store = folder .. "/batch.db", durability = "normal", threads = N_THREADS,
    }
    for name, value in pairs(fields) do
        values[name] = value
    end
    local file = assert(io.open(folder .. "/nginx.conf", "w"))
    file:write((contents(HERE .. "nginx.conf"):gsub("{([a-z]+)}", values)))
    file:close()
    local pid = read(("%s %s -p '%s/' -c '%s/nginx.conf' >'%s/out' 2>&1 & echo $!"):format(NGINX,
        AS_USER, folder, folder, folder)):match "%d+"
    local nginx = { pid = pid, address = "127.0.0.1:" .. values.port, log = folder .. "/error.log" }
    running = nginx
    for _ = 1, 200 do
        if read(("curl -s http://%s/pages/0"):format(nginx.address)) ~= "" then
            return nginx
        end
        cqueues.sleep(0.05)
    end
    error("nginx did not start: " .. contents(folder .. "/out"))
end

local function stop(nginx)
    os.execute(("kill %s; while kill -0 %s 2>/dev/null; do sleep 0.05; done"):format(nginx.pid,
        nginx.pid))
    running = nil
end

-- --- the HTTP API ---

-- Requests a second.
local function load(nginx, path)
    local text = read(("wrk -t1 -c%d -d%ds 'http://%s%s'"):format(CONNECTIONS, SECONDS,
        nginx.address, path))
    assert(not text:find "Non%-2xx", text)
    return tonumber(text:match "(%d+) requests in") / tonumber(text:match "requests in ([%d.]+)s")
end

local function status(folder)
    report.title("GET of a finished job in nginx, 1/s", "product", "bare Lua")
    local nginx = start(folder, { processes = 1 })
    for _, n_targets in ipairs { 1, 32 } do
        local path = "/api/v1/batches/" .. get(nginx, "/submit?n=" .. n_targets)
        path = path .. (n_targets > 1 and "?results=false" or "")
        local n_bytes = #get(nginx, path)
        local name = ("targets: %d, bytes: %d"):format(n_targets, n_bytes)
        report.row("nginx", name, report.compare(function()
            return load(nginx, path)
        end, function()
            return load(nginx, "/bare?len=" .. n_bytes)
        end), goals.nginx_status[n_targets])
    end
    stop(nginx)
end

-- --- draining ---

local DRAIN = ("/drain?jobs=%d&n=%%d"):format(N_JOBS)
local FETCH = ("/fetch?jobs=%d&n=%%d"):format(N_JOBS)

-- Targets a second, of a fresh nginx.
local function rate(folder, path, fields)
    local nginx = start(folder, fields)
    get(nginx, path:format(N_WARM_UP // N_JOBS))
    local seconds = tonumber(get(nginx, path:format(N_TARGETS // N_JOBS)))
    stop(nginx)
    return N_TARGETS / seconds
end

local function drain(folder)
    report.title("drain in nginx, 4 × 16, targets/s", "product", "light threads")
    for _, durability in ipairs { "normal", "full" } do
        report.row("nginx", durability, report.compare(function()
            return rate(folder, DRAIN, { durability = durability })
        end, function()
            return rate(folder, FETCH, { store = "" })
        end), goals.nginx_drain)
    end
end

-- --- memory ---

local function resident_mib(nginx)
    local kib = 0
    for pid in read("pgrep -P " .. nginx.pid):gmatch "%d+" do
        kib = kib + contents(("/proc/%s/status"):format(pid)):match "VmRSS:%s*(%d+)"
    end
    return kib / 1024
end

local function memory(folder)
    print "\nmemory of four nginx workers, each target a GET by cosocket"
    local nginx = start(folder, {})
    local n_done = 0
    for _, n_targets in ipairs(MEMORY_STEPS) do
        local n = n_targets - n_done
        get(nginx, DRAIN:format(n // N_JOBS))
        n_done = n_targets
        report.row_alone("nginx", ("after %s targets"):format((report.number(n_done))),
            resident_mib(nginx), "MiB")
    end
    stop(nginx)
end

local function measure(folder)
    status(folder)
    drain(folder)
    memory(folder)
end

local function all(folder)
    if missing() then
        print("\nnginx: skipped, for want of " .. missing())
        return
    end
    local is_fine, trace = xpcall(measure, debug.traceback, folder)
    if running then
        stop(running)
    end
    assert(is_fine, trace)
    os.execute(("rm -rf '%s/nginx'"):format(folder))
end

return { all = all }
