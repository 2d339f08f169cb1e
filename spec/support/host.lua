-- SPDX-License-Identifier: MIT
--
-- Starts a server of the HTTP API for a spec, and ends it again. One that a killed spec leaves
-- behind ends by itself.

local interpreter = require "spec.support.interpreter"

local Host = {}
Host.__index = Host

--- Starts a server and waits until it listens.
-- @tparam string words for spec/support/host_program.lua
-- @treturn table with `url` and `pid`
local function start(words)
    local command = "echo $$; exec %s spec/support/host_program.lua %s"
    local pipe = assert(io.popen(command:format(interpreter, words)))
    local host = setmetatable({ pid = pipe:read "*l", _pipe = pipe }, Host)
    host.url = pipe:read "*l"
    if not host.url then
        host:stop()
        error("the server did not start")
    end
    return host
end

--- Ends it, as a crash does. A second call does nothing.
function Host:stop()
    if self.pid then
        os.execute("kill -s KILL " .. self.pid)
        self.pid = nil
        self._pipe:close()
    end
end

return { start = start }
