-- SPDX-License-Identifier: MIT

--- What a service tells its manager (sd_notify): one datagram to the socket that the manager names
-- in NOTIFY_SOCKET. Knows no server; what the words mean stands in sd_notify(3).

local errno = require "cqueues.errno"
local socket = require "cqueues.socket"

local SECONDS = 1      -- at most, for a manager whose socket is full
local MAX_PATH = 107   -- cqueues would cut a longer one

-- Without this cqueues raises what the world refuses.
local function return_code(_, _, code)
    return code
end

local function send(path, state)
    local connection = socket.connect { path = path, type = socket.SOCK_DGRAM }
    connection:onerror(return_code)
    local is_sent, code = connection:connect(SECONDS)
    if is_sent then
        is_sent, code = connection:xwrite(state, "bn", SECONDS)
    end
    connection:close()
    return is_sent, code
end

local function refuse(path, reason)
    return nil, ("cannot notify %s: %s"):format(path, reason), "notify"
end

--- Tells the manager how the service does. Inside a cqueues coroutine it may yield.
-- @tparam string state such as `READY=1`, `RELOADING=1` or `STOPPING=1`; several with line feeds
-- @treturn[1] boolean true, also when there is no manager to tell
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `notify`
local function notify(state)
    local path = os.getenv "NOTIFY_SOCKET"
    if not path or path == "" then
        return true
    elseif path:sub(1, 1) ~= "/" then
        -- cqueues pads a name in the abstract namespace, which makes it another one. systemd itself
        -- gives paths.
        return refuse(path, "not an absolute path")
    elseif #path > MAX_PATH then
        return refuse(path, "the path is too long")
    end
    local is_sent, code = send(path, state)
    if not is_sent then
        return refuse(path, errno.strerror(code))
    end
    return true
end

--- @export
return { notify = notify }
