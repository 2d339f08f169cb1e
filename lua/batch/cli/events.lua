-- SPDX-License-Identifier: MIT

--- Server-sent events, read piece by piece as they arrive: text in, events out. Knows nothing of
-- where the text comes from, nor of what the events mean.

local methods = {}
local metatable = { __name = "events", __index = methods }

function metatable.__tostring(self)
    return ("events (%d bytes of a line)"):format(#self._rest)
end

--- Makes a reader at the beginning of a stream.
-- @treturn events
local function new()
    return setmetatable({ _rest = "", _event = {} }, metatable)
end

local function dispatch(self, found)
    local event = self._event
    self._event = {}
    if event.data then
        event.name = event.name or "message"
        found[#found + 1] = event
    end
end

local function read_line(self, line, found)
    if line == "" then
        return dispatch(self, found)
    end
    local field, value = line:match("^([^:]*):? ?(.*)$")
    local event = self._event
    if field == "event" then
        event.name = value
    elseif field == "id" then
        event.id = value
    elseif field == "data" then
        event.data = event.data and event.data .. "\n" .. value or value
    end
end

--- Takes the next piece of the stream.
-- @tparam string piece of any length, cut anywhere
-- @treturn table list of the events that it completes: `name`, `data`, and `id` if it has one
function methods:feed(piece)
    local text, found, start = self._rest .. piece, {}, 1
    while true do
        local stop = text:find("\n", start, true)
        if not stop then
            break
        end
        read_line(self, text:sub(start, stop - 1):gsub("\r$", ""), found)
        start = stop + 1
    end
    self._rest = text:sub(start)
    return found
end

--- @export
return {
    new = new,
}
