-- SPDX-License-Identifier: MIT

--- One client's connection from accept to close: the TLS handshake, which protocol is spoken, and
-- whatever happens, the end of it. What it raises ends it alone.

local cqueues = require "cqueues"
local answer = require "batch.server.answer"
local h1 = require "batch.server.h1"
local h2 = require "batch.server.h2"
local pump = require "batch.server.pump"
local new_wire = require("batch.server.wire").new

local monotime = cqueues.monotime

local PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
local FAMILY_UNIX = require("cqueues.socket").AF_UNIX

local Connection = {}
Connection.__index = Connection
Connection.__name = "connection"

local function peer_of(socket)
    local family, host, port = socket:peername()
    if family == FAMILY_UNIX or not port then
        return "unix"
    end
    return (host:find(":", 1, true) and "[%s]:%d" or "%s:%d"):format(host, port)
end

--- A connection that was just accepted.
-- @tparam table server
-- @param socket of cqueues
-- @treturn table
local function new(server, socket)
    return setmetatable({
        server = server, wire = new_wire(socket, server.limits.stalled_seconds),
        peer = peer_of(socket), n_answering = 0,
    }, Connection)
end

--- Has a pumped body stop when the client hangs up or the server closes.
function Connection:watch(stream)
    local wire, server = self.wire, self.server
    pump.watch(stream, wire:watch(), function(watch)
        local is_gone, has_bytes = wire:is_gone()
        if has_bytes then
            pump.unwatch(stream, watch)
        end
        return is_gone
    end)
    pump.watch(stream, server.close_wake, function() return server.is_closed end)
end

-- Returns whether the client and the server agree on keys, and whether on HTTP/2.
local function shake_hands(self)
    local context, socket = self.server.tls_context, self.wire.socket
    if not context then
        return true, false
    elseif not socket:starttls(context, self.server.limits.head_seconds) then
        return false
    end
    return true, socket:checktls():getAlpnSelected() == "h2"
end

-- Whether the client begins as HTTP/2 does; nil if it does not begin at all.
local function begins_as_h2(self)
    local wire, server = self.wire, self.server
    local is_there = wire:fill(monotime() + server.limits.idle_seconds, server.idle_wake)
    local deadline = monotime() + server.limits.head_seconds
    while is_there do
        local n_bytes = math.min(#wire.ahead, #PREFACE)
        if wire.ahead:sub(1, n_bytes) ~= PREFACE:sub(1, n_bytes) then
            return false
        elseif n_bytes == #PREFACE then
            return true
        end
        is_there = wire:fill(deadline)
    end
    return nil
end

local function serve(self)
    local is_agreed, is_h2 = shake_hands(self)
    if not is_agreed then
        return
    elseif not is_h2 then
        is_h2 = begins_as_h2(self)
    end
    if is_h2 then
        h2.serve(self)
    elseif is_h2 == false then
        h1.serve(self)
    end
end

--- Serves it to its end. Never raises.
function Connection:run()
    local is_fine, reason = xpcall(serve, debug.traceback, self)
    if not is_fine and not self.wire.is_closed then
        self:report(reason)
    end
    self.server.n_active = self.server.n_active - self.n_answering
    self:close()
end

--- Tells the log what ended it. Hardly an error of this side: what lua-http does not understand of
-- a client's frames it raises.
function Connection:report(reason)
    self.server.log:write("warn", "connection failed", {
        error = tostring(reason), peer = self.peer,
    })
end

--- Ends it at once. A second call does nothing.
function Connection:close()
    if self.response then
        answer.finish(self.server, self.response)
        self.response = nil
    end
    for response in pairs(self.responses or {}) do
        answer.finish(self.server, response)
    end
    if self.session then
        self.session:leave()
    end
    self.wire:close()
end

--- @export
return { new = new }
