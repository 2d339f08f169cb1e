-- SPDX-License-Identifier: MIT
--
-- Programs of every kind on one store, of which one after the other is killed at a random moment
-- and started again; and what the store has in the end against what each program has been told.

local actors = require "spec.support.kill_actors"
local batch = require "batch"
local own = require "spec.support.interpreter"
local process = require "spec.support.process"

local N_TARGETS = 5 -- of each list

-- Words of a shell that put another Lua's build on the paths, or nil when it has not been built, or
-- not with the sanitizer that this one has.
local function paths_of(lua)
    local core = io.open(("build/%s/batch/core.so"):format(lua))
    if not core or os.getenv "SANITIZER" then
        return nil
    end
    core:close()
    local pipe = assert(io.popen("unset LUA_PATH LUA_CPATH; make -s env LUA=" .. lua))
    local words = pipe:read "*a"
    pipe:close()
    return "unset LUA_PATH LUA_CPATH; " .. words
end

local Loop = {}
Loop.__index = Loop

-- Starts the program of one place; its caller's name is the place's.
function Loop:start(place)
    local folder = self.folder
    local function fill(text)
        return (text:gsub("FOLDER", folder.path):gsub("NAME", place.name))
    end
    local with_fetch = fill "export LUA_PATH='FOLDER/?.lua;'\"$LUA_PATH\""
    if place.kind == "shell" then
        local script = folder:write(place.name .. ".sh", fill(actors.SHELL))
        return folder:launch("setsid sh " .. script, with_fetch)
    elseif place.kind == "serve" then
        return folder:launch(fill "setsid luabatch serve -c FOLDER/batch.toml", with_fetch)
    end
    local code = fill(actors[place.kind])
    local paths = place.lua ~= own and self.paths[place.lua]
    if paths then
        return folder:start_with(paths, place.lua, code)
    end
    return folder:start(code)
end

local KINDS = {
    { "threads", "lua5.4" }, { "threads", "luajit" }, { "manual", "lua5.4" },
    { "client", "luajit" }, { "client", "lua5.4" }, { "reader", "lua5.4" },
    { "shell" }, { "serve" },
}

--- Starts all programs.
local function new(folder)
    local self = setmetatable({
        folder = folder, places = {}, n_kills = 0, n_by_kind = {}, paths = {},
    }, Loop)
    for _, lua in ipairs { "lua5.4", "luajit" } do
        self.paths[lua] = paths_of(lua)
    end
    folder:write("tried", "")
    folder:write("kill_fetch.lua", (actors.FETCH:gsub("FOLDER", ("%q"):format(folder.path))))
    folder:write("batch.toml", (actors.CONFIG:gsub("FOLDER", folder.path)))
    for i, kind in ipairs(KINDS) do
        local place = { kind = kind[1], lua = kind[2], name = kind[1] .. i }
        place.process = self:start(place)
        self.places[i] = place
    end
    return self
end

