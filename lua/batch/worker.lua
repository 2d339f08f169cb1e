-- SPDX-License-Identifier: MIT

--- The Lua half of a worker's state: finds the fetch function there. Called by the core, once for
-- each state.

local carry = require "batch.carry"
local cjson = require "cjson"

local function load_fetch(kind, source)
    if kind == "module" then
        return require(source)
    end
    local value, message = carry.unpack(source)
    return value or error(message, 0)
end

-- The time-out is an error raised by a hook, and its handlers run while hooks are off: one that
-- loops could not be stopped.
local function guard_xpcall(is_timed_out)
    local call = xpcall
    rawset(_G, "xpcall", function(f, handler, ...)
        if type(handler) ~= "function" then
            return call(f, handler, ...)
        end
        return call(f, function(raised)
            if is_timed_out() then
                return raised
            end
            return handler(raised)
        end, ...)
    end)
end

--- Makes the fetch function of this state and runs its setup.
-- @tparam string kind "module" or "carried"
-- @tparam string source a module's name, or what `carry.pack` made
-- @tparam function is_timed_out whether what runs here is being stopped
-- @treturn function fetch
-- @treturn function|nil teardown
-- @treturn function the decoder of JSON
-- @raise what the module or its setup raises
local function open(kind, source, is_timed_out)
    guard_xpcall(is_timed_out)
    local value = load_fetch(kind, source)
    if type(value) == "function" then
        return value, nil, cjson.decode
    end
    if value.setup then
        value.setup()
    end
    return value.fetch, value.teardown, cjson.decode
end

--- @export
return { open = open }
