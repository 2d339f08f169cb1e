-- SPDX-License-Identifier: MIT

--- Stands between the frames of an HTTP/2 client and lua-http, which trusts both: bounds what a
-- header block may grow to, what may wait in memory, how often a client may ask for nothing, and
-- keeps frames away that lua-http would take amiss (for streams that are long closed) or that serve
-- nothing here (priorities). Put on one connection; changes nothing of lua-http itself.

local h2_errors = require("http.h2_error").errors
local h2_stream = require "http.h2_stream"
local new_headers = require("http.headers").new
local EILSEQ = require("cqueues.errno").EILSEQ

local FRAME = h2_stream.frame_types
local IGNORED = 0xff            -- a type that nobody knows is skipped
local END_STREAM, END_HEADERS, PADDED, PRIORITY = 0x1, 0x4, 0x8, 0x20
local WINDOW = 65535            -- what a client may send before it is read: HTTP/2's default
local MAX_BLOCK_FRAMES = 32
local MAX_HEADS = 4             -- a larger block ends the connection; up to here it is answered 431
local MAX_TABLE = 4096          -- of the headers that both sides remember; lua-http's own
local MAX_PSEUDO_FIELDS = 8
local FIELD_OVERHEAD = 32       -- by which RFC 9113 counts
-- A stream begun and given up costs more than a ping.
local RESET_WEIGHT = 10

local guard = {}

local function has_flag(flags, flag)
    return math.floor(flags / flag) % 2 == 1
end

local function fatal(name, message)
    return nil, h2_errors[name]:new { message = message }, EILSEQ
end

-- Counts a frame that asks for nothing.
local function tolerate(self, weight, ...)
    self.n_idle_frames = self.n_idle_frames + weight
    if self.n_idle_frames > self.limits.idle_frames then
        return fatal("ENHANCE_YOUR_CALM", "too many frames that ask for nothing")
    end
    return ...
end

-- Whether there was such a stream; one that never was must not be spoken of.
local function was_open(self, id)
    return id % 2 == 1 and id <= self.connection.highest_odd_stream
end

local checks = {}

local function count_block(self, payload, flags)
    self.n_block_bytes = self.n_block_bytes + #payload
    self.n_block_frames = self.n_block_frames + 1
    if self.n_block_bytes > MAX_HEADS * self.limits.head_bytes
        or self.n_block_frames > MAX_BLOCK_FRAMES then
        return false
    elseif has_flag(flags, END_HEADERS) then
        self.n_block_bytes, self.n_block_frames = 0, 0
    end
    return true
end

-- A tree of priorities would keep every stream's memory for as long as its children live.
local function without_priority(flags, payload)
    if not has_flag(flags, PRIORITY) then
        return flags, payload
    end
    local n_before = has_flag(flags, PADDED) and 1 or 0
    return flags - PRIORITY, payload:sub(1, n_before) .. payload:sub(n_before + 6)
end

checks[FRAME.HEADERS] = function(self, typ, flags, id, payload)
    if self.connection.streams[id] == nil and was_open(self, id) then
        return fatal("STREAM_CLOSED", "HEADERS on a closed stream")
    elseif not count_block(self, payload, flags) then
        return fatal("ENHANCE_YOUR_CALM", "the header block is too large")
    end
    flags, payload = without_priority(flags, payload)
    return typ, flags, id, payload
end

checks[FRAME.CONTINUATION] = function(self, typ, flags, id, payload)
    if not count_block(self, payload, flags) then
        return fatal("ENHANCE_YOUR_CALM", "the header block is too large")
    end
    return typ, flags, id, payload
end

