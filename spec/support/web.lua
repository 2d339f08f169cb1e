-- SPDX-License-Identifier: MIT
--
-- An HTTP/1.1 client for specs with very many requests at once, each over a connection of its own.
-- Called in a coroutine of a cqueues controller it lets the others go on; else it blocks.

local cjson = require "cjson"
local cqueues = require "cqueues"
local cqueues_socket = require "cqueues.socket"

local PATIENCE_SECONDS = 30

local function errors_are_values(_, _, why)
    return why
end

local Answer = {}
Answer.__index = Answer

-- One line without its end; nil when the connection has ended.
local function read_line(socket)
    local line = socket:xread("*L", "b", PATIENCE_SECONDS)
    return line and line:gsub("\r?\n$", "")
end

local function read_head(self)
    if self.status then
        return true
    end
    local status = (read_line(self.socket) or ""):match "^HTTP/1.1 (%d%d%d)"
    if not status then
        return nil, "no answer came"
    end
    self.status, self.headers = tonumber(status), {}
    for line in function() return read_line(self.socket) end do
        if line == "" then
            return true
        end
        local name, value = line:match "^([^:]+):%s*(.*)$"
        self.headers[name:lower()] = value
    end
    return nil, "the answer's head has no end"
end

--- Connects, and sends a request; does not wait for its answer, which may be read line by line.
-- @treturn ?Answer
local function begin(port, method, path, body, headers)
    local self = setmetatable({ began_at = cqueues.monotime(), unread = "" }, Answer)
    self.socket = cqueues_socket.connect { host = "127.0.0.1", port = port }
    self.socket:onerror(errors_are_values)
    self.socket:setmode("b", "bn")
    self.is_without_body = method == "HEAD"
    local lines = { ("%s %s HTTP/1.1"):format(method, path), "connection: close" }
    if not (headers and headers.host) then
        lines[3] = "host: localhost"
    end
    for name, value in pairs(headers or {}) do
        lines[#lines + 1] = name .. ": " .. value
    end
    if body then
        lines[#lines + 1] = "content-length: " .. #body
    end
    local text = table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or "")
    if not self.socket:xwrite(text, "bn", PATIENCE_SECONDS) then
        self:close()
        return nil, "the request could not be sent"
    end
    return self
end

-- The next piece of the body; nil at its end, or with a sentence if it was broken off.
local function read_piece(self)
    local has_head, why = read_head(self)
    if not has_head or self.is_without_body or self.has_ended then
        return nil, why
    elseif self.headers["transfer-encoding"] ~= "chunked" then
        local length = tonumber(self.headers["content-length"])
        self.has_ended = true
        return self.socket:xread(length or "*a", "b", PATIENCE_SECONDS)
    end
    local size = tonumber(read_line(self.socket) or "", 16)
    local piece = size and self.socket:xread(size + 2, "b", PATIENCE_SECONDS)
    if not piece or #piece < size + 2 then
        self.has_ended, self.is_broken = true, true
        return nil, "broken off"
    end
    self.has_ended = size == 0
    return size > 0 and piece:sub(1, -3) or nil
end

--- The next line of the body, without its end; nil at the end.
function Answer:line()
    while true do
        local line, rest = self.unread:match "^([^\n]*)\n(.*)$"
        if line then
            self.unread = rest
            return line
        end
        local piece = read_piece(self)
        if not piece then
            return nil
        end
        self.unread = self.unread .. piece
    end
end

--- Reads what is left of the answer.
-- @treturn ?Answer with `status`, `headers` by lower-case names, `body`, `seconds`, and `is_broken`
-- if it has no proper end; nil and a sentence when none came
function Answer:finish()
    local pieces = { self.unread }
    for piece in function() return read_piece(self) end do
        pieces[#pieces + 1] = piece
    end
    self.body, self.seconds = table.concat(pieces), cqueues.monotime() - self.began_at
    self:close()
    if not self.status then
        return nil, "no answer came"
    end
    return self
end

function Answer:json()
    return cjson.decode(self.body)
end

--- Goes away, whatever is still to come.
function Answer:close()
    self.socket:close()
end

--- Makes a request; gives what `Answer:finish` does.
local function request(...)
    local answer, why = begin(...)
    if not answer then
        return nil, why
    end
    return answer:finish()
end

--- Runs functions at once, each in a coroutine; returns when all have ended. What one raises is
-- raised.
-- @tparam {function,...} all
local function together(all)
    local controller = cqueues.new()
    for _, each in ipairs(all) do
        controller:wrap(each)
    end
    assert(controller:loop())
end

return { begin = begin, request = request, together = together }
