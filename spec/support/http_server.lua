-- SPDX-License-Identifier: MIT
--
-- A batch.server in a process of its own for specs, with a handler that does on request whatever a
-- handler may do, and raw clients for what no decent client would send. Loopback only.

local cqueues = require "cqueues"
local cqueues_socket = require "cqueues.socket"
local errno = require "cqueues.errno"
local process = require "spec.support.process"

local PATIENCE_SECONDS = 30

-- The handler's routes, by path. `control` runs in the server's process as well.
local SERVER = [[
local cqueues, condition = require "cqueues", require "cqueues.condition"
local cq, never = cqueues.new(), condition.new()
local options = load("return " .. os.getenv("OPTIONS"))()
local server
local function text(body, more)
    local response = { status = 200, headers = { ["content-type"] = "text/plain" }, body = body }
    for name, value in pairs(more or {}) do response[name] = value end
    return response
end
local function finish() note("finished", "x") end
local function counted(n, seconds)
    local i = 0
    return function()
        i = i + 1
        cqueues.sleep(i > 1 and seconds or 0)
        return i <= n and ("chunk %d\n"):format(i) or nil
    end
end
local routes = {
    ["/raise"] = function() error("secret reason") end,
    ["/nothing"] = function() return nil end,
    ["/empty"] = function() return { status = 204, headers = {}, body = "" } end,
    ["/split"] = function() return text("", { headers = { ["x-a"] = "1\r\nx-b: 2" } }) end,
    ["/big"] = function(r) return text(("x"):rep(tonumber(r.query)), { finish = finish }) end,
    ["/chunks"] = function(r)
        return text(counted(tonumber(r.query) or 3, 0.02), { finish = finish, caller = "alice" })
    end,
    ["/breaks"] = function()
        local next_chunk = counted(2, 0)
        return text(function() return next_chunk() or error("secret reason") end,
            { finish = finish })
    end,
    ["/ends_early"] = function()
        local next_chunk = counted(2, 0)
        return text(function() return next_chunk() or error { message = "no more to be had" } end)
    end,
    ["/endless"] = function()
        return text(function() return ("x"):rep(65536) end, { finish = finish })
    end,
    ["/events"] = function()
        local is_begun = false
        return text(function()
            if is_begun then never:wait() end
            is_begun = true
            return ": hello\n\n"
        end, { finish = finish })
    end,
    ["/patient"] = function(r)
        while not r.is_gone() do cqueues.sleep(0.01) end
        return text("nobody reads this", { finish = finish })
    end,
    ["/slow"] = function() cqueues.sleep(0.3) return text("slow\n") end,
    ["/body"] = function(r)
        local body, why = r.read_body(tonumber(r.query) or 1000)
        if body then return text(("%d bytes: %s\n"):format(#body, body:sub(1, 20))) end
        return text(why .. "\n", { status = why == "too_large" and 413 or 400, code = why })
    end,
    ["/header"] = function(r) return text(tostring(r.header(r.query)) .. "\n") end,
    ["/active"] = function() return text(server:active() .. " " .. server.n_connections) end,
    ["/memory"] = function()
        collectgarbage() collectgarbage()
        return text(("%d"):format(math.floor(collectgarbage("count"))))
    end,
    ["/stop"] = function() server:stop_accepting() return text("stopping\n") end,
    ["/close"] = function()
        cq:wrap(function() cqueues.sleep(0) server:close() end)
        return text("closing\n")
    end,
    ["/close_idle"] = function() server:close_idle() return text("") end,
    ["/reload"] = function(r)
        local is_fine, why = server:reload_tls(r.query:match("^(.-),(.*)$"))
        return text(tostring(is_fine) .. " " .. tostring(why))
    end,
}
options.cq = cq
options.handler = function(r)
    local route = routes[r.path]
    if route then return route(r) end
    return text(r.method .. " " .. r.path .. " " .. tostring(r.query) .. "\n")
end
options.log = { write = function(_, level, message, fields)
    local words = {}
    for name, value in pairs(fields) do words[#words + 1] = name .. "=" .. tostring(value) end
    table.sort(words)
    note("log", level .. " " .. message .. " " .. table.concat(words, " "):gsub("\n", "|"))
end }
local message, code
server, message, code = require("batch.server").listen(options)
if not server then
    note("address", tostring(code) .. ": " .. message)
    os.exit(3)
end
note("address", server:address())
local deadline = cqueues.monotime() + 100
while cqueues.monotime() < deadline and not cq:empty() do
    assert(cq:step(1))
end
note("ended", "x")
]]

-- Raw clients ------------------------------------------------------------------------------------

local Client = {}
Client.__index = Client

local function errors_are_values(socket, _, why)
    if why == errno.ETIMEDOUT then
        socket:clearerr()
    end
    return why
end

--- Connects.
-- @tparam string address as a server tells it
local function connect(address)
    local path = address:match("^unix:(.+)$")
    local host, port = address:match("^%[?([%x.:]-)%]?:(%d+)$")
    assert(path or host == "127.0.0.1" or host == "::1", "not on loopback: " .. address)
    local socket = cqueues_socket.connect { host = host, port = tonumber(port), path = path }
    socket:onerror(errors_are_values)
    socket:settimeout(PATIENCE_SECONDS)
    socket:setmode("b", "bn")
    assert(socket:connect())
    return setmetatable({ socket = socket }, Client)
end

--- Sends bytes. Returns whether the server took them.
function Client:send(bytes)
    return (self.socket:xwrite(bytes, "bn", PATIENCE_SECONDS))
end

--- All that comes until the server closes; fails when it does not.
function Client:rest(seconds)
    local pieces, deadline = {}, cqueues.monotime() + (seconds or PATIENCE_SECONDS)
    while true do
        local piece, why = self.socket:xread(-65536, "b", deadline - cqueues.monotime())
        if not piece then
            assert(why ~= errno.ETIMEDOUT, "the server did not close")
            return table.concat(pieces)
        end
        pieces[#pieces + 1] = piece
    end
end

--- What comes next, as soon as anything does.
function Client:some()
    return self.socket:xread(-65536, "b", PATIENCE_SECONDS)
end

--- One answer whose length its head tells: status, body, head.
function Client:answer(is_head_only)
    local lines = {}
    repeat
        local line = assert(self.socket:xread("*L", "b", PATIENCE_SECONDS), "no answer")
        lines[#lines + 1] = line
    until line == "\r\n"
    local head = table.concat(lines)
    local length = tonumber(head:match("\r\ncontent%-length: (%d+)\r\n") or 0)
    local body = ""
    if length > 0 and not is_head_only then
        body = assert(self.socket:xread(length, "b", PATIENCE_SECONDS))
    end
    return tonumber(head:match("^HTTP/1.1 (%d%d%d)")), body, head
end

--- Sends a request without body and gives the answer.
function Client:get(path)
    self:send(("GET %s HTTP/1.1\r\nhost: a\r\n\r\n"):format(path))
    return self:answer()
end

function Client:close()
    self.socket:close()
end

-- Servers ----------------------------------------------------------------------------------------

local Server = {}
Server.__index = Server

local function quoted(value)
    if type(value) ~= "table" then
        return type(value) == "string" and ("%q"):format(value) or tostring(value)
    end
    local words = {}
    for name, field in pairs(value) do
        words[#words + 1] = name .. "=" .. quoted(field)
    end
    return "{" .. table.concat(words, ",") .. "}"
end

--- Starts a server and waits until it listens, or has said why it does not.
-- @tparam[opt] table options of `batch.server.listen`
-- @treturn table with `address`
local function start(options)
    local all = { listen = "127.0.0.1:0" }
    for name, value in pairs(options or {}) do
        all[name] = value
    end
    local folder = process.folder()
    local variable = "OPTIONS='" .. quoted(all):gsub("\\\n", "\\n"):gsub("'", "'\\''") .. "'"
    local self = setmetatable({ folder = folder }, Server)
    self.process = folder:start(SERVER, variable)
    self.address = process.eventually(function() return folder:lines("address")[1] end)
    assert(self.address, self.process:output())
    if self.address:find("^%l+: ") then
        self.process:wait()
    end
    return self
end

function Server:connect()
    return connect(self.address)
end

--- Sends bytes over a connection of their own and gives all that comes back until it is closed.
function Server:exchange(bytes)
    local client = self:connect()
    client:send(bytes)
    local rest = client:rest()
    client:close()
    return rest
end

--- Runs curl with the words; {} stands for the server's address.
function Server:curl(words)
    assert(self.address:find("^127%.0%.0%.1:%d+$"), "not on loopback: " .. self.address)
    local command = "curl -sS --max-time 10 --noproxy '*' " .. words:gsub("{}", self.address)
    local pipe = assert(io.popen(command .. " 2>&1"))
    local output = pipe:read("*a")
    pipe:close()
    return output
end

--- Waits for a line of the log that has the words.
function Server:logged(words)
    return process.eventually(function()
        for _, line in ipairs(self.folder:lines("log")) do
            if line:find(words, 1, true) then
                return line
            end
        end
    end) or error("not in the log: " .. words .. "\n" .. self.folder:read("log"))
end

--- How often `finish` was called.
function Server:n_finished()
    return #self.folder:lines("finished")
end

function Server:stop()
    self.folder:remove()
end

--- Makes a key and its self-signed certificate by the openssl program.
-- @treturn string path of the certificate
-- @treturn string path of the key
local function make_certificate(folder, name)
    local certificate, key = folder .. "/" .. name .. ".pem", folder .. "/" .. name .. ".key"
    assert(os.execute(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
        .. " -keyout %s -out %s -days 2 -subj /CN=%s -addext subjectAltName=IP:127.0.0.1"
        .. " >/dev/null 2>&1"):format(key, certificate, name)))
    return certificate, key
end

return {
    start = start, connect = connect, make_certificate = make_certificate,
    eventually = process.eventually, now = process.now,
}
