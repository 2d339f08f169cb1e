-- SPDX-License-Identifier: MIT

--- One request on an HTTP/2 connection and its answer: a stream of lua-http, read and written
-- without ever stepping the connection, which is its reader's alone.

local cqueues = require "cqueues"
local new_headers = require("http.headers").new
local answer = require "batch.server.answer"
local guard = require "batch.server.h2_guard"
local head = require "batch.server.head"
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
    return setmetatable({ session = session, stream = stream, n_read = 0 }, Stream)
end

function Stream:is_gone()
    return self.session.is_gone or self.stream.state == "closed"
end

-- Requests ---------------------------------------------------------------------------------------

local function fields_of(headers)
    local fields = {}
    for name, value in headers:each() do
        if value:find("[%z\r\n]") then
            return nil
        end
        local joint = name == "cookie" and "; " or ", "
        fields[name] = fields[name] and fields[name] .. joint .. value or value
    end
    fields.host = fields.host or fields[":authority"]
    return fields
end

-- Returns nil, status and message for a request that cannot be taken.
local function check(request, headers, limits)
    local fields = request.fields
    if headers.is_too_large then
        return nil, 431, "the header fields are larger than " .. limits.head_bytes .. " bytes"
    elseif not fields or not request.path then
        return nil, 400, "a header field is malformed"
    elseif #request.path + #(request.query or "") > limits.request_line_bytes then
        return nil, 414, "the path is longer than " .. limits.request_line_bytes .. " bytes"
    elseif fields["transfer-encoding"] or not (fields["content-length"] or "0"):find("^%d+$") then
        return nil, 400, "content-length must be one number, and transfer-encoding absent"
    end
    return request
end

local function parse(headers, limits)
    local request = { version = "2", fields = fields_of(headers) }
    request.method = (headers:get(":method") or ""):match("^[%w!#$%%&'*+.^_`|~-]+$")
    local target = headers:get(":path")
    if target and request.method and not target:find("[%c ]") then
        request.path, request.query = head.split_target(target)
    end
    local is_fine, status, message = check(request, headers, limits)
    if not is_fine then
        return request, status, message
    end
    request.body_length = tonumber(request.fields["content-length"])
    return request
end

-- Bodies -----------------------------------------------------------------------------------------

function Stream:_continue()
    if (self.request.fields.expect or ""):lower() == "100-continue" and not self:is_gone() then
        local headers = new_headers()
        headers:append(":status", "100")
        local block = guard.encode(self.session.connection, headers)
        self.stream:write_headers_frame(block, false, true, nil, nil, nil, nil, 0, "f")
        self.session:push()
    end
end

-- Waits for the next piece. Returns nil at the end, or nil and why.
function Stream:_next_piece(deadline)
    local stream, session = self.stream, self.session
    while stream.chunk_fifo:length() == 0 do
        local left = deadline - monotime()
        if self:is_gone() then
            return nil, "broken"
        elseif left <= 0 then
            return nil, "timeout"
        end
        poll(stream.chunk_cond, session.gone, left)
    end
    local chunk = stream.chunk_fifo:pop()
    if not chunk then
        return nil
    end
    local n_bytes = chunk:ack()
    if n_bytes > 0 and not self:is_gone() then
        session.connection:write_window_update(n_bytes)
        if stream.state == "open" then
            stream:write_window_update_frame(n_bytes, 0, "f")
        end
        session:push()
    end
    return chunk.data
end

function Stream:_read_all(max_bytes, pieces)
    local length = self.request.body_length
    if length and length > max_bytes then
        return nil, "too_large"
    end
    self:_continue()
    local deadline = monotime() + self.session.limits.body_seconds
    while true do
        local piece, why = self:_next_piece(deadline)
        if why then
            return nil, why
        elseif not piece then
            break
        end
        self.n_read = self.n_read + #piece
        if self.n_read > max_bytes then
            return nil, "too_large"
        end
        pieces[#pieces + 1] = piece
    end
    if length and length ~= self.n_read then
        self.fault = "the body is not as long as content-length says"
        return nil, "broken"
    end
    return true
end

--- Reads the whole body, as `batch.server.body` does.
function Stream:read_body(max_bytes)
    if not self._text and not self._why then
        local pieces = {}
        local is_read, why = self:_read_all(max_bytes, pieces)
        if is_read then
            self._text = table.concat(pieces)
        end
        self._why = why
    end
    return self._text, self._why
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
            if reason then
                answer.report(self.session.server, reason, self.request)
                self.reset_code = INTERNAL_ERROR
            end
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

-- A stream whose request nobody read to its end is reset: its client need not send the rest.
function Stream:_close(is_whole)
    local stream = self.stream
    if not self:is_gone() then
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
    local response = answer.of(server, {
        method = request.method, path = request.path, query = request.query, peer = request.peer,
        header = function(name) return request.fields[name] end,
        read_body = function(max_bytes) return self:read_body(max_bytes) end,
    })
    if self.fault then
        answer.finish(server, response)
        return answer.bad_request(400, self.fault)
    end
    return response
end

--- Answers the request.
function Stream:run()
    local session, server = self.session, self.session.server
    local began_at = monotime()
    local headers = self.stream.recv_headers_fifo:pop()
    local request, status, message = parse(headers, session.limits)
    request.began_at, request.peer, request.protocol = began_at, session.peer, "HTTP/2"
    self.request = request
    local response = self:_respond(status, message)
    session.responses[response] = true
    local is_whole, n_bytes = self:_send(response)
    self:_close(is_whole)
    session.responses[response] = nil
    answer.finish(server, response)
    answer.record(server, request, response, n_bytes)
end

--- @export
return { new = new }
