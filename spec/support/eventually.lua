-- SPDX-License-Identifier: MIT
--
-- Waits for what other threads and processes bring about.

local core = require "batch.core"

--- Asks until the claim gives something true, and gives that back; fails when the time is up.
-- @tparam function claim
-- @tparam[opt=30] number seconds
return function(claim, seconds)
    local give_up_at = core.now() + (seconds or 30)
    repeat
        local answer = claim()
        if answer then
            return answer
        end
        core.poll_fd(-1, 0.005)
    until core.now() > give_up_at
    error("it did not come about in time", 2)
end
