-- SPDX-License-Identifier: MIT

--- HTTP/2 on one connection, by lua-http under a guard: one reader takes the client's frames, each
-- request is answered in a coroutine of its own, and the connection ends when it is idle, when its
-- client does not read, or when the server stops.

local cqueues = require "cqueues"
local condition = require "cqueues.condition"
local errno = require "cqueues.errno"
local h2_connection = require "http.h2_connection"
local answer = require "batch.server.answer"
local guard = require "batch.server.h2_guard"
local new_stream = require("batch.server.h2_stream").new

local monotime, poll = cqueues.monotime, cqueues.poll

local REFUSED_STREAM = 0x7
-- After so many frames in a row the other connections have their turn.
local FRAMES_IN_A_ROW = 64
-- A client that lets acknowledgements pile up does not read.
local MAX_UNREAD = 1024 * 1024

local Session = {}
Session.__index = Session
Session.__name = "h2 session"

-- Writing ----------------------------------------------------------------------------------------

-- How much waits for the socket after as much as possible went.
local function n_waiting(self)
    local _, why = self.socket:send("", 1, 0, "bn")
    if why and why ~= errno.EAGAIN and why ~= errno.ETIMEDOUT then
        self:leave()
        return 0
    end
    return why and select(2, self.socket:pending()) or 0
end

--- Gives the socket what was written; waits while more than so many bytes are left over.
-- @tparam[opt] integer max_waiting nil: does not wait
-- @treturn boolean whether the client is still there
function Session:push(max_waiting)
    local n_before, deadline = math.huge, nil
    while not self.is_gone do
        local n_bytes = n_waiting(self)
        if n_bytes <= (max_waiting or math.huge) then
            break
        elseif n_bytes < n_before then
            n_before, deadline = n_bytes, monotime() + self.limits.stalled_seconds
        end
        local left = deadline - monotime()
        if left <= 0 then
            self:leave()
        else
            poll(self.writable, self.gone, left)
        end
    end
    return not self.is_gone
end

--- Gives the client up: whoever answers it stops.
function Session:leave()
    if not self.is_gone then
        self.is_gone = true
        self.gone:signal()
    end
end

function Session:_go_away()
    if not self.is_leaving then
        self.is_leaving = true
        if not self.connection.send_goaway_lowest then
            self.connection:write_goaway_frame(nil, 0, nil, 0)
        end
    end
end

-- Reading ----------------------------------------------------------------------------------------

local function run_stream(self, stream)
    local is_fine, reason = xpcall(stream.run, debug.traceback, stream)
    if not is_fine and not self.is_gone then
        answer.report(self.server, tostring(reason), stream.request or {})
        self:leave()
    end
    self.n_answering = self.n_answering - 1
    self.server.n_active = self.server.n_active - 1
    self.idle_since = monotime()
    self.answered:signal()
end

-- Begins to answer the streams whose headers are complete; they come in order.
local function begin_streams(self)
    local fifo = self.connection.new_streams
    while fifo:length() > 0 do
        local stream = fifo:peek()
        if self.connection.need_continuation == stream then
            break
        end
        fifo:pop()
        if stream.recv_headers_fifo:length() == 0 or stream.state == "closed" then
            stream:shutdown() -- its headers were malformed, or the client thought better of it
        elseif self.n_answering >= self.limits.streams then
            stream:write_rst_stream_frame(REFUSED_STREAM, 0, "f")
        else
            self.n_answering = self.n_answering + 1
            self.server.n_active = self.server.n_active + 1
            self.server.cq:wrap(run_stream, self, new_stream(self, stream))
        end
    end
end

-- Takes the frames that are there. Returns whether the client is.
local function read_frames(self)
    local connection = self.connection
    for _ = 1, FRAMES_IN_A_ROW do
        local is_fine = connection:step(0)
        if not is_fine or connection.socket:eof("r") then
            return false
        end
        begin_streams(self)
        if connection.had_eagain then
            return true, true
        end
    end
    return true, false
