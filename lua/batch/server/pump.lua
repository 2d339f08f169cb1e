-- SPDX-License-Identifier: MIT

--- Runs a response's body function, and notices while that waits that its client has gone. The
-- function runs in a coroutine of its own; what it waits for is waited for here, together with what
-- tells of the client. Knows neither sockets nor HTTP.

local cqueues = require "cqueues"

local POLL = cqueues._POLL
local poll, resume = cqueues.poll, coroutine.resume
local unpack = table.unpack or unpack

local pump = {}

local function chunks(body)
    for chunk in body do
        coroutine.yield(chunk)
    end
end

-- Waits for what the body waits for, unless the client goes first. Returns whether it went, else
-- what the body gets to know: the objects that are ready.
local function wait_for(stream, n_objects, ...)
    local objects = { ... }
    while true do
        local n_all = n_objects
        for _, watch in ipairs(stream.watches) do
            n_all = n_all + 1
            objects[n_all] = watch
        end
        local ready = { poll(unpack(objects, 1, n_all)) }
        local others = {}
        for _, object in ipairs(ready) do
            local check = stream.checks[object]
            if check == nil then
                others[#others + 1] = object
            elseif check(object) then
                return true
            end
        end
        if #others > 0 or #ready == 0 then
            return false, unpack(others)
        end
    end
end

local step

local function go_on(stream, is_gone, ...)
    if is_gone then
        return nil, "gone"
    end
    return step(stream, resume(stream.thread, ...))
end

function step(stream, is_fine, first, ...)
    if not is_fine and type(first) == "table" and first.message then
        return nil, "broken_off", first.message
    elseif not is_fine then
        return nil, "raised", debug.traceback(stream.thread, tostring(first))
    elseif coroutine.status(stream.thread) == "dead" then
        return nil
    elseif first == POLL then
        return go_on(stream, wait_for(stream, select("#", ...), ...))
    end
    return first
end

--- Begins to pump.
-- @tparam function body gives the next chunk, nil at the end
-- @treturn table stream
function pump.new(body)
    return { thread = coroutine.create(chunks), body = body, watches = {}, checks = {} }
end

--- Has something polled while the body waits.
-- @tparam table stream
-- @param object for cqueues to poll
-- @tparam function check(object) is asked when that is ready whether the client has gone
function pump.watch(stream, object, check)
    stream.watches[#stream.watches + 1] = object
    stream.checks[object] = check
end

--- Stops polling it.
function pump.unwatch(stream, object)
    for i, watch in ipairs(stream.watches) do
        if watch == object then
            table.remove(stream.watches, i)
            break
        end
    end
end

--- Gives the next chunk.
-- @tparam table stream
-- @treturn[1] string
-- @treturn[2] nil at the end
-- @treturn[3] nil
-- @treturn[3] string `gone` (the client), `raised`, or, if it was a table with a message,
-- `broken_off`
-- @treturn[3] string|nil what was raised, with a traceback, or that message
function pump.next(stream)
    -- Where neither the body nor its client ever has to be waited for, others have their turn here.
    if stream.is_begun then
        cqueues.sleep(0)
    end
    stream.is_begun = true
    return step(stream, resume(stream.thread, stream.body))
end

--- @export
return pump
