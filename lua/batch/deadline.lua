-- SPDX-License-Identifier: MIT

--- What is left of a target's time. The runner tells it by the clock that never jumps; a context
-- that cannot tell, such as a test's own table, is asked for its `deadline`, a moment of the wall
-- clock. Knows nothing of what the time is needed for.
-- @module batch.deadline

local core = require "batch.core"

--- How long a fetch may go on.
-- @tparam ?table ctx with a method `left`, or a field `deadline`, or neither
-- @treturn ?number seconds, below 0 when the time is over; nil when there is no limit
local function left(ctx)
    if not ctx then
        return nil
    elseif ctx.left then
        return ctx:left()
    end
    return ctx.deadline and ctx.deadline - core.now()
end

--- @export
return { left = left }
