-- SPDX-License-Identifier: MIT
--
-- What a client sends to the server, from the request line to the end of the body: refused with a
-- status, or understood in one way, in whatever pieces it comes. Its first byte is the size of a
-- piece.

local body = require "batch.server.body"
local head = require "batch.server.head"

local LIMITS = {
    request_line_bytes = 200, head_bytes = 1000, head_fields = 10, body_seconds = 10,
    drain_bytes = 1000,
}
local MAX_BODY = 500
local STATUSES = { [400] = true, [414] = true, [417] = true, [431] = true, [501] = true,
    [505] = true }
local WHYS = { too_large = true, broken = true }

-- A wire that brings its bytes in pieces and ends with them.
local Wire = {}
Wire.__index = Wire

local function wire_of(bytes, piece)
    return setmetatable({ ahead = "", _rest = bytes, _piece = piece }, Wire)
end

function Wire:_next()
    if self._rest == "" then
        return nil, "closed"
    end
    local data = self._rest:sub(1, self._piece)
    self._rest = self._rest:sub(self._piece + 1)
    return data
end

function Wire:fill()
    local data, why = self:_next()
    if not data then
        return nil, why
    end
    self.ahead = self.ahead .. data
    return true
end

function Wire:take(n_bytes)
    if self.ahead == "" then
        local is_there, why = self:fill()
        if not is_there then
            return nil, why
        end
    end
    local data = self.ahead:sub(1, n_bytes)
    self.ahead = self.ahead:sub(n_bytes + 1)
    return data
end

function Wire.write()
    return true
end

local function check_refusal(status, message)
    assert(STATUSES[status], "a refusal has one of the statuses")
    assert(type(message) == "string" and #message > 0, "a refusal has a sentence")
end

-- The head's end, looked for each time that a piece has come, as connections do.
local function find_end(bytes, piece)
    for n_bytes = piece, #bytes + piece, piece do
        local stop, status, message = head.find_end(bytes:sub(1, n_bytes), LIMITS)
        if stop or status then
            return stop, status, message
        end
    end
end

-- In pieces a head may be given up before its end has come, but not one that would be taken.
local function check_given_up(bytes, status, message)
    local stop = head.find_end(bytes, LIMITS)
    assert(not (stop and head.parse(bytes:sub(1, stop), LIMITS)), "pieces say what the whole says")
    if status then
        check_refusal(status, message)
    end
end

local function check_request(request)
    assert(not request.path:find "[%c \128-\255]", "a path has no control characters")
    assert(not (request.query or ""):find "[%c \128-\255]", "nor has a query")
    for name, value in pairs(request.fields) do
        assert(name == name:lower() and not name:find "[%c %s:]", "names are words")
        assert(not value:find "[\r\n%z]", "a value is one line")
    end
    assert(not (request.is_chunked and request.body_length), "a body is framed in one way")
end

local function read_body(request, bytes, piece)
    local wire = wire_of(bytes, piece)
    local text, why = body.new(request, wire, LIMITS):read(MAX_BODY)
    return text, why, text and wire.ahead .. wire._rest
end

local function check_body(request, bytes, piece)
    local text, why, rest = read_body(request, bytes, piece)
    local whole, whole_why, whole_rest = read_body(request, bytes, #bytes + 1)
    assert(text == whole and why == whole_why, "pieces say what the whole says")
    assert(rest == whole_rest, "the next request begins at the same place")
    assert(text and #text <= MAX_BODY or WHYS[why], "a body is read or refused")
    assert(not text or request.is_chunked or #text == (request.body_length or 0),
        "a body is as long as it says")
end

return function(input)
    local piece, bytes = (input:byte() or 0) % 64 + 1, input:sub(2)
    local stop, status, message = find_end(bytes, piece)
    if not stop then
        return check_given_up(bytes, status, message)
    end
    assert(stop == head.find_end(bytes, LIMITS), "the head ends at one place")
    local request
    request, status, message = head.parse(bytes:sub(1, stop), LIMITS)
    if not request then
        return check_refusal(status, message)
    end
    check_request(request)
    check_body(request, bytes:sub(stop + 1), piece)
end
