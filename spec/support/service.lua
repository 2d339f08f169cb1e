-- SPDX-License-Identifier: MIT
--
-- `luabatch serve` as a process of its own, on a free port, and curl to talk to it; its files lie
-- in the test's folder. One that a killed spec leaves behind is ended by the shell that waits for
-- it, whose standard input ends with the spec.

local cjson = require "cjson"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"

local MAX_SECONDS = 30 -- of one request

local n_names = 0

-- A path of the test's folder that nobody else has.
local function new_path(ending)
    n_names = n_names + 1
    return fresh.path("s" .. n_names .. "." .. ending)
end

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

-- Requests ---------------------------------------------------------------------------------------

local Request = {}
Request.__index = Request

--- The next line of the answer's body, without its end.
function Request:line()
    return self.pipe:read("*l")
end

--- Lines of the body up to the first that matches, which it gives; nil when there is none.
function Request:line_with(pattern)
    for line in self.pipe:lines() do
        if line:find(pattern) then
            return line
        end
    end
    return nil
end

local function parse_headers(text)
    local headers = {}
    for name, value in text:gmatch("\n([%w-]+): ([^\r\n]*)") do
        headers[name:lower()] = value
    end
    return headers
end

--- Waits until the server has the request, which may be a long time from its answer.
function Request:await_taken()
    eventually(function() return read(self.figures):find "> %u+ /%S* HTTP" end)
    for _ = 1, 2 do -- what came before these is read by the time that they are answered
        self.server:curl "/healthz"
    end
end

--- Waits for the end of the answer.
-- @treturn table `status` (0: none came), `body` (what was not read as lines), `headers`, `http`
-- ("1.1" or "2"), `seconds`, `exit` of curl, and `json()`, which decodes the body
function Request:finish()
    local answer = { body = self.pipe:read("*a") }
    self.pipe:close()
    local status, http, seconds, exit =
        read(self.figures):match("(%d+) (%S+) (%S+)\n(%d+)\n$")
    assert(status, "curl: " .. read(self.figures))
    answer.status, answer.http = tonumber(status), http
    answer.seconds, answer.exit = tonumber(seconds), tonumber(exit)
    answer.headers = parse_headers(read(self.head))
    function answer.json()
        return cjson.decode(answer.body)
    end
    return answer
end

-- The server -------------------------------------------------------------------------------------

local Service = {}
Service.__index = Service

local SHELL = [[
exec 3<&0 2>/dev/null
%s luabatch serve -c %s >%s 2>%s </dev/null 3<&- &
pid=$!
{ read -r _ <&3; kill -s KILL $pid; } 2>/dev/null &
watcher=$!
exec 3<&-
echo $pid >%s
wait $pid
echo $? >%s
kill $watcher
]]

-- The tables' names in the order of a configuration file, and what they have unless told otherwise.
local SECTIONS = { "batch", "server", "log", "fetch" }
local DEFAULTS = {
    server = { listen = 'listen = "127.0.0.1:0"' },
    batch = { store = 'store = "%s/batch.db"', fetch = 'fetch = "spec.support.errand"',
        durability = 'durability = "normal"', jobs_per_caller = "jobs_per_caller = 1000",
        jobs_total = "jobs_total = 1000", workers = "workers = 2" },
}