checks[FRAME.DATA] = function(self, typ, flags, id, payload)
    local connection = self.connection
    self.n_held = self.n_held + #payload
    if self.n_held > WINDOW then
        return fatal("FLOW_CONTROL_ERROR", "more data than the window allows")
    end
    local stream = connection.streams[id]
    if stream == nil and not was_open(self, id) then
        return fatal("PROTOCOL_ERROR", "DATA on a stream that was not opened")
    elseif stream == nil or stream.state == "closed" then
        if #payload > 0 then
            connection:write_window_update(#payload)
        end
        return tolerate(self, 1, IGNORED, 0, id, "")
    elseif #payload == 0 and not has_flag(flags, END_STREAM) then
        return tolerate(self, 1, typ, flags, id, payload)
    end
    return typ, flags, id, payload
end

checks[FRAME.PRIORITY] = function(self, _, _, id)
    return tolerate(self, 1, IGNORED, 0, id, "")
end

checks[FRAME.RST_STREAM] = function(self, typ, flags, id, payload)
    if self.connection.streams[id] == nil and was_open(self, id) then
        return tolerate(self, 1, IGNORED, 0, id, "")
    elseif self.connection.streams[id] == nil then
        return fatal("PROTOCOL_ERROR", "RST_STREAM on a stream that was not opened")
    end
    return tolerate(self, RESET_WEIGHT, typ, flags, id, payload)
end

checks[FRAME.WINDOW_UPDATE] = function(self, typ, flags, id, payload)
    if self.connection.streams[id] == nil then
        if not was_open(self, id) then
            return fatal("PROTOCOL_ERROR", "WINDOW_UPDATE on a stream that was not opened")
        end
        return IGNORED, 0, id, ""
    end
    return typ, flags, id, payload
end

checks[FRAME.SETTING] = function(self, ...)
    return tolerate(self, 1, ...)
end

checks[FRAME.PING] = checks[FRAME.SETTING]

-- Fields beyond the limit are dropped as they are decoded, not refused: both sides' tables must go
-- on alike. Who reads the headers finds `is_too_large`.
local function bounded_headers(limits)
    local headers = new_headers()
    local append, n_bytes = headers.append, 0
    headers.append = function(self, name, value, never_index)
        n_bytes = n_bytes + #name + #value + FIELD_OVERHEAD
        local is_pseudo = name:sub(1, 1) == ":" and self:len() < MAX_PSEUDO_FIELDS
        if not is_pseudo
            and (n_bytes > limits.head_bytes or self:len() >= limits.head_fields) then
            self.is_too_large = true
            return
        end
        return append(self, name, value, never_index)
    end
    return headers
end

local function guard_decoding(self)
    local context, limits = self.connection.decoding_context, self.limits
    local decode = context.decode_headers
    context.decode_headers = function(this, payload, _, position)
        return decode(this, payload, bounded_headers(limits), position)
    end
end

-- lua-http tells a client who wants a small table that it will have it, and goes on with a larger
-- one; a client who keeps changing its mind grows a list.
local function guard_encoding(self)
    local context = self.connection.encoding_context
    context.set_max_dynamic_table_size = function(this, size)
        this.total_max = size
        return this:resize_dynamic_table(math.min(size, this.dynamic_max, MAX_TABLE))
    end
    context.encode_max_size = function(this)
        this.has_new_size = true
        return true
    end
end

--- Puts a guard on a connection.
-- @tparam table connection of `http.h2_connection`
-- @tparam table limits
-- @treturn table guard
function guard.attach(connection, limits)
    local self = {
        connection = connection, limits = limits, n_idle_frames = 0, n_held = 0,
        n_block_bytes = 0, n_block_frames = 0,
    }
    local read = connection.read_http2_frame
    local function check(typ, ...)
        local of_type = typ and checks[typ]
        if of_type then
            return of_type(self, typ, ...)
        end
        return typ, ...
    end
    connection.read_http2_frame = function(this, timeout)
        return check(read(this, timeout))
    end
    connection.write_window_update = function(this, n_bytes)
        self.n_held = self.n_held - n_bytes
        return this.stream0:write_window_update_frame(n_bytes, 0, "f")
    end
    guard_decoding(self)
    guard_encoding(self)
    return self
end

--- An answer is out: the client asked for something.
function guard.forgive(self)
    self.n_idle_frames = 0
end

--- Encodes headers for a response.
-- @tparam table connection
-- @tparam table headers of `http.headers`
-- @treturn string
function guard.encode(connection, headers)
    local context = connection.encoding_context
    if context.has_new_size then
        context.has_new_size = nil
        getmetatable(context).__index.encode_max_size(context, context.dynamic_max)
    end
    context:encode_headers(headers)
    local block = context:render_data()
    context:clear_data()
    return block
end

--- @export
return guard
