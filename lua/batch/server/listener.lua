-- SPDX-License-Identifier: MIT

--- Where a server listens: the text that names an address, the socket bound to it, and the file of
-- a Unix socket with its owner's rights alone, for whoever may connect to it counts as local.

local cqueues = require "cqueues"
local cqueues_socket = require "cqueues.socket"
local errno = require "cqueues.errno"

local RESOLVE_SECONDS = 10
local OWNER_ONLY = "0177" -- what the umask takes away

local listener = {}

-- Returns host and port, or nil.
local function split(text)
    local host, port = text:match("^%[([%x:.]+)%]:(%d+)$")
    if not host then
        host, port = text:match("^([^:%[%]%s/]+):(%d+)$")
    end
    if host and tonumber(port) <= 65535 then
        return host, port
    end
    return nil
end

--- Understands the text of an address.
-- @tparam string text "127.0.0.1:8080", "[::1]:8080", "host:port" or "unix:/path"
-- @treturn[1] table `host` and `port`, or `path`
-- @treturn[2] nil
-- @treturn[2] string what is wrong with it
function listener.parse(text)
    local path = text:match("^unix:(.+)$")
    if path then
        return { path = path, text = text }
    end
    local host, port = split(text)
    if not host then
        return nil, ('listen must be "host:port", "[address]:port" or "unix:/path", got "%s"')
            :format(text)
    end
    -- A name that stands for loopback whatever a resolver says, or where there is none (RFC 6761).
    local address = host:lower() == "localhost" and "127.0.0.1" or host
    return { host = address, port = tonumber(port), text = text }
end

local function errors_are_values(_, _, why)
    return why
end

local function cannot(place, why)
    if type(why) == "number" then
        why = errno.strerror(why):gsub("^%u", string.lower)
    end
    return nil, ("cannot listen on %s: %s"):format(place.text, why), "address"
end

-- Whether somebody takes connections at the path.
local function is_alive(path)
    local socket = cqueues_socket.connect { path = path }
    socket:onerror(errors_are_values)
    local is_connected = socket:connect(1)
    socket:close()
    return is_connected and true or false
end

-- Removes the socket that a dead server left behind. What is no socket stays, for it is somebody's:
-- only a socket cannot be opened as a file for this reason.
local function make_room(place)
    local file, _, why = io.open(place.path, "r+")
    if file then
        file:close()
    end
    if why == errno.ENOENT then
        return true
    elseif why ~= errno.ENXIO then
        return cannot(place, why and why ~= errno.EISDIR and why or "that file is no socket")
    elseif is_alive(place.path) then
        return cannot(place, errno.EADDRINUSE)
    end
    os.remove(place.path)
    return true
end

--- Begins to listen.
-- @tparam table place as of `parse`
-- @treturn[1] table listener: `socket`, `text` (the real address)
-- @treturn[2] nil
-- @treturn[2] string
-- @treturn[2] string `address`
function listener.open(place)
    if place.path then
        local has_room, message, code = make_room(place)
        if not has_room then
            return nil, message, code
        end
    end
    local is_made, socket, why = pcall(cqueues_socket.listen, {
        host = place.host, port = place.port, path = place.path,
        mask = place.path and OWNER_ONLY or nil, reuseaddr = not place.path or nil,
    })
    if not is_made or not socket then
        return cannot(place, is_made and why or socket)
    end
    socket:onerror(errors_are_values)
    local is_listening, listen_why = socket:listen(RESOLVE_SECONDS)
    if not is_listening then
        socket:close()
        return cannot(place, listen_why)
    end
    if place.path then
        return { socket = socket, path = place.path, text = place.text }
    end
    local _, host, port = socket:localname()
    local text = host:find(":", 1, true) and "[%s]:%d" or "%s:%d"
    return { socket = socket, text = text:format(host, port) }
end

--- Stops listening. The file goes first: while the socket takes connections nobody replaces it.
function listener.close(self)
    if self.socket then
        if self.path then
            os.remove(self.path)
        end
        cqueues.cancel(self.socket:pollfd())
        self.socket:close()
        self.socket = nil
    end
end

--- @export
return listener
