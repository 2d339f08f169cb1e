-- SPDX-License-Identifier: MIT

--- Tries again while a server is away, for as long as one waits for a restart. Knows neither what
-- is tried nor how.

local cqueues = require "cqueues"

-- About a minute in all.
local MAX_TRIES = 10
local FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 8

-- Whether a fault may pass by itself: nobody was reached, or a server said "not now".
local function is_passing(fault)
    return fault.status == nil or fault.status == 429 or fault.status >= 500
end

--- Calls attempt until it succeeds, or fails for good, or too often in a row.
-- @tparam session session
-- @tparam function attempt returns a value, or nil, the fault, and whether it got further before;
-- in a fault `is_final` ends the tries
-- @return[1] the value
-- @treturn[2] nil
-- @treturn[2] table the last fault
local function persist(session, attempt)
    local n_tries, pause = 0, FIRST_PAUSE_SECONDS
    while true do
        local value, fault, has_moved = attempt()
        if value then
            return value
        elseif has_moved then
            n_tries, pause = 0, FIRST_PAUSE_SECONDS
        end
        n_tries = n_tries + 1
        if fault.is_final or not is_passing(fault) or n_tries > MAX_TRIES then
            return nil, fault
        elseif n_tries == 1 then
            session.bar:say(fault.message .. "; trying again")
        end
        cqueues.sleep(pause)
        pause = math.min(2 * pause, MAX_PAUSE_SECONDS)
    end
end

--- @export
return {
    persist = persist,
}
