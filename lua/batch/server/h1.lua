-- SPDX-License-Identifier: MIT

--- HTTP/1.0 and 1.1 on one connection: requests one after the other, answers in that order. Of
-- lua-http only the names are used here: its own reader of HTTP/1 knows no limit for a head, holds
-- a chunk of any size, guesses at lengths given twice, and writes head and body apart.

local cqueues = require "cqueues"
local reason_phrases = require "http.h1_reason_phrases"
local answer = require "batch.server.answer"
local new_body = require("batch.server.body").new
local head = require "batch.server.head"
local pump = require "batch.server.pump"

local monotime = cqueues.monotime
local concat = table.concat

-- Up to here one buffer for head and body is cheaper than a second system call.
local JOINED_BYTES = 65536
-- After so many requests in a row the other connections have their turn.
local IN_A_ROW = 4
local MAX_EMPTY_LINES = 4 -- before a request
local LAST_CHUNK = "0\r\n\r\n"

local h1 = {}

-- Heads ------------------------------------------------------------------------------------------

local status_lines = {}

local function status_line(status)
    local line = status_lines[status]
    if not line then
        line = ("HTTP/1.1 %d %s\r\n"):format(status, reason_phrases[("%d"):format(status)])
        status_lines[status] = line
    end
    return line
end

local date_line, date_at

local function date()
    local now = os.time()
    if now ~= date_at then
        date_at, date_line = now, os.date("!date: %a, %d %b %Y %H:%M:%S GMT\r\n", now)
    end
    return date_line
end

-- Used again for each head: nothing yields while one is put together.
local parts = {}

local function response_head(response, framing, persistence)
    parts[1], parts[2] = status_line(response.status), date()
    local n = 2
    for name, value in pairs(response.headers) do
        parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] = name, ": ", value, "\r\n"
        n = n + 4
    end
    parts[n + 1], parts[n + 2], parts[n + 3] = framing, persistence, "\r\n"
    return concat(parts, "", 1, n + 3)
end

local function persistence_of(request, is_last)
    if is_last then
        return "connection: close\r\n"
    end
    return request.version == "1.0" and "connection: keep-alive\r\n" or ""
end

local function may_have_body(status)
    return status ~= 204 and status ~= 304
end

local function has_body(request, status)
    return request.method ~= "HEAD" and may_have_body(status)
end

-- Answers ----------------------------------------------------------------------------------------

-- Each returns whether the answer is whole, and the number of the body's bytes that were sent.
local function send_text(wire, request, response, is_last)
    local body = response.body
    local framing = may_have_body(response.status) and "content-length: " .. #body .. "\r\n" or ""
    local text = response_head(response, framing, persistence_of(request, is_last))
    if not has_body(request, response.status) then
        return wire:write(text), 0
    elseif #body <= JOINED_BYTES then
        return wire:write(text .. body), #body
    end
    return wire:write(text) and wire:write(body), #body
end

