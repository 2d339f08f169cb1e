-- SPDX-License-Identifier: MIT
--
-- A client of HTTP/2 that sends what it is told, frame by frame, right or wrong. Its headers are
-- written without compression, and of those that come it knows no more than that they came.

local http_server = require "spec.support.http_server"

local PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

local TYPES = {
    DATA = 0, HEADERS = 1, PRIORITY = 2, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7,
    WINDOW_UPDATE = 8, CONTINUATION = 9,
}
local NAMES = {}
for name, number in pairs(TYPES) do
    NAMES[number] = name
end

local END_STREAM, END_HEADERS = 1, 4

-- A number as so many bytes, the high ones first. Not string.pack, which LuaJIT lacks.
local function bytes_of(number, n_bytes)
    local bytes = ""
    for _ = 1, n_bytes do
        bytes = string.char(number % 256) .. bytes
        number = math.floor(number / 256)
    end
    return bytes
end

local function number_of(bytes)
    local number = 0
    for i = 1, #bytes do
        number = number * 256 + bytes:byte(i)
    end
    return number
end

local function frame(name, flags, id, payload)
    return bytes_of(#payload, 3) .. string.char(TYPES[name], flags) .. bytes_of(id, 4) .. payload
end

-- A literal field that no table remembers.
local function field(name, value)
    local function text(bytes)
        local n = #bytes
        if n < 127 then
            return string.char(n) .. bytes
        end
        local digits = "\127"
        n = n - 127
        while n >= 128 do
            digits, n = digits .. string.char(n % 128 + 128), math.floor(n / 128)
        end
        return digits .. string.char(n) .. bytes
    end
    return "\0" .. text(name) .. text(value)
end

local H2 = {}
H2.__index = H2

--- Connects, and begins as HTTP/2 does.
-- @tparam string address
-- @tparam[opt] string settings payload of the first SETTINGS
local function connect(address, settings)
    local client = http_server.connect(address)
    client:send(PREFACE .. frame("SETTINGS", 0, 0, settings or ""))
    return setmetatable({ client = client, buffer = "" }, H2)
end

--- Sends a frame. Returns whether the server took it.
function H2:send(name, flags, id, payload)
    return self.client:send(frame(name, flags, id, payload or ""))
end

--- The block of a request's headers.
function H2:block(method, path, more)
    local block = field(":method", method) .. field(":scheme", "http") .. field(":path", path)
        .. field(":authority", "a")
    for name, value in pairs(more or {}) do
        block = block .. field(name, value)
    end
    return block
end

--- Sends a request, whole or waiting for its body.
function H2:request(id, method, path, more, has_body)
    local flags = END_HEADERS + (has_body and 0 or END_STREAM)
    return self:send("HEADERS", flags, id, self:block(method, path, more))
end

--- The next frame: {name =, flags =, id =, payload =}, or nil when the server has closed.
function H2:next()
    while true do
        if #self.buffer >= 9 then
            local size = number_of(self.buffer:sub(1, 3))
            local number, flags = self.buffer:byte(4, 5)
            local id = number_of(self.buffer:sub(6, 9))
            if #self.buffer >= 9 + size then
                local payload = self.buffer:sub(10, 9 + size)
                self.buffer = self.buffer:sub(10 + size)
                return { name = NAMES[number], flags = flags, id = id, payload = payload }
            end
        end
        local piece, why = self.client:some()
        if not piece then
            assert(why ~= require("cqueues.errno").ETIMEDOUT, "the server says nothing")
            return nil
        end
        self.buffer = self.buffer .. piece
    end
end

--- Reads on to a frame of that name, and of that stream if one is given; nil if the server closes.
function H2:await(name, id)
    repeat
        local found = self:next()
        if found and found.name == name and (not id or found.id == id) then
            return found
        end
    until not found
    return nil
end

--- Reads to the server's GOAWAY and gives its code; nil if it closes without.
function H2:goodbye()
    local found = self:await("GOAWAY")
    return found and number_of(found.payload:sub(5, 8))
end

--- The data of a stream up to its end.
function H2:body(id)
    local pieces = {}
    repeat
        local found = assert(self:next(), "closed")
        if found.id == id and found.name == "DATA" then
            pieces[#pieces + 1] = found.payload
        end
    until found.id == id and found.flags % 2 == END_STREAM
    return table.concat(pieces)
end

function H2:close()
    self.client:close()
end

--- A setting as it stands in SETTINGS.
local function setting(id, value)
    return bytes_of(id, 2) .. bytes_of(value, 4)
end

return { connect = connect, setting = setting, bytes_of = bytes_of, number_of = number_of,
    frame = frame, END_STREAM = END_STREAM, END_HEADERS = END_HEADERS }