--- The text of a configuration.
-- @tparam[opt] table|string parts for each table of the file its lines; `more`: what else is to be
-- in it; or the whole text
local function config_text(parts)
    if type(parts) == "string" then
        return parts
    end
    local lines = {}
    for _, section in ipairs(SECTIONS) do
        local given = parts and parts[section] or ""
        lines[#lines + 1] = "[" .. section .. "]\n" .. given
        for name, line in pairs(DEFAULTS[section] or {}) do
            if not ("\n" .. given):find("\n%s*" .. name .. "%s*=") then
                lines[#lines + 1] = line:find("%%s") and line:format(fresh.path "") or line
            end
        end
    end
    return table.concat(lines, "\n") .. "\n" .. (parts and parts.more or "") .. "\n"
end

--- Starts a server, and does not wait for it.
-- @tparam[opt] table|string config as for `config_text`
-- @tparam[opt] string variables of the shell, such as "A=1", or a program that runs it
local function launch(config, variables)
    local self = setmetatable({
        config = new_path "toml", out = new_path "out", log_path = new_path "log",
        pid_path = new_path "pid", code_path = new_path "code", arguments = "",
    }, Service)
    write(self.config, config_text(config))
    local script = write(new_path "sh", SHELL:format(variables or "", self.config, self.out,
        self.log_path, self.pid_path, self.code_path))
    self.began_at = core.now()
    self.pipe = assert(io.popen("sh " .. script, "w"))
    self.pid = eventually(function() return tonumber(read(self.pid_path)) end)
    return fresh.keep(self)
end

--- Starts a server and waits until it listens.
local function start(config, variables)
    local self = launch(config, variables)
    local address = eventually(function()
        local line = self:line_with '"listening"'
        assert(line or not self:exit_code(), "the server has ended: " .. self:log())
        return line and (line:match 'address=(%S+)' or line:match '"address":("[^"]+)')
    end, 20)
    address = address:gsub('"', "")
    local path = address:match "^unix:(.+)"
    self.arguments = path and "--unix-socket " .. path or ""
    local scheme = read(self.config):find '\n%s*tls_key%s*=%s*"[^"]' and "https" or "http"
    self.base = scheme .. "://" .. (path and "localhost" or address)
    return self
end

--- What the server has logged so far.
function Service:log()
    return read(self.log_path)
end

--- The last line of the log that has the text, or nil.
function Service:line_with(text)
    local found
    for line in self:log():gmatch("([^\n]*)\n") do
        found = line:find(text, 1, true) and line or found
    end
    return found
end

--- Waits for a line of the log.
function Service:await_line(text, seconds)
    return eventually(function() return self:line_with(text) end, seconds)
end

function Service:signal(name)
    os.execute(("kill -s %s %d"):format(name, self.pid))
end

--- The exit code, as a shell counts it (137 after KILL), or nil while it runs.
function Service:exit_code()
    return tonumber(read(self.code_path))
end

--- Waits for the end; gives the exit code and the seconds that it took.
function Service:wait(seconds)
    local began_at = core.now()
    local code = eventually(function() return self:exit_code() end, seconds)
    return code, core.now() - began_at
end

--- Ends the server. A second call does nothing.
function Service:close()
    if self.pipe then
        if not self:exit_code() then
            self:signal "KILL"
        end
        self.pipe:close()
        self.pipe = nil
    end
end

--- Changes the configuration, and tells the server.
function Service:reconfigure(config)
    write(self.config, config_text(config))
    self:signal "HUP"
end

--- The same, and waits until the server says what came of it.
function Service:reload(config)
    local n_before = select(2, self:log():gsub("reloaded", ""))
    self:reconfigure(config)
    eventually(function() return select(2, self:log():gsub("reloaded", "")) > n_before end)
end

--- Begins a request by curl.
-- @tparam string path behind the address
-- @tparam[opt] string arguments further words for curl
-- @treturn Request
function Service:begin(path, arguments)
    local request = setmetatable({ server = self, head = new_path "head",
        figures = new_path "figures" }, Request)
    local words = ("curl -sSvN --max-time %d -D %s -w '%%{stderr}%%{http_code} %%{http_version} "
        .. "%%{time_total}\\n' %s %s '%s%s' 2>%s; echo $? >>%s"):format(MAX_SECONDS, request.head,
        self.arguments, arguments or "", self.base, path, request.figures, request.figures)
    request.pipe = assert(io.popen(words))
    return request
end

--- Makes a request by curl and gives its answer, as `Request:finish` does.
function Service:curl(path, arguments)
    return self:begin(path, arguments):finish()
end

--- What curl needs to submit targets, by their URLs.
local function body(urls)
    local targets = {}
    for i, url in ipairs(urls) do
        targets[i] = { url = url }
    end
    return ("-H 'content-type: application/json' -d '%s'"):format(cjson.encode {
        targets = targets })
end

--- Submits targets by their URLs; gives the answer and the job's id.
function Service:submit(urls, arguments)
    local answer = self:curl("/v1/batches", body(urls) .. " " .. (arguments or ""))
    return answer, answer.body:match '"id":"([^"]+)"'
end

--- Waits until a job is what it should be.
function Service:await_status(id, status, arguments)
    return eventually(function()
        local answer = self:curl("/v1/batches/" .. id, arguments)
        return answer.body:match '^{"job":{"id":"[^"]+","status":"(%l+)"' == status and answer
    end, 20)
end

-- How many times slower everything is than without a sanitizer.
local SLOWNESS = os.getenv "SANITIZER" and 10 or 1

--- Fails unless of the spans of some answers most are short, and none is long: a machine that has
-- other things to do may hold up a few.
-- @tparam {number,...} spans
-- @tparam number short seconds
-- @tparam number long seconds
local function check_quick(spans, short, long)
    table.sort(spans)
    local middle, longest = spans[math.ceil(#spans / 2)], spans[#spans]
    assert(middle < short * SLOWNESS, "half of the answers took more than " .. middle .. " s")
    assert(longest < long * SLOWNESS, "an answer took " .. longest .. " s")
end

return {
    start = start,
    launch = launch,
    config_text = config_text,
    body = body,
    check_quick = check_quick,
    SLOWNESS = SLOWNESS,
}