local function send_chunks(connection, request, response, is_chunked)
    local wire, stream = connection.wire, pump.new(response.body)
    local n_bytes = 0
    connection:watch(stream)
    while true do
        local chunk, why, reason = pump.next(stream)
        if why then
            answer.break_off(connection.server, request, response, why, reason)
            return false, n_bytes
        elseif chunk == nil then
            return not is_chunked or wire:write(LAST_CHUNK), n_bytes
        elseif #chunk > 0 then
            local text = is_chunked and ("%x\r\n"):format(#chunk) .. chunk .. "\r\n" or chunk
            if not wire:write(text) then
                return false, n_bytes
            end
            n_bytes = n_bytes + #chunk
        end
    end
end

local function send_stream(connection, request, response, is_last)
    local is_chunked = request.version ~= "1.0"
    local framing = is_chunked and may_have_body(response.status)
        and "transfer-encoding: chunked\r\n" or ""
    local text = response_head(response, framing, persistence_of(request, is_last))
    if not connection.wire:write(text) then
        return false, 0
    elseif not has_body(request, response.status) then
        return true, 0
    end
    return send_chunks(connection, request, response, is_chunked)
end

local function send(connection, request, response, is_last)
    if type(response.body) == "string" then
        return send_text(connection.wire, request, response, is_last)
    end
    return send_stream(connection, request, response, is_last)
end

-- Requests ---------------------------------------------------------------------------------------

-- Answers one request. Returns whether the connection may go on.
local function exchange(connection, request)
    local server = connection.server
    local body = new_body(request, connection.wire, server.limits)
    local response = answer.ask(server, request, body)
    connection.response = response
    local is_last = request.is_last or server.is_stopping or not body:is_skippable()
        or request.version == "1.0" and type(response.body) == "function"
    local is_whole, n_bytes = send(connection, request, response, is_last)
    connection.response = nil
    answer.finish(server, response)
    answer.record(server, request, response, n_bytes, is_whole)
    if is_whole and is_last and not body.is_consumed then
        connection.wire:linger(server.limits.linger_seconds, server.limits.linger_bytes)
    end
    return is_whole and not is_last and body:skip()
end

local function refuse(connection, status, message, request)
    local server, wire = connection.server, connection.wire
    request = request or {}
    request.began_at = request.began_at or monotime()
    request.peer, request.protocol = connection.peer, "HTTP/" .. (request.version or "1.1")
    local response = answer.bad_request(status, message)
    local is_whole, n_bytes = send_text(wire, request, response, true)
    answer.record(server, request, response, n_bytes, is_whole)
    if is_whole then
        wire:linger(server.limits.linger_seconds, server.limits.linger_bytes)
    end
end

-- Some clients send a line's end behind a body (RFC 9112, section 2.2). One that sends nothing else
-- must not keep the reader busy for ever: what is left is taken for a head. Returns how many may
-- still come.
local function skip_empty_lines(wire, n_left)
    while n_left > 0 and wire.ahead:sub(1, 2) == "\r\n" do
        wire.ahead = wire.ahead:sub(3)
        n_left = n_left - 1
    end
    return n_left
end

-- Waits for a whole head. Returns its text, or nil and, if it can be answered, status and message.
local function read_head(connection)
    local wire, limits = connection.wire, connection.server.limits
    local deadline, n_empty_left = monotime() + limits.head_seconds, MAX_EMPTY_LINES
    while true do
        n_empty_left = skip_empty_lines(wire, n_empty_left)
        local stop, status, message = head.find_end(wire.ahead, limits)
        if stop then
            local text = wire.ahead:sub(1, stop)
            wire.ahead = wire.ahead:sub(stop + 1)
            return text
        elseif status then
            return nil, status, message
        end
        local is_there, why = wire:fill(deadline)
        if why == "timeout" then
            return nil, 408, "the request's head took longer than " .. limits.head_seconds .. " s"
        elseif not is_there then
            return nil
        end
    end
end

local function await_request(connection)
    local wire, server = connection.wire, connection.server
    if wire.ahead ~= "" then
        return true
    elseif server.is_stopping then
        return false
    end
    return wire:fill(monotime() + server.limits.idle_seconds, server.idle_wake)
end

--- Answers a connection's requests until it is to be closed.
-- @tparam table connection `server`, `wire`, `peer`
function h1.serve(connection)
    local server, n_in_a_row = connection.server, 0
    while await_request(connection) do
        n_in_a_row = n_in_a_row + 1
        if n_in_a_row % IN_A_ROW == 0 then
            cqueues.sleep(0)
        end
        local text, status, message = read_head(connection)
        local request, partial
        if text then
            request, status, message, partial = head.parse(text, server.limits)
        end
        if not request then
            return status and refuse(connection, status, message, partial)
        end
        request.began_at, request.peer = monotime(), connection.peer
        request.protocol = "HTTP/" .. request.version
        server.n_active, connection.n_answering = server.n_active + 1, 1
        local may_go_on = exchange(connection, request)
        server.n_active, connection.n_answering = server.n_active - 1, 0
        if not may_go_on then
            return
        end
    end
end

--- @export
return h1
