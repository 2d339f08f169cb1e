-- SPDX-License-Identifier: MIT

--- The HTTP server: listens, accepts, counts, reloads certificates, ends. What is asked goes to one
-- function, `handler`, what it gives goes back; this module knows neither batches nor signals. It
-- lives in a cqueues controller that somebody else runs and never blocks it.

local cqueues = require "cqueues"
local condition = require "cqueues.condition"
local errno = require "cqueues.errno"
local limits = require "batch.server.limits"
local listener = require "batch.server.listener"
local new_connection = require("batch.server.connection").new
local tls = require "batch.server.tls"

-- So long accepting pauses when the process has no file descriptors left, unless one comes back.
local PAUSE_SECONDS = 0.1
local WARN_SECONDS = 60

local Server = {}
Server.__index = Server
Server.__name = "server"

function Server:__tostring()
    return ("server on %s"):format(self:address())
end

local function run_connection(server, connection)
    connection:run()
    server.connections[connection] = nil
    server.n_connections = server.n_connections - 1
    server.connection_ended:signal(1)
end

local function begin_connection(server, socket)
    local connection = new_connection(server, socket)
    server.connections[connection] = true
    server.n_connections = server.n_connections + 1
    server.cq:wrap(run_connection, server, connection)
end

-- Such trouble lasts: it is told now and then, not each time.
local function warn(server, reason)
    local now = cqueues.monotime()
    if now >= (server.warn_at or now) then
        server.warn_at = now + WARN_SECONDS
        server.log:write("warn", "cannot accept connections", {
            error = reason, connections = server.n_connections,
        })
    end
end

local function accept_loop(server)
    local socket = server.listener.socket
    local options = { nodelay = not server.listener.path }
    while not server.is_stopping do
        if server.n_connections >= server.limits.connections then
            warn(server, "as many connections as there may be")
            cqueues.poll(server.connection_ended, server.stop_wake)
        else
            local client, why = socket:accept(options, 0)
            if client then
                begin_connection(server, client)
            elseif why == errno.ETIMEDOUT then
                cqueues.poll(socket, server.stop_wake)
            elseif why ~= errno.ECONNABORTED then
                warn(server, errno.strerror(why))
                cqueues.poll(server.connection_ended, server.stop_wake, PAUSE_SECONDS)
            end
        end
    end
end

local function new_server(options, listening, context)
    return setmetatable({
        handler = options.handler, log = options.log, cq = options.cq,
        limits = limits.with(options.limits), listener = listening, tls_context = context,
        connections = {}, n_connections = 0, n_active = 0, is_stopping = false, is_closed = false,
        connection_ended = condition.new(), stop_wake = condition.new(),
        idle_wake = condition.new(), close_wake = condition.new(),
    }, Server)
end

-- A context if there are files for one, nil if there are none, or false and a message.
local function load_tls(certificate, key)
    certificate, key = certificate or "", key or ""
    if certificate == "" and key == "" then
        return nil
    elseif certificate == "" or key == "" then
        return false, "tls_certificate and tls_key go together"
    end
    local context, message = tls.load(certificate, key)
    return context or false, message
end

--- Begins to listen and to serve.
-- @tparam table options `listen` (text; port 0 is any free one), `handler` (request table in,
--   response table out), `log` (with `write`), `cq` (the controller that runs it); for TLS
--   `tls_certificate` and `tls_key`, paths of PEM files; `limits`, some of `batch.server.limits`.
--   A socket file is its owner's alone (mode 0600); a dead server's is replaced
-- @treturn[1] Server
-- @treturn[2] nil
-- @treturn[2] string
-- @treturn[2] string `address` if it cannot be had, `invalid` for what is wrong in the options
local function listen(options)
    assert(type(options.handler) == "function", "handler must be a function")
    assert(options.log and options.cq, "log and cq must be given")
    local place, message = listener.parse(options.listen)
    if not place then
        return nil, message, "invalid"
    end
    local context, tls_message = load_tls(options.tls_certificate, options.tls_key)
    if context == false then
        return nil, tls_message, "invalid"
    end
    local listening, why, code = listener.open(place)
    if not listening then
        return nil, why, code
    end
    local server = new_server(options, listening, context)
    server.cq:wrap(accept_loop, server)
    return server
end

--- Where it really listens.
-- @treturn string as `listen` takes it
function Server:address()
    return self.listener.text
end

--- Has new connections get another certificate.
-- @tparam string certificate path
-- @tparam string key path
-- @treturn[1] true
-- @treturn[2] nil
-- @treturn[2] string names the file; the old certificate stays
function Server:reload_tls(certificate, key)
    if not self.tls_context then
        return nil, "the server was started without tls"
    end
    local context, message = load_tls(certificate, key)
    if not context then
        return nil, message or "tls_certificate and tls_key must be given"
    end
    self.tls_context = context
    return true
end

--- Takes no further connections, and closes each that is open after its answer.
function Server:stop_accepting()
    if not self.is_stopping then
        self.is_stopping = true
        listener.close(self.listener)
        self.stop_wake:signal()
        self:close_idle()
    end
end

--- The number of requests that are being answered, event streams included.
function Server:active()
    return self.n_active
end

--- Closes the connections on which nothing is being answered.
function Server:close_idle()
    self.idle_wake:signal()
end

--- Ends everything now, answers in the making included. A second call does nothing.
function Server:close()
    if not self.is_closed then
        self:stop_accepting()
        self.is_closed = true
        for connection in pairs(self.connections) do
            connection:close()
        end
        self.close_wake:signal()
    end
end

--- @export
return { listen = listen }