end

-- When the connection ends if nothing happens.
local function deadline_of(self)
    local limits, connection = self.limits, self.connection
    if not connection.has_first_settings then
        return self.began_at + limits.head_seconds
    elseif connection.need_continuation then
        self.block_since = self.block_since or monotime()
        return self.block_since + limits.head_seconds
    end
    self.block_since = nil
    if self.n_answering == 0 then
        return self.idle_since + limits.idle_seconds
    end
    return math.huge
end

-- Whether what waits to be read by the client still moves.
local function is_reading(self)
    local n_bytes = n_waiting(self)
    if n_bytes == 0 then
        self.unread_deadline = nil
    elseif not self.unread_deadline or n_bytes < self.n_unread then
        self.unread_deadline = monotime() + self.limits.stalled_seconds
    end
    self.n_unread = n_bytes
    return n_bytes <= MAX_UNREAD and monotime() < (self.unread_deadline or math.huge)
end

local function await_frames(self)
    local deadline = math.min(deadline_of(self), self.unread_deadline or math.huge)
    local left = deadline - monotime()
    if left <= 0 then
        return false
    end
    self.watch.events = self.n_unread > 0 and "rw" or "r"
    local woken = poll(self.watch, self.answered, self.gone, self.server.idle_wake,
        left < math.huge and left or nil)
    return woken ~= self.server.idle_wake or self.n_answering > 0 or self.server.is_stopping
end

-- Returns true when the client broke the protocol, and has a goodbye to read.
local function read_loop(self)
    local server = self.server
    while not self.is_gone do
        local is_there, is_empty = read_frames(self)
        if not is_there then
            return not self.socket:eof("r")
        elseif not is_reading(self) then
            break
        end
        if server.is_stopping then
            self:_go_away()
            self:push()
            if self.n_answering == 0 then
                break
            end
        end
        if not is_empty then
            cqueues.sleep(0)
        elseif not await_frames(self) then
            break
        end
    end
    return false
end

local function new_session(owner)
    local server, socket = owner.server, owner.wire.socket
    if owner.wire.ahead ~= "" then
        socket:unget(owner.wire.ahead)
        owner.wire.ahead = ""
    end
    local limits, now = server.limits, monotime()
    local connection = h2_connection.new(socket, "server", {
        MAX_CONCURRENT_STREAMS = limits.streams, MAX_HEADER_LIST_SIZE = limits.head_bytes,
    })
    local self = setmetatable({
        owner = owner, server = server, limits = limits, socket = socket, peer = owner.peer,
        connection = connection, guard = guard.attach(connection, limits),
        responses = {}, n_answering = 0, n_unread = 0, began_at = now, idle_since = now,
        gone = condition.new(), answered = condition.new(),
        watch = { pollfd = socket:pollfd(), events = "r" },
        writable = { pollfd = socket:pollfd(), events = "w" },
        is_gone = false, is_leaving = false,
    }, Session)
    owner.responses = self.responses
    owner.session = self
    return self
end

local h2 = {}

--- Answers a connection's requests until it is to be closed, and waits for the last of them.
-- @tparam table owner connection: `server`, `wire`, `peer`
function h2.serve(owner)
    local self = new_session(owner)
    local is_fine, result = xpcall(read_loop, debug.traceback, self)
    local is_goodbye_due = not self.is_gone and not owner.wire.is_closed
    -- lua-http raises over the half of a frame that a client leaves behind: no news.
    local is_news = not is_fine and is_goodbye_due and not self.socket:eof("r")
    if is_goodbye_due then
        pcall(self._go_away, self)
        n_waiting(self)
    end
    self:leave()
    if is_goodbye_due and result then
        owner.wire:linger(self.limits.linger_seconds, self.limits.linger_bytes)
    end
    owner.wire:close()
    while self.n_answering > 0 do
        poll(self.answered)
    end
    if is_news then
        owner:report(result)
    end
end

--- @export
return h2
