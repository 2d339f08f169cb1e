-- SPDX-License-Identifier: MIT
--
-- Starts the example site for a spec, on a free port, and ends it again. One that a killed spec
-- leaves behind ends by itself: its parent is gone.

local interpreter = require "spec.support.interpreter"

local MAX_SECONDS = 300

local Site = {}
Site.__index = Site

--- Starts a site and waits until it listens.
-- @tparam[opt] string arguments further words of its command line
-- @treturn table with `base`, "http://127.0.0.1:PORT"
local function start(arguments)
    local command = "echo $$; exec %s examples/site.lua --seconds %d %s"
    local pipe = assert(io.popen(command:format(interpreter, MAX_SECONDS, arguments or ""), "r"))
    local pid = assert(pipe:read "*l", "the site did not start")
    local site = setmetatable({ _pid = pid, _pipe = pipe }, Site)
    local line = pipe:read "*l" or ""
    site.base = line:match "^listening on (%S+)$"
    if not site.base then
        site:stop()
        error("the site did not listen: " .. line)
    end
    return site
end

--- Ends the site. A second call does nothing.
function Site:stop()
    if self._pid then
        -- What cannot be refused, for closing the pipe waits for the site's end.
        os.execute("kill -s KILL " .. self._pid)
        self._pid = nil
        self._pipe:close()
    end
end

-- A spec that fails before it can stop its site must not wait for it either: closing the pipe does.
Site.__gc = Site.stop

return { start = start }
