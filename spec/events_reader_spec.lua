-- SPDX-License-Identifier: MIT
--
-- Server-sent events are read alike however the network cuts them.

local events = require "batch.cli.events"

local STREAM = "retry: 1000\n\nevent: target\nid: 7\ndata: {\"a\":\n: a heartbeat\ndata: 1}\n\n"
    .. ":\n\nid: 8\r\nevent:job\r\ndata:last\r\n\r\nevent: nothing\n\ndata: no name\n\ndata: unfin"

local function read(pieces)
    local reader, found = events.new(), {}
    for _, piece in ipairs(pieces) do
        for _, event in ipairs(reader:feed(piece)) do
            found[#found + 1] = { event.name, event.id or false, event.data }
        end
    end
    return found
end

local EXPECTED = {
    { "target", "7", '{"a":\n1}' }, { "job", "8", "last" }, { "message", false, "no name" },
}

describe("the reader of events", function()
    it("joins lines of data, passes comments over, and waits for an event's end", function()
        assert.same(EXPECTED, read { STREAM })
    end)

    it("does not care where the stream is cut", function()
        for n = 1, 7 do
            local pieces = {}
            for start = 1, #STREAM, n do
                pieces[#pieces + 1] = STREAM:sub(start, start + n - 1)
            end
            assert.same(EXPECTED, read(pieces))
        end
    end)
end)
