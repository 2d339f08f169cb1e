-- SPDX-License-Identifier: MIT

--- Requests to a server, over HTTP, HTTPS with its certificate checked, or a unix socket. Each one
-- has a connection of its own. Follows no redirects and knows no proxies: what it is told to reach
-- is what it reaches. Runs in a coroutine of cqueues, and knows nothing of jobs.

local http_client = require "http.client"
local http_headers = require "http.headers"
local version = require "batch.version"

local CONNECT_SECONDS = 10
local ANSWER_SECONDS = 60
-- So long a stream may be silent. A target may take longer; whoever follows asks again then.
local SILENT_SECONDS = 60

-- Not 2: there lua-http 0.4 takes the end of a connection for news, over and over, without end.
local HTTP_VERSION = 1.1

local PORTS = { http = 80, https = 443 }

local methods = {}
local metatable = { __name = "server_transport", __index = methods }

function metatable.__tostring(self)
    return ("transport to %s"):format(self.name)
end

local function parse_authority(scheme, authority)
    local host, port = authority:match("^%[([%x:.]+)%]:?(%d*)$")
    if not host then
        host, port = authority:match("^([%w.-]+):?(%d*)$")
    end
    if not host then
        return nil
    end
    return {
        host = host, port = tonumber(port) or PORTS[scheme], tls = scheme == "https",
        version = HTTP_VERSION,
    }
end

-- Returns where to connect to, what to call it in a request, and what its paths begin with.
local function parse_url(url)
    local path = url:match("^unix:(/.+)$")
    if path then
        return { path = path, tls = false, version = HTTP_VERSION }, "localhost", ""
    end
    local scheme, authority, prefix = url:match("^(https?)://([^/?#]+)(/?[^?#]*)$")
    local place = scheme and parse_authority(scheme, authority)
    if not place then
        return nil, ("%s is no server's URL: http://HOST:PORT, https://HOST or unix:/PATH")
            :format(url)
    end
    return place, authority, prefix:gsub("/+$", "")
end

--- Makes a transport; does not connect.
-- @tparam string url `http://…`, `https://…`, perhaps with what the server's paths begin with, or
-- `unix:/path/of/a/socket`
-- @tparam ?string token
-- @treturn[1] server_transport
-- @treturn[2] nil
-- @treturn[2] string what is wrong with the URL or the token
local function new(url, token)
    local place, authority, prefix = parse_url(url)
    if not place then
        return nil, authority
    end
    if token and not token:find("^[\33-\126]+$") then
        return nil, "the token has blanks or other characters that no token has"
    end
    return setmetatable({
        name = url, _place = place, _authority = authority, _prefix = prefix, _token = token,
    }, metatable)
end

local function make_headers(self, request)
    local headers = http_headers.new()
    headers:append(":method", request.method)
    headers:append(":scheme", self._place.tls and "https" or "http")
    headers:append(":authority", self._authority)
    headers:append(":path", self._prefix .. request.path
        .. (request.query and "?" .. request.query or ""))
    headers:append("user-agent", "luabatch/" .. version)
    if self._token then
        headers:append("authorization", "Bearer " .. self._token, true)
    end
    if request.body then
        headers:append("content-type", "application/json")
        headers:append("content-length", tostring(#request.body))
    end
    for name, value in pairs(request.headers or {}) do
        headers:append(name, value)
    end
    return headers
end

local function send(stream, headers, body)
    local is_sent, message = stream:write_headers(headers, body == nil, CONNECT_SECONDS)
    if is_sent and body then
        is_sent, message = stream:write_chunk(body, true, ANSWER_SECONDS)
    end
    return is_sent, message
end

-- The final headers: servers may send some that say "go on" before.
local function receive_headers(stream)
    local headers, message
    repeat
        headers, message = stream:get_headers(ANSWER_SECONDS)
    until not headers or not headers:get(":status"):find("^1")
    return headers, message
end

-- Why nobody was reached, without the name of the call that found it out, or OpenSSL's number;
-- luaossl puts the verdict on a certificate behind a colon without a blank.
local function reason(message)
    if message == nil then
        return "it hung up"
    end
    return (tostring(message):gsub("^[%l_]+: ", ""):gsub("^error:%x+:[^:]*:[^:]*:", "")
        :gsub("^(certificate verify failed):(%S)", "%1: %2")
        :gsub("^%u%l", string.lower))
end

local function make_response(connection, stream, headers)
    local response = {
        status = tonumber(headers:get(":status")),
        content_type = headers:get("content-type") or "",
    }
    function response.next_chunk()
        local chunk, message = stream:get_next_chunk(SILENT_SECONDS)
        if chunk then
            return chunk
        end
        return nil, message and "the answer broke off: " .. reason(message)
    end
    function response.close()
        connection:close()
    end
    return response
end

--- Sends a request and waits for the beginning of the answer.
-- @tparam table request `method`, `path`, and perhaps `query`, `body` (JSON), `headers`
-- @treturn[1] table the response: `status`, `content_type`, `next_chunk()`, which returns a piece
-- of the body, nil at its end, or nil and a sentence when it breaks off, and `close()`
-- @treturn[2] nil
-- @treturn[2] string why the server could not be reached
function methods:request(request)
    local function refuse(message, connection)
        if connection then
            connection:close()
        end
        return nil, ("cannot reach %s: %s"):format(self.name, reason(message))
    end
    local connection, message = http_client.connect(self._place, CONNECT_SECONDS)
    if not connection then
        return refuse(message)
    end
    local stream
    stream, message = connection:new_stream()
    if not stream then
        return refuse(message, connection)
    end
    local is_sent
    is_sent, message = send(stream, make_headers(self, request), request.body)
    -- A server that refuses a body may answer before it has read it all.
    local headers, why = receive_headers(stream)
    if not headers then
        return refuse(is_sent and why or message or why, connection)
    end
    return make_response(connection, stream, headers)
end

--- Lets go of what is open; there is nothing.
function methods:close()
end

--- @export
return {
    new = new,
}
