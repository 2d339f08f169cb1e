-- SPDX-License-Identifier: MIT
--
-- A server on loopback that answers with the bytes that a spec gave it, right or wrong, and says
-- that it closes the connection then:
--
--     GET /NAME               the bytes under that name, then the end of the connection
--     GET /NAME?hold          the same, but the connection stays open
--     GET /NAME?drip=SECONDS  a byte each so many seconds
--     any /echo               what was requested, byte by byte, as the body of a decent answer
--
-- It runs in a process of its own, for a client waits in C, and ends with its parent.

local interpreter = require "spec.support.interpreter"

local SERVER = [[
local cqueues, socket = require "cqueues", require "cqueues.socket"
local folder = os.getenv "FOLDER"
local function answers_of(name)
    local file = io.open(folder .. "/" .. name, "rb")
    local bytes = file and file:read "*a" or "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
    if file then file:close() end
    return bytes
end
local function read_request(client)
    local lines, length = {}, 0
    for line in client:lines "*L" do
        lines[#lines + 1] = line
        length = tonumber(line:lower():match "^content%-length:%s*(%d+)") or length
        if line == "\r\n" then break end
    end
    return table.concat(lines), length > 0 and client:read(length) or ""
end
local function serve(client)
    local head, body = read_request(client)
    local name, query = head:match "^%u+ /([%w_.]*)%??(%S*)"
    if name == "echo" then
        local text = head .. body
        client:write(("HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"):format(#text), text)
        return client:flush() and serve(client)
    elseif not name then
        return
    end
    local bytes, pause = answers_of(name), tonumber(query:match "^drip=(.*)")
    for i = 1, pause and #bytes or 0 do
        if not client:write(bytes:sub(i, i)) or not client:flush() then return end
        cqueues.sleep(pause)
    end
    if not pause then
        client:write(bytes)
        client:flush()
    end
    if query == "hold" then client:read(1) end
end
local listener = assert(socket.listen { host = "127.0.0.1", port = 0 })
assert(listener:listen())
local _, _, port = listener:localname()
print(port)
io.stdout:flush()
local queue = cqueues.new()
queue:wrap(function()
    for client in listener:clients() do
        client:setmode("bn", "bn")
        client:onerror(function(_, _, code) return code end)
        queue:wrap(function()
            serve(client)
            client:shutdown "w"
            client:close()
        end)
    end
end)
local function parent()
    local file = io.open "/proc/self/stat"
    local line = file:read "*a"
    file:close()
    return line:match "^.*%) %S+ (%d+)"
end
local born_to = parent()
repeat queue:step(0.25) until parent() ~= born_to
]]

local Canned = {}
Canned.__index = Canned

local function quoted(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Starts a server, and waits until it listens.
-- @treturn table with `base`, "http://127.0.0.1:PORT", and `folder`, where its answers lie
local function start()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local command = "echo $$; FOLDER=%s exec %s -e %s"
    local pipe = assert(io.popen(command:format(folder, interpreter, quoted(SERVER)), "r"))
    local canned = setmetatable({ folder = folder, _pipe = pipe }, Canned)
    canned._pid = pipe:read "*l"
    canned.base = "http://127.0.0.1:" .. assert(pipe:read "*l", "the server did not start")
    return canned
end

--- Puts an answer there. It is given one more field, so that no client counts on the connection.
-- @tparam string name
-- @tparam string bytes of the whole answer, header and all
-- @treturn string its URL
function Canned:put(name, bytes)
    local file = assert(io.open(self.folder .. "/" .. name, "wb"))
    file:write((bytes:gsub("^(HTTP/[^\r]*\r\n)", "%1connection: close\r\n")))
    file:close()
    return self.base .. "/" .. name
end

--- Puts a body there under a header.
-- @tparam string name
-- @tparam string body
-- @tparam[opt] string fields further lines of the header, each with its end
-- @treturn string its URL
function Canned:put_body(name, body, fields)
    local head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n" .. (fields or "")
    return self:put(name, head .. ("content-length: %d\r\n\r\n"):format(#body) .. body)
end

--- What a program makes of bytes: `canned:filter("gzip -c", text)`.
function Canned:filter(command, bytes)
    local given, made = self.folder .. "/.given", self.folder .. "/.made"
    local file = assert(io.open(given, "wb"))
    file:write(bytes)
    file:close()
    assert(os.execute(("%s <%s >%s"):format(command, given, made)))
    file = assert(io.open(made, "rb"))
    bytes = file:read "*a"
    file:close()
    return bytes
end

--- Ends the server.
function Canned:stop()
    os.execute(("kill -s KILL %s; rm -r %s"):format(self._pid, self.folder))
    self._pipe:close()
end

return { start = start }
