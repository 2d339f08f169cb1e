-- SPDX-License-Identifier: MIT

--- A fetch for light threads: one GET by cosocket, over connections that are kept. Only plain HTTP
-- to addresses written as numbers; with names nginx needs a `resolver`.

local MAX_BODY = 2 ^ 20 -- bytes
local TIMEOUT_MS = 10000
local KEPT_MS, KEPT_CONNECTIONS = 60000, 64

-- Reads status and headers.
local function read_head(socket)
    local line, message = socket:receive "*l"
    local status = line and tonumber(line:match "^HTTP/1%.%d (%d%d%d)")
    if not status then
        return nil, message or "this is not HTTP"
    end
    local headers = {}
    repeat
        line, message = socket:receive "*l"
        local name, value = (line or ""):match "^([^:]+):%s*(.-)%s*$"
        if name then
            headers[name:lower()] = value
        end
    until not line or line == ""
    return line and status, message or headers
end

-- Reads a body of the form "size in hex, bytes, size, bytes, …, 0".
local function read_chunks(socket)
    local chunks, size = {}, 0
    repeat
        local line, message = socket:receive "*l"
        local len = line and tonumber(line:match "^%x+", 16)
        size = size + (len or 0)
        if not len or size > MAX_BODY then
            return nil, message or "the body is broken or too large"
        end
        chunks[#chunks + 1] = socket:receive(len)
        socket:receive "*l"
    until len == 0
    return table.concat(chunks)
end

local function read_body(socket, headers)
    if headers["transfer-encoding"] == "chunked" then
        return read_chunks(socket)
    end
    local len = tonumber(headers["content-length"])
    if not len or len > MAX_BODY then
        return nil, "the body has no length, or is too large"
    end
    return socket:receive(len)
end

local function exchange(socket, host, path)
    local _, message = socket:send(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n"):format(path, host))
    local status, headers = nil, message
    if not message then
        status, headers = read_head(socket)
    end
    if not status then
        return nil, headers
    end
    local body
    body, message = read_body(socket, headers)
    return body and status, message or body
end

-- What becomes of a status: the content, or a refusal; busy hosts are asked again.
local function judge(status, body)
    if status == 200 then
        return { content = body, meta = { status = status } }
    elseif status == 429 or status == 503 then
        return nil, require("batch").retry_later("the host is busy")
    end
    return nil, "HTTP " .. status
end

return function(target)
    local host, path = target.url:match "^http://([^/]+)(/?.*)$"
    local address, port = (host or ""):match "^([^:]+):?(%d*)$"
    if not address then
        return nil, "no URL of the form http://ADDRESS:PORT/PATH"
    end
    local socket = ngx.socket.tcp()
    socket:settimeout(TIMEOUT_MS)
    local is_connected, message = socket:connect(address, tonumber(port) or 80)
    if not is_connected then
        return nil, message
    end
    local status, body = exchange(socket, host, path == "" and "/" or path)
    if not status then
        socket:close()
        return nil, body
    end
    socket:setkeepalive(KEPT_MS, KEPT_CONNECTIONS)
    return judge(status, body)
end
