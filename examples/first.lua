-- SPDX-License-Identifier: MIT
--
-- The README's example. Run twice, it fetches once.
--
--     eval "$(make -s env)"; lua5.4 examples/first.lua

local batch = require "batch"

local runner = assert(batch.new {
    store = "pages.db",                         -- a file, made if it is not there
    workers = 4,
    on_restart = "resume",                      -- after a crash, go on where it stopped
    fetch = function(target, ctx)               -- runs in a worker thread's own Lua state; left
        return target.url .. " for " .. ctx.caller  -- out, pages are fetched over HTTP and HTTPS
    end,
})

local id, is_known = assert(runner:submit("alice", {
    { url = "https://example.com/" },
    { url = "https://example.org/data.json", options = { mode = "raw" } },
}))

local job = assert(runner:wait(id, 60))         -- seconds
print(job.status, is_known and "known already" or "fetched now")
for target in runner:results(id) do
    print(target.idx, target.url, target.status, target.result and #target.result.content)
end
runner:close()
