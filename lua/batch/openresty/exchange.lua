-- SPDX-License-Identifier: MIT

--- One request of nginx as the table that the API reads, and the API's answer as nginx sends it.
-- Knows neither jobs nor the runner.

-- What an address may hold as it is, but for %, which is escaped here and nothing else was.
local function escape(byte)
    return ("%%%02X"):format(byte:byte())
end

local ESCAPED = "[%%?#%c\128-\255 ]"

-- The normalised path below the prefix, encoded again.
local function path_below(prefix)
    local path = ngx.var.uri
    if path:sub(1, #prefix) == prefix then
        path = path:sub(#prefix + 1)
    end
    return path:find(ESCAPED) and path:gsub(ESCAPED, escape) or path
end

local function header(name)
    local value = ngx.req.get_headers(0)[name]
    return type(value) == "table" and table.concat(value, ", ") or value
end

-- A body that nginx has put into a file, because it was larger than client_body_buffer_size.
local function read_file(path, max_bytes)
    local file = io.open(path, "rb")
    if not file then
        return nil, "broken"
    end
    local body, why = nil, "too_large"
    if file:seek "end" <= max_bytes then
        file:seek "set"
        body, why = file:read "*a", "broken"
    end
    file:close()
    return body, why
end

local function read_body(max_bytes)
    local is_read = pcall(ngx.req.read_body)
    if not is_read then
        return nil, "broken"
    end
    local body, path = ngx.req.get_body_data(), ngx.req.get_body_file()
    if path then
        return read_file(path, max_bytes)
    elseif body and #body > max_bytes then
        return nil, "too_large"
    end
    return body or ""
end

local function finish(response)
    local f = response.finish
    response.finish = nil
    if f then
        f()
    end
end

-- Works where lua_check_client_abort is on; else a client that left is noticed by writing to it.
-- A stream is over with its client; whoever waits before answering looks at is_gone.
local function watch_client(self)
    if self.is_watched then
        return
    end
    self.is_watched = true
    ngx.on_abort(function()
        self.has_left = true
        if self.stream then
            finish(self.stream)
            ngx.exit(499)
        end
    end)
end

local function new_is_gone(self)
    watch_client(self)
    self.is_gone = function() return self.has_left end
    return self.is_gone
end

local shared = { header = header, read_body = read_body }
local metatable = {}

-- Who asks for is_gone is about to wait. Made only then, as the watch is: most requests are
-- answered at once, and LuaJIT compiles no function that makes another.
function metatable.__index(self, name)
    return name == "is_gone" and new_is_gone(self) or shared[name]
end

--- Makes the table of the request that is being answered.
-- @tparam string prefix what stands before the API's own addresses
-- @tparam function identify who calls: the caller's name and class
-- @treturn table request
local function request(prefix, identify)
    local self = setmetatable({
        method = ngx.req.get_method(), path = path_below(prefix), query = ngx.var.args,
        identify = identify,
    }, metatable)
    if self.method ~= "GET" then
        watch_client(self) -- what writes waits for the store
    end
    return self
end

local function send_head(response)
    ngx.status = response.status
    for name, value in pairs(response.headers) do
        ngx.header[name] = value
    end
end

local function send_text(request_, response)
    ngx.header.content_length = #response.body
    if request_.method == "HEAD" then
        ngx.send_headers()
    else
        ngx.print(response.body)
    end
end

-- Chunk by chunk, each when the one before is on its way. Returns whether the client got all.
local function send_stream(response)
    ngx.send_headers()
    ngx.flush(true)
    for chunk in response.body do
        if not (ngx.print(chunk) and ngx.flush(true)) then
            return false
        end
    end
    return true
end

-- A client must see that something is missing: the connection is cut, without a proper end.
local function cut_off(log, raised)
    if type(raised) ~= "table" then
        log("error", "internal error", { detail = raised })
    else
        log("warn", "an answer was broken off", { detail = tostring(raised) })
    end
    return ngx.exit(ngx.ERROR)
end

local function traceback(raised)
    return type(raised) == "table" and raised or debug.traceback(tostring(raised), 2)
end

--- Sends an answer.
-- @tparam table request_ as `request` made it
-- @tparam table response
-- @tparam function log as in `batch.new`
local function respond(request_, response, log)
    send_head(response)
    if type(response.body) == "string" then
        return send_text(request_, response)
    end
    request_.stream = response
    watch_client(request_)
    local is_fine, raised = xpcall(send_stream, traceback, response)
    finish(response)
    if not is_fine then
        return cut_off(log, raised)
    end
end

--- @export
return { request = request, respond = respond }
