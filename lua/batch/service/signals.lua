-- SPDX-License-Identifier: MIT

--- The signals that a server obeys, as what they ask for. Knows nothing of servers; is for one
-- coroutine of cqueues, in a thread that has not made others yet.

local signal = require "cqueues.signal"

-- Signals that come closer together are one: who signals a process and its group, as timeout(1)
-- does, means no hurry by it.
local ONE_SIGNAL_SECONDS = 0.01

-- cqueues has names for numbers, too, but not only of signals.
local NAMES = { [signal.SIGTERM] = "SIGTERM", [signal.SIGINT] = "SIGINT" }

local methods = {}
local metatable = { __name = "signals", __index = methods }

--- Catches them from now on. Threads that are made later inherit it.
-- @treturn signals
local function catch()
    signal.ignore(signal.SIGPIPE)
    signal.block(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    local listener = signal.listen(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    return setmetatable({ _listener = listener }, metatable)
end

--- Waits for the next one.
-- @treturn string `reload` or `end`
-- @treturn ?string of `end`: the signal's name
function methods:next()
    local number
    repeat
        number = self._listener:wait()
    until number
    if number == signal.SIGHUP then
        return "reload"
    end
    self._listener:wait(ONE_SIGNAL_SECONDS)
    return "end", NAMES[number]
end

--- @export
return { catch = catch }
