-- SPDX-License-Identifier: MIT

--- One request on an HTTP/2 connection and its answer: a stream of lua-http, read and written
-- without ever stepping the connection, which is its reader's alone.

local cqueues = require "cqueues"
local new_headers = require("http.headers").new
local answer = require "batch.server.answer"
local guard = require "batch.server.h2_guard"
local take_request = require("batch.server.h2_request").take
local pump = require "batch.server.pump"

local monotime, poll = cqueues.monotime, cqueues.poll

local MAX_FRAME = 16384
-- So much may wait for the socket before a stream waits for it, too.
local MAX_WAITING = 65536
local NO_ERROR, INTERNAL_ERROR, CANCEL = 0x0, 0x2, 0x8

local Stream = {}
Stream.__index = Stream
Stream.__name = "h2 stream"

--- Takes over a stream whose headers are there.
-- @tparam table session of `batch.server.h2`
-- @tparam table stream of lua-http
-- @treturn table
local function new(session, stream)
    return setmetatable({ session = session, stream = stream }, Stream)
end

function Stream:is_gone()
    return self.session.is_gone or self.stream.state == "closed"
end

-- Answers ----------------------------------------------------------------------------------------

function Stream:_send_head(response, is_all)
    if self:is_gone() then
        return false
    end
    local headers = new_headers()
    headers:append(":status", ("%d"):format(response.status))
    headers:append("date", os.date("!%a, %d %b %Y %H:%M:%S GMT"))
    for name, value in pairs(response.headers) do
        headers:append(name, value)
    end
    if type(response.body) == "string" and response.status ~= 204 and response.status ~= 304 then
        headers:append("content-length", ("%d"):format(#response.body))
    end
    local stream, block = self.stream, guard.encode(self.session.connection, headers)
    local is_whole = #block <= MAX_FRAME
    local first = block:sub(1, MAX_FRAME)
    stream:write_headers_frame(first, is_all, is_whole, nil, nil, nil, nil, 0, "f")
    for from = MAX_FRAME + 1, #block, MAX_FRAME do
        local piece = block:sub(from, from + MAX_FRAME - 1)
        stream:write_continuation_frame(piece, from + MAX_FRAME > #block, 0, "f")
    end
    return true
end

-- Waits until the client takes data. Returns how many bytes, or nil.
function Stream:_await_credit()
    local stream, session = self.stream, self.session
    local connection = session.connection
    local deadline = monotime() + session.limits.stalled_seconds
    while not self:is_gone() do
        local n_bytes = math.min(stream.peer_flow_credits, connection.peer_flow_credits, MAX_FRAME)
        if n_bytes > 0 then
            return n_bytes
        end
        local left = deadline - monotime()
        if left <= 0 then
            return nil
        end
        session:push()
        poll(stream.peer_flow_credits_change, connection.peer_flow_credits_change,
            stream.chunk_cond, session.gone, left)
    end
    return nil
end

function Stream:_send_data(data, is_last)
    local session, from = self.session, 1
    while from <= #data do
        local n_bytes = self:_await_credit()
        if not n_bytes then
            return false
        end
        local piece = data:sub(from, from + n_bytes - 1)
        from = from + #piece
        self.stream:write_data_frame(piece, is_last and from > #data, false, 0, "f")
        if not session:push(MAX_WAITING) then
            return false
        end
    end
    return true
end

function Stream:_send_end()
    if self:is_gone() then
        return false
    end
    self.stream:write_data_frame("", true, false, 0, "f")
    return true
end

function Stream:_watch(body)
    local session = self.session
    local function is_gone()
        return self:is_gone()
    end
    pump.watch(body, self.stream.chunk_cond, is_gone)
    pump.watch(body, session.gone, is_gone)
end

function Stream:_send_chunks(response)
    local body, n_bytes = pump.new(response.body), 0
    self:_watch(body)
    self.session:push(0)
    while true do
        local chunk, why, reason = pump.next(body)
        if why then
            answer.break_off(self.session.server, self.request, response, why, reason)
            self.reset_code = reason and INTERNAL_ERROR
            return false, n_bytes
        elseif chunk == nil then
            return self:_send_end(), n_bytes
        elseif #chunk > 0 then
            if not self:_send_data(chunk, false) or not self.session:push(0) then
                return false, n_bytes
            end
            n_bytes = n_bytes + #chunk
        end
    end
end

function Stream:_send(response)
    local body = response.body
    local is_bare = self.request.method == "HEAD" or body == ""
        or response.status == 204 or response.status == 304
    if not self:_send_head(response, is_bare) then
        return false, 0
    elseif is_bare then
        return true, 0
    elseif type(body) == "string" then
        return self:_send_data(body, true), #body
    end
    return self:_send_chunks(response)
end

-- Ends the stream. One whose request does not come to its end is reset.
function Stream:_close(is_whole)
    local stream = self.stream
    if not self:is_gone() and not (is_whole and self.request:skip()) and not self:is_gone() then
        stream:write_rst_stream_frame(is_whole and NO_ERROR or self.reset_code or CANCEL, 0, "f")
    elseif not self.session.is_gone then
        stream:shutdown()
    end
    self.session:push()
end

function Stream:_respond(status, message)
    local request, server = self.request, self.session.server
    if status then
        return answer.bad_request(status, message)
    end
    return answer.ask(server, request, request)
end

--- Answers the request.
function Stream:run()
    local session, server = self.session, self.session.server
    local began_at = monotime()
    local request, status, message = take_request(session, self.stream)
    request.began_at, request.peer, request.protocol = began_at, session.peer, "HTTP/2"
    self.request = request
    local response = self:_respond(status, message)
    session.responses[response] = true
    local is_whole, n_bytes = self:_send(response)
    session:push()
    session.responses[response] = nil
    answer.finish(server, response)
    answer.record(server, request, response, n_bytes, is_whole)
    if is_whole then
        guard.forgive(session.guard)
    end
    self:_close(is_whole)
end

--- @export
return { new = new }
