-- SPDX-License-Identifier: MIT
--
-- The programs that a kill loop kills, as chunks for spec.support.process: runners of both kinds,
-- clients that submit and read, and what luabatch needs. Each notes in the folder what it has been
-- told, as soon as it is told. NAME stands for the caller that a program submits as.

-- What a target ends with is told by its URL: http://CALLER/N/I; of five the third fails.
local FETCH = [[
local core = require "batch.core"
return function(target, ctx)
    local file = assert(io.open(FOLDER .. "/fetched", "a"))
    file:write(target.url, " ", ("%.6f"):format(core.now()), "\n")
    file:close()
    ctx:sleep(0.002)
    if target.url:find "/3$" then
        return nil, "no " .. target.url
    end
    return "of " .. target.url
end
]]

-- Goes on with the last list that was tried: that it was not acknowledged does not say that it is
-- not stored. Every tenth job is cancelled at once.
local SUBMITS = [[
package.path = folder .. "/?.lua;" .. package.path
local all = { on_restart = "resume", workers = 4, crash_limit = 1000, jobs_per_caller = 12,
    jobs_total = 60, fetch = "kill_fetch",
    hooks = {
        target = function(failure, _, _, info)
            note("outcomes", ("%s %d %s %.6f"):format(info.job, info.idx,
                failure and "failed" or "done", core.now()))
        end,
        job = function(status, info) note("ends", info.job .. " " .. status) end,
    } }
local n_list = 0
for line in io.lines(folder .. "/tried") do
    n_list = tonumber(line:match "^NAME (%d+)$") or n_list
end
n_list = math.max(n_list, 1)
-- Whether the list was taken; the next one is another.
local function submit(runner)
    note("tried", "NAME " .. n_list)
    local id, message, code = runner:submit("NAME", urls("http://NAME/" .. n_list .. "/", 5))
    if not id then
        assert(code == "caller_busy" or code == "busy", message)
        return false
    end
    note("submitted", ("%s NAME %d"):format(id, n_list))
    if n_list % 10 == 0 and runner:cancel(id) then
        note("cancelled", id)
    end
    n_list = n_list + 1
    return true
end
local function has(name)
    local file = io.open(folder .. "/" .. name)
    return file ~= nil and file:close()
end
]]

local actors = { FETCH = FETCH }

actors.threads = SUBMITS .. [[
local runner = assert(batch.new(settings(all)))
note("ready", "NAME")
while not has "go home" do
    if not has "no more" then submit(runner) end
    runner:poll()
    core.poll_fd(runner:fd(), 0.005)
end
assert(runner:close())
]]

actors.manual = SUBMITS .. [[
all.executor = "manual"
local runner = assert(batch.new(settings(all)))
local fetch = require "kill_fetch"
local ctx = { sleep = function(_, seconds) core.poll_fd(-1, seconds) end }
note("ready", "NAME")
while not has "go home" do
    if not has "no more" then submit(runner) end
    local held = {}
    for i = 1, 3 do
        held[i] = runner:take()
    end
    for _, task in ipairs(held) do
        local result, failure = fetch(task, ctx)
        if result then runner:finish(task, result) else runner:fail(task, failure) end
    end
    runner:poll()
    if #held == 0 then core.poll_fd(runner:fd(), 0.005) end
end
assert(runner:close())
]]

-- At full speed: it rests only when it has been refused.
actors.client = SUBMITS .. [[
local client = assert(batch.client(settings(all)))
note("ready", "NAME")
while not has "no more" do
    if not submit(client) then core.poll_fd(-1, 0.002) end
end
assert(client:close())
]]

-- Reads the jobs that were submitted last, and notes which outcomes it saw.
actors.reader = [[
local client = assert(batch.client(settings { jobs_per_caller = 12, jobs_total = 60 }))
note("ready", "NAME")
while not io.open(folder .. "/no more") do
    for _, job in ipairs(client:jobs { limit = 20 }) do
        for target in client:results(job.id) do
            note("seen", ("%s %d %s"):format(job.id, target.idx, target.status))
        end
    end
    core.poll_fd(-1, 0.005)
end
assert(client:close())
]]

actors.CONFIG = [[
[batch]
store = "FOLDER/batch.db"
fetch = "kill_fetch"
on_restart = "resume"
workers = 3
crash_limit = 1000
jobs_per_caller = 12
jobs_total = 60
targets_per_job = 10000
durability = "normal"
[server]
listen = "unix:FOLDER/socket"
[log]
level = "error"
]]

-- A shell that submits by luabatch, one list after the other. Its callers differ each time, for it
-- does not know which list was the last.
actors.SHELL = [[
n=0
while [ ! -e 'FOLDER/no more' ]; do
    n=$((n + 1))
    list=http://NAME.$$/$n
    set -- $list/1 $list/2 $list/3 $list/4 $list/5
    echo "NAME.$$ $n" >>FOLDER/tried
    if id=$(luabatch submit -c FOLDER/batch.toml --store FOLDER/batch.db --caller NAME.$$ "$@" \
        2>FOLDER/refused.$$); then
        echo "$id NAME.$$ $n" >>FOLDER/submitted
    elif ! grep -q busy FOLDER/refused.$$; then
        cat FOLDER/refused.$$
        exit 1
    else
        n=$((n - 1))
        sleep 0.02
    fi
done
]]

return actors