--- Kills a random one after a random while of up to so many seconds, and starts it again.
function Loop:kill_one(seconds)
    process.sleep(math.random() * seconds)
    local place = self.places[math.random(#self.places)]
    local victim = place.process
    if place.kind == "shell" or place.kind == "serve" then
        victim:kill_group()
    else
        victim:kill()
    end
    local status = victim:wait()
    assert(status == 137, ("%s ended with %d by itself: %s"):format(place.name, status,
        victim:output()))
    self.n_kills = self.n_kills + 1
    self.n_by_kind[place.kind] = (self.n_by_kind[place.kind] or 0) + 1
    place.process = self:start(place)
end

--- Lets the programs finish: no more lists, then no more work. Gives how long the work took.
function Loop:finish()
    local folder, began_at = self.folder, process.now()
    folder:write("no more", "")
    local client = assert(batch.client { store = folder.store })
    local is_over = process.eventually(function()
        -- One may be about to submit still.
        for _, place in ipairs(self.places) do
            if place.kind == "client" or place.kind == "shell" or place.kind == "reader" then
                place.process:wait()
            end
        end
        return client:stats().live_jobs == 0
    end, 120)
    client:close()
    assert(is_over, "the work does not end")
    local seconds = process.now() - began_at
    folder:write("go home", "")
    for _, place in ipairs(self.places) do
        if place.kind == "serve" then
            place.process:kill "TERM"
        end
        local status = place.process:wait()
        assert(status == 0, ("%s ended with %d: %s"):format(place.name, status,
            place.process:output()))
    end
    return seconds
end

-- What the store has against what was noted -------------------------------------------------------

-- Every job by its id, each target's outcome checked against its URL. Raises on a job that is not
-- as it must be.
local function read_jobs(folder)
    local client = assert(batch.client { store = folder.store })
    local jobs, by_list = {}, {}
    local before
    repeat
        local page = assert(client:jobs { limit = 1000, before = before })
        for _, job in ipairs(page) do
            local _, targets = assert(client:status(job.id))
            local list = targets[1].url:match "^http://(.*)/1$"
            assert(not by_list[list], "twice in the store: " .. list)
            jobs[job.id], by_list[list], before = { job = job, targets = targets }, job.id, job.id
        end
    until #page < 1000
    client:close()
    return jobs, by_list
end

local function check_target(id, target)
    local is_third = target.url:find "/3$" ~= nil
    local text = target.result and target.result.content or target.error
    assert(text == (is_third and "no " or "of ") .. target.url
        and target.status == (is_third and "failed" or "done"),
        ("%s %d: %s %s"):format(id, target.idx, target.status, tostring(text)))
    assert(target.attempts == 1, ("%s: %d attempts"):format(target.url, target.attempts))
end

local function check_job(entry, was_cancelled)
    local job, targets = entry.job, entry.targets
    local status = was_cancelled and "cancelled" or "partial"
    -- A cancel that was not acknowledged may have been obeyed.
    if job.status == "cancelled" then
        status = "cancelled"
    end
    assert(job.status == status, ("%s is %s, not %s"):format(job.id, job.status, status))
    assert(#targets == N_TARGETS, job.id .. " has lost targets")
    for i, target in ipairs(targets) do
        local has_outcome = i <= job.targets_done
        assert(has_outcome or job.status == "cancelled", job.id .. " has pending targets")
        if has_outcome then
            check_target(job.id, target)
        else
            assert(target.status == "pending", job.id .. ": counts and outcomes differ")
        end
    end
end

-- Lines of a file as a set; raises on one that is there twice, when it may not be. Only the first
-- words count: `pattern` takes them.
local function set_of(folder, name, pattern)
    local set, n = {}, 0
    for _, line in ipairs(folder:lines(name)) do
        local key = pattern and assert(line:match(pattern), line) or line
        assert(not set[key], ("noted twice in %s: %s"):format(name, key))
        set[key], n = line, n + 1
    end
    return set, n
end

local function check_submits(folder, jobs, by_list)
    local submitted, tried = folder:lines "submitted", {}
    for _, line in ipairs(folder:lines "tried") do
        tried[(line:gsub(" ", "/"))] = true
    end
    for _, line in ipairs(submitted) do
        local id, caller, n = line:match "^(%S+) (%S+) (%d+)$"
        assert(jobs[id], "acknowledged and lost: " .. line)
        assert(by_list[caller .. "/" .. n] == id, "acknowledged with another id: " .. line)
    end
    for list in pairs(by_list) do
        assert(tried[list], "nobody has tried to submit " .. list)
    end
    return #submitted
end

local function check_outcomes(folder, jobs)
    local reported_at, n_reported = {}, 0
    local told = set_of(folder, "outcomes", "^(%S+ %d+) ")
    local function has_status(id, idx, status, line)
        local target = jobs[id] and jobs[id].targets[tonumber(idx) + 1]
        assert(target and target.status == status, "told and not so: " .. line)
        return target
    end
    for _, line in pairs(told) do
        local id, idx, status, at = line:match "^(%S+) (%d+) (%S+) (%S+)$"
        reported_at[has_status(id, idx, status, line).url] = tonumber(at)
        n_reported = n_reported + 1
    end
    for _, line in ipairs(folder:lines "seen") do
        local id, idx, status = line:match "^(%S+) (%d+) (%S+)$"
        has_status(id, idx, status, line)
    end
    return n_reported, reported_at
end

-- A target is not fetched again once its outcome was told; every outcome was fetched.
local function check_fetches(folder, jobs, reported_at)
    local fetches, n_fetches, n_outcomes, n_urls = {}, 0, 0, 0
    for _, line in ipairs(folder:lines "fetched") do
        local url, at = line:match "^(%S+) (%S+)$"
        if url then -- else killed on the way
            n_urls = n_urls + (fetches[url] and 0 or 1)
            fetches[url], n_fetches = true, n_fetches + 1
            assert(not (reported_at[url] and tonumber(at) > reported_at[url]),
                "fetched after its outcome was told: " .. line)
        end
    end
    for _, entry in pairs(jobs) do
        for i = 1, entry.job.targets_done do
            assert(fetches[entry.targets[i].url], "never fetched: " .. entry.targets[i].url)
            n_outcomes = n_outcomes + 1
        end
    end
    return n_outcomes, n_fetches - n_urls
end

local function is_sound(folder)
    local store = assert(batch.store.open(folder.store))
    local faults = store:check()
    store:close()
    assert(faults == true, type(faults) == "table" and table.concat(faults, "; "))
    local pipe = assert(io.popen("sqlite3 " .. folder.store .. " 'pragma integrity_check'"))
    local said = pipe:read "*l"
    pipe:close()
    assert(said == "ok", said)
end

--- Proves that nothing is missing, doubled or unsound. Raises what is not so; gives figures.
function Loop:prove()
    local folder = self.folder
    is_sound(folder)
    local jobs, by_list = read_jobs(folder)
    local cancelled, n_cancelled = set_of(folder, "cancelled")
    local ended = set_of(folder, "ends", "^(%S+) ")
    local n_jobs = 0
    for id, entry in pairs(jobs) do
        check_job(entry, cancelled[id])
        assert(not ended[id] or ended[id] == id .. " " .. entry.job.status,
            "told and not so: " .. tostring(ended[id]))
        n_jobs = n_jobs + 1
    end
    for id in pairs(cancelled) do
        assert(jobs[id], "cancelled and lost: " .. id)
    end
    local n_submitted = check_submits(folder, jobs, by_list)
    local n_reported, reported_at = check_outcomes(folder, jobs)
    local n_outcomes, n_again = check_fetches(folder, jobs, reported_at)
    return { kills = self.n_kills, jobs = n_jobs, acknowledged = n_submitted,
        cancelled = n_cancelled, outcomes = n_outcomes, told = n_reported, again = n_again }
end

return { new = new }
