-- SPDX-License-Identifier: MIT

--- The body of an HTTP/1 request: by length or in chunks, never more of it in memory than the
-- caller asked for. Knows the wire and how bodies are framed, nothing of heads or answers.

local cqueues = require "cqueues"

local monotime = cqueues.monotime

local MAX_SIZE_LINE = 256       -- a chunk's size and extensions, which nobody uses
local MAX_TRAILER_BYTES = 8192
local CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"

local Body = {}
Body.__index = Body
Body.__name = "body"

--- The body of a request, not read yet.
-- @tparam table request as of `head.parse`
-- @tparam table wire
-- @tparam table limits `body_seconds`
-- @treturn table with `is_consumed`, and `fault`, what is wrong with its framing
local function new(request, wire, limits)
    return setmetatable({
        _wire = wire, _limits = limits, _left = request.body_length or 0,
        _is_chunked = request.is_chunked, _expects_continue = request.expects_continue,
        is_consumed = not request.is_chunked and (request.body_length or 0) == 0,
    }, Body)
end

-- The sender is told to go on once, by whoever wants the body first.
local function begin(self)
    self._deadline = self._deadline or monotime() + self._limits.body_seconds
    if self._expects_continue then
        self._expects_continue = false
        if self._wire.ahead == "" then
            return self._wire:write(CONTINUE)
        end
    end
    return true
end

local function broken(self, fault)
    self.fault = fault
    return nil, "broken"
end

local function lost(why)
    return nil, why == "timeout" and "timeout" or "broken"
end

-- As long as a client sends faster than its bytes are understood, reading never waits: between two
-- pieces the others have their turn. Small chunks take long.
local function give_way()
    cqueues.sleep(0)
end

-- A line without its end.
local function read_line(self, max_bytes)
    local wire = self._wire
    while true do
        local stop = wire.ahead:find("\n", 1, true)
        if stop and stop <= max_bytes then
            local line = wire.ahead:sub(1, stop)
            wire.ahead = wire.ahead:sub(stop + 1)
            if line:sub(-2) ~= "\r\n" then
                return broken(self, "a line of the chunked body must end in CR LF")
            end
            return line:sub(1, -3)
        elseif stop or #wire.ahead > max_bytes then
            return broken(self, "a line of the chunked body is too long")
        end
        local is_there, why = wire:fill(self._deadline)
        if not is_there then
            return lost(why)
        end
        give_way()
    end
end

local function read_size(self)
    local line, why = read_line(self, MAX_SIZE_LINE)
    if not line then
        return nil, why
    end
    local digits = line:match("^(%x+)$") or line:match("^(%x+)[ \t]*;[^%c]*$")
    if not digits then
        return broken(self, "a chunk's size must be a hexadecimal number")
    elseif #digits > 12 then
        return broken(self, "a chunk's size is out of range")
    end
    return tonumber(digits, 16)
end

local function skip_trailers(self)
    local n_left = MAX_TRAILER_BYTES
    repeat
        local line, why = read_line(self, n_left)
        if not line then
            return nil, why
        end
        n_left = n_left - #line - 2
    until line == ""
    return true
end

-- Gives n_bytes, in pieces, to `keep`.
local function read_bytes(self, n_bytes, keep)
    while n_bytes > 0 do
        local piece, why = self._wire:take(n_bytes, self._deadline)
        if not piece then
            return lost(why)
        end
        n_bytes = n_bytes - #piece
        self._left = self._left - #piece
        keep(piece)
        if n_bytes > 0 then
            give_way()
        end
    end
    return true
end

local function end_chunk(self)
    local line, why = read_line(self, 2)
    if line == "" then
        return true
    elseif self.fault or line then
        return broken(self, "a chunk is longer than its size")
    end
    return nil, why
end

local function read_chunks(self, max_bytes, keep)
    local n_bytes = 0
    while true do
        local size, why = read_size(self)
        if not size then
            return nil, why
        elseif size == 0 then
            return skip_trailers(self)
        end
        n_bytes = n_bytes + size
        if n_bytes > max_bytes then
            return nil, "too_large"
        end
        local is_read, read_why = read_bytes(self, size, keep)
        if not is_read then
            return nil, read_why
        end
        local is_closed, close_why = end_chunk(self)
        if not is_closed then
            return nil, close_why
        end
    end
end

local function read_all(self, max_bytes, keep)
    if not self._is_chunked and self._left > max_bytes then
        return nil, "too_large"
    end
    local is_begun, why = begin(self)
    if not is_begun then
        return lost(why)
    end
    if self._is_chunked then
        return read_chunks(self, max_bytes, keep)
    end
    return read_bytes(self, self._left, keep)
end

--- Reads the whole body. A second call gives the same again.
-- @tparam integer max_bytes
-- @treturn[1] string
-- @treturn[2] nil
-- @treturn[2] string `too_large`, `timeout` or `broken`
function Body:read(max_bytes)
    if self._why then
        return nil, self._why
    elseif not self._text then
        local pieces = {}
        if not self.is_consumed then
            local is_read, why = read_all(self, max_bytes, function(piece)
                pieces[#pieces + 1] = piece
            end)
            if not is_read then
                self._why = why
                return nil, why
            end
            self.is_consumed = true
        end
        self._text = table.concat(pieces)
    end
    return self._text
end

--- Whether the client has hung up, as far as one can see: not past a body or a next request.
-- @treturn boolean
function Body:is_gone()
    return self.is_consumed and self._wire.ahead == "" and (self._wire:is_gone())
end

--- Whether what nobody read can be skipped after the answer, so that the connection may be kept.
function Body:is_skippable()
    return self.is_consumed or not (self._why or self._expects_continue)
        and (self._is_chunked or self._left <= self._limits.drain_bytes)
end

--- Skips what nobody read.
-- @treturn boolean whether the next request begins here
function Body:skip()
    if not self.is_consumed then
        self.is_consumed = read_all(self, self._limits.drain_bytes, function() end) == true
    end
    return self.is_consumed
end

--- @export
return { new = new }
