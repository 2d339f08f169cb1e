-- SPDX-License-Identifier: MIT
--
-- What a program's hooks and its log function are called with, and what becomes of what they raise.
-- Knows events as the core hands them out; called by poll alone.

-- The arguments of each hook, by the event's kind.
local arguments = {
    depth = function(event) return event.number end,
    inflight = function(event) return event.number end,
    target = function(event) return event.text, event.seconds, event.bytes, event.info end,
    job = function(event) return event.status, event.info end,
    job_seconds = function(event) return event.seconds, event.info end,
    log = function(event)
        local fields = event.info
        fields.detail = event.detail
        return event.level, event.text, fields
    end,
}

-- An error object may have a __tostring that fails.
local function shown(value)
    local ok, text = pcall(tostring, value)
    return ok and text or "an error of type " .. type(value)
end

local function report(what, raised, log)
    local message = what .. " raised an error"
    local detail = shown(raised)
    if log and pcall(log, "error", message, { detail = detail }) then
        return
    end
    io.stderr:write(("time=%s level=error message=%q detail=%q\n"):format(
        os.date "!%Y-%m-%dT%H:%M:%SZ", message, (detail:gsub("%c", " "))))
end

--- Calls a function of the program's. Raises nothing: what it raises is logged.
-- @tparam string what it is, for the log
-- @tparam ?function log
-- @tparam function f
-- @param ... its arguments
local function run(what, log, f, ...)
    local ok, raised = pcall(f, ...)
    if not ok then
        report(what, raised, log)
    end
end

--- Calls the hook, or the log function, that an event is for. Raises nothing.
-- @tparam table event as the core's `next_event` gives it
-- @tparam table hooks
-- @tparam[opt] function log
local function deliver(event, hooks, log)
    if event.kind == "log" then
        run("the log function", nil, log, arguments.log(event))
    else
        run("hook " .. event.kind, log, hooks[event.kind], arguments[event.kind](event))
    end
end

return { deliver = deliver, run = run }
