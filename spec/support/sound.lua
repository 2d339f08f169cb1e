-- SPDX-License-Identifier: MIT
--
-- A sound store with a bit of everything, to be damaged: ann's job has ended with an outcome of
-- each kind, bob's was cancelled, eve's has a chunk for each target, cid's has one of two outcomes.

local fresh = require "spec.support.fresh"

local sound = {}

function sound.fill()
    local runner = fresh.runner()
    runner:submit("ann", fresh.targets(3))
    runner:drain(function(target)
        if target.url == "u2" then
            return nil, "no luck"
        end
        return { content = target.url .. "\0\255ä", meta = { title = "ä" } }
    end)
    local cancelled = runner:submit("bob", fresh.targets(2))
    runner:cancel(cancelled)
    -- So long that each target is a chunk of its own.
    runner:cancel(runner:submit("eve", fresh.targets(3, ("e"):rep(3000))))
    runner:submit("cid", fresh.targets(2))
    runner:finish(runner:take(), "one")
    runner:close()
end

--- SQL for the key of ann's job.
sound.ANN = "(select key from job where caller = 'ann')"

--- SQL for the key of the inputs of a job from an idx on.
function sound.inputs_of(caller, idx)
    return ("(select key << 24 | %d from job where caller = '%s')"):format(idx, caller)
end

return sound
