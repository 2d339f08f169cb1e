-- SPDX-License-Identifier: MIT
--
-- A fetch's context that is cancelled already, or will be.

local socket = require "cqueues.socket"

local cancelled = {}

local held -- its other end closes with it

--- The fields of a context whose cancel_fd is readable.
function cancelled.ctx()
    local there, here = socket.pair()
    held = { there, here }
    there:write("x")
    there:flush()
    return { cancel_fd = here:pollfd() }
end

--- Of one that is not.
function cancelled.not_yet()
    held = { socket.pair() }
    return { cancel_fd = held[2]:pollfd() }
end

return cancelled
