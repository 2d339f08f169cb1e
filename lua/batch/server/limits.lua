-- SPDX-License-Identifier: MIT

--- What a server grants its clients. Sizes are bytes, spans are seconds, all measured so that a
-- client that sends or reads a byte a second gets no more than one that sends nothing.

local KIB = 1024

local defaults = {
    connections = 10000,             -- open ones; at the limit further clients wait to be accepted
    request_line_bytes = 12 * KIB,   -- 414 above; an id of 10 kB is still one that is unknown
    head_bytes = 16 * KIB,           -- the request line and all fields; 431 above
    head_fields = 100,               -- 431 above
    head_seconds = 10,               -- for a TLS handshake, and for a head from its first byte on
    body_seconds = 30,               -- from the first look for a body to its end
    stalled_seconds = 30,            -- a client takes nothing of what there is to send
    idle_seconds = 60,               -- between two requests
    drain_bytes = 64 * KIB,          -- of a body that nobody read: skipped; above, cut off
    linger_seconds = 5,              -- a cut-off client gets to read its answer
    linger_bytes = 16 * KIB * KIB,
    streams = 100,                   -- requests at once on one HTTP/2 connection
    idle_frames = 1000,              -- HTTP/2 frames that ask for nothing, between two answers
}

local limits = {}

--- The limits with some of them changed.
-- @tparam[opt] table changes
-- @treturn table
function limits.with(changes)
    local all = {}
    for name, value in pairs(defaults) do
        all[name] = value
    end
    for name, value in pairs(changes or {}) do
        assert(all[name], "no such limit: " .. name)
        all[name] = value
    end
    return all
end

--- @export
return limits
