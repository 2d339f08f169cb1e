-- SPDX-License-Identifier: MIT

--- One client's bytes: what came in and is not used yet, and writing with patience only for clients
-- that read. Knows the socket and deadlines, nothing of HTTP. Waits by yielding to cqueues.

local cqueues = require "cqueues"
local errno = require "cqueues.errno"

local monotime, poll = cqueues.monotime, cqueues.poll
local EAGAIN, ETIMEDOUT = errno.EAGAIN, errno.ETIMEDOUT

-- cqueues grows a socket's buffer to what is asked for and keeps it, so heads are read in small
-- pieces: most connections never see anything else.
local HEAD_PIECE = 4096
local BODY_PIECE = 65536

local Wire = {}
Wire.__index = Wire
Wire.__name = "wire"

local function errors_are_values(_, _, why)
    return why
end

--- Takes over a socket.
-- @param socket of cqueues, connected
-- @tparam number stalled_seconds how long a client may take nothing
-- @treturn table with `ahead`, the bytes that came in and are not used yet
local function new(socket, stalled_seconds)
    socket:onerror(errors_are_values)
    socket:setmode("b", "bn")
    socket:setvbuf("full", BODY_PIECE)
    return setmetatable({
        socket = socket, ahead = "", is_ended = false, _stalled_seconds = stalled_seconds,
    }, Wire)
end

--- Reads what there is, without waiting.
-- @tparam[opt] integer n_bytes at most
-- @treturn[1] string
-- @treturn[2] nil
-- @treturn[2] string `none` (yet) or `closed`
function Wire:read(n_bytes)
    if self.is_closed then
        return nil, "closed"
    end
    local data, why = self.socket:recv(-(n_bytes or HEAD_PIECE), "b")
    if data and #data > 0 then
        return data
    elseif why == EAGAIN then
        return nil, "none"
    end
    self.is_ended = true
    return nil, "closed"
end

--- Waits for bytes and gives them.
-- @tparam number deadline on the monotonic clock
-- @param[opt] wake a condition that ends the wait, too
-- @tparam[opt] integer n_bytes at most
-- @treturn[1] string
-- @treturn[2] nil
-- @treturn[2] string `timeout`, `closed` or `woken`
function Wire:await(deadline, wake, n_bytes)
    while true do
        local data, why = self:read(n_bytes)
        if data then
            return data
        elseif why == "closed" then
            return nil, why
        end
        local left = deadline - monotime()
        if left <= 0 then
            return nil, "timeout"
        elseif wake then
            if poll(self.socket, wake, left) == wake then
                return nil, "woken"
            end
        else
            poll(self.socket, left)
        end
    end
end

--- Waits for bytes and puts them behind those that are ahead.
-- @treturn boolean as `await`
function Wire:fill(deadline, wake)
    local data, why = self:await(deadline, wake)
    if not data then
        return nil, why
    end
    self.ahead = self.ahead == "" and data or self.ahead .. data
    return true
end

--- Gives up to so many bytes, those that are ahead first.
-- @treturn string or nil and why, as `await`
function Wire:take(n_bytes, deadline)
    local ahead = self.ahead
    if ahead == "" then
        return self:await(deadline, nil, math.min(n_bytes, BODY_PIECE))
    elseif #ahead <= n_bytes then
        self.ahead = ""
        return ahead
    end
    self.ahead = ahead:sub(n_bytes + 1)
    return ahead:sub(1, n_bytes)
end

-- Goes on with a write that the client's slowness interrupted. Any byte taken renews its time.
local function write_slowly(self, data, from)
    local socket, n_left = self.socket, math.huge
    local deadline
    while not self.is_closed do
        local n_sent, why = socket:send(data, from, #data, "bn")
        from = from + (n_sent or 0)
        if not why then
            return true
        elseif why ~= EAGAIN and why ~= ETIMEDOUT then
            self.is_ended = true
            return nil, "closed"
        end
        local _, n_waiting = socket:pending()
        local n_left_now = #data - from + 1 + n_waiting
        if n_left_now < n_left then
            n_left, deadline = n_left_now, monotime() + self._stalled_seconds
        end
        local left = deadline - monotime()
        if left <= 0 then
            return nil, "timeout"
        end
        poll(socket, left)
    end
    return nil, "closed"
end

--- Sends bytes; returns when the kernel has them all.
-- @tparam string data
-- @treturn[1] true
-- @treturn[2] nil
-- @treturn[2] string `timeout` or `closed`
function Wire:write(data)
    if self.is_closed then
        return nil, "closed"
    end
    local n_sent, why = self.socket:send(data, 1, #data, "bn")
    if not why then
        return true
    elseif why ~= EAGAIN then
        self.is_ended = true
        return nil, "closed"
    end
    return write_slowly(self, data, n_sent + 1)
end

--- What to poll in order to notice that the client has gone.
function Wire:watch()
    return { pollfd = self.socket:pollfd(), events = "r" }
end

--- Whether the client has hung up, as far as one can see; bytes that came are kept.
-- @treturn[1] true
-- @treturn[2] false
-- @treturn[2] boolean whether there were bytes: then there is no seeing behind them
function Wire:is_gone()
    local data, why = self:read()
    if data then
        self.ahead = self.ahead .. data
        return false, true
    end
    return why == "closed", false
end

--- Lets the client read the answer before the connection goes: closing with bytes unread resets it.
-- @tparam number seconds
-- @tparam number n_bytes at most so many are read and dropped
function Wire:linger(seconds, n_bytes)
    local deadline = monotime() + seconds
    self.socket:shutdown("w")
    self.ahead = ""
    while n_bytes > 0 do
        local data = self:await(deadline, nil, BODY_PIECE)
        if not data then
            return
        end
        n_bytes = n_bytes - #data
    end
end

--- Closes the socket and wakes whoever waits for it. A second call does nothing.
function Wire:close()
    if not self.is_closed then
        self.is_closed = true
        cqueues.cancel(self.socket:pollfd())
        self.socket:close()
    end
end

--- @export
return { new = new }
