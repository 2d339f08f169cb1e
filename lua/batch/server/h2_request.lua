-- SPDX-License-Identifier: MIT

--- A request that came over HTTP/2: its headers as fields, its body from the frames that lua-http
-- has put aside. Knows a stream's session as whoever gives window back and says who has gone.

local cqueues = require "cqueues"
local new_headers = require("http.headers").new
local guard = require "batch.server.h2_guard"
local head = require "batch.server.head"

local monotime, poll = cqueues.monotime, cqueues.poll

local Request = {}
Request.__index = Request
Request.__name = "h2 request"

-- Headers ----------------------------------------------------------------------------------------

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

--- Understands the headers of a stream.
-- @tparam table session of `batch.server.h2`
-- @tparam table stream of lua-http, whose headers are there
-- @treturn table request: `method`, `path`, `query`, `fields`, `body_length`
-- @treturn integer|nil the status to answer if it cannot be taken
-- @treturn string|nil what is wrong with it
local function take(session, stream)
    local headers, limits = stream.recv_headers_fifo:pop(), session.limits
    local request = setmetatable({
        fields = fields_of(headers), _session = session, _stream = stream,
    }, Request)
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

function Request:_continue()
    if (self.fields.expect or ""):lower() == "100-continue" and not self:is_gone() then
        local headers = new_headers()
        headers:append(":status", "100")
        local block = guard.encode(self._session.connection, headers)
        self._stream:write_headers_frame(block, false, true, nil, nil, nil, nil, 0, "f")
        self._session:push()
    end
end

--- Whether nobody waits for the answer any more.
function Request:is_gone()
    return self._session.is_gone or self._stream.state == "closed"
end

-- Waits for the next piece. Returns nil at the end, or nil and why.
function Request:_next_piece(deadline)
    local stream, session = self._stream, self._session
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
        if stream.state == "open" or stream.state == "half closed (local)" then
            stream:write_window_update_frame(n_bytes, 0, "f")
        end
        session:push()
    end
    return chunk.data
end

function Request:_read_all(max_bytes, pieces)
    local length = self.body_length
    if length and length > max_bytes then
        return nil, "too_large"
    end
    self:_continue()
    local deadline, n_read = monotime() + self._session.limits.body_seconds, 0
    while true do
        local piece, why = self:_next_piece(deadline)
        if why then
            return nil, why
        elseif not piece then
            break
        end
        n_read = n_read + #piece
        if n_read > max_bytes then
            return nil, "too_large"
        end
        pieces[#pieces + 1] = piece
    end
    if length and length ~= n_read then
        self.fault = "the body is not as long as content-length says"
        return nil, "broken"
    end
    return true
end

--- Reads the whole body, as `batch.server.body` does.
function Request:read(max_bytes)
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

--- Reads on after the answer, a little and not for long: clients take a reset for a failure, even
-- if their answer came whole.
-- @treturn boolean whether the body has ended
function Request:skip()
    local limits = self._session.limits
    local deadline, n_left = monotime() + limits.linger_seconds, limits.drain_bytes
    while n_left > 0 do
        local piece = self:_next_piece(deadline)
        if not piece then
            return self:is_gone()
        end
        n_left = n_left - #piece
    end
    return false
end

--- @export
return { take = take }
