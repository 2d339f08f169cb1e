-- SPDX-License-Identifier: MIT
--
-- Everything at once on one store: runners with threads and without, clients, luabatch, cancels,
-- processes that hand over and that are killed.

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local process = require "spec.support.process"

-- Works until the file "go home" is there, or for LIFE seconds, and then hands over. Notes what it
-- fetches. A fetch of "slow…" waits for a cancel.
local RUNNER = [[
local runner = assert(batch.new(settings {
    executor = EXECUTOR, on_restart = "resume", workers = 3, jobs_total = 40,
    fetch = function(target, ctx)
        note("fetched", target.url)
        if target.url:find "slow" then
            ctx:sleep(60)
            note("stopped", target.url)
        end
        ctx:sleep(0.003)
        return target.url
    end,
    log = function(_, message, fields) note("log", message .. " " .. tostring(fields.detail)) end,
}))
note("ready", EXECUTOR)
local held = {}
local function work(takes)
    for i = 1, EXECUTOR == "manual" and 3 or 0 do
        local task = held[i]
        if task and not task.url:find "slow" then
            runner:finish(task, task.url)
            held[i] = nil
        elseif task and runner:status(task.job).status == "cancelled" then
            note("stopped", task.url)
            runner:finish(task, "late")
            held[i] = nil
        end
        if takes and not held[i] then
            held[i] = runner:take()
            if held[i] then note("fetched", held[i].url) end
        end
    end
    core.poll_fd(-1, 0.004)
    runner:poll()
end
local ends_at = core.now() + LIFE
repeat
    work(true)
until core.now() > ends_at or io.open(folder .. "/go home")
runner:begin_handover()
while runner:unsettled() > 0 do
    work(false)
end
note("shares", runner:stats().targets.done)
assert(runner:close())
]]

-- Submits JOBS jobs of four targets each, again when there are too many.
local SUBMITTER = [[
local client = assert(batch.client(settings { jobs_per_caller = 12, jobs_total = 40 }))
for i = 1, JOBS do
    local id, message, code
    repeat
        id, message, code = client:submit(CALLER, urls(CALLER .. i .. "/", 4))
        assert(id or code == "caller_busy" or code == "busy", message)
        if not id then core.poll_fd(-1, 0.005) end
    until id
    note("ids", id)
end
]]

describe("many processes on one store", function()
    local folder, client

    before_each(function()
        fresh.start()
        folder = process.folder()
        client = fresh.keep(assert(batch.client { store = folder.store, durability = "normal",
            jobs_per_caller = 1000, jobs_total = 1000, targets_per_job = 1000 }))
    end)

    after_each(function()
        fresh.finish()
        folder:remove()
    end)

    local function start(code, values)
        return folder:start((code:gsub("%f[%w][A-Z]+%f[%W]", function(word)
            local value = values[word]
            return type(value) == "string" and ("%q"):format(value) or value
        end)))
    end

    local function start_runner(executor, life)
        return start(RUNNER, { EXECUTOR = executor, LIFE = life or 60 })
    end

    local function are_ready(count)
        eventually(function() return #folder:lines "ready" == count end)
    end

    local function have_ended_well(processes)
        for _, one in ipairs(processes) do
            assert.same(0, one:wait(), one:output())
            assert.same("", one:output())
        end
        assert.same({}, folder:lines "log")
        assert.is_true(fresh.store(folder.store):check())
    end

    local function go_home()
        io.open(folder.path .. "/go home", "w"):close()
    end

    local function count_live()
        return client:stats().live_jobs
    end

    -- How often each url was fetched.
    local function fetches()
        local times, n_urls = {}, 0
        for _, url in ipairs(folder:lines "fetched") do
            n_urls = n_urls + (times[url] and 0 or 1)
            times[url] = (times[url] or 0) + 1
        end
        return times, n_urls
    end

    local function most_of(times)
        local most = 0
        for _, n in pairs(times) do
            most = math.max(most, n)
        end
        return most
    end

    it("keep to the caps, fetch each target once, and share the work", function()
        local runners = {}
        for i = 1, 4 do
            runners[i] = start_runner(i % 2 == 0 and "manual" or "threads")
        end
        are_ready(4)
        local submitters, n_most, is_over = {}, 0, false
        for _, caller in ipairs { "ann", "bob", "cid", "dot" } do
            submitters[#submitters + 1] = start(SUBMITTER, { CALLER = caller, JOBS = 25 })
        end
        eventually(function()
            n_most = math.max(n_most, count_live())
            for _, caller in ipairs { "ann", "bob" } do
                local n_live = #client:jobs { caller = caller, status = "queued" }
                is_over = is_over or n_live > 12
            end
            return #folder:lines "ids" == 100 and count_live() == 0
        end, 40)
        go_home()
        have_ended_well(submitters)
        have_ended_well(runners)
        assert.is_true(n_most <= 40 and n_most > 10, "there were " .. n_most)
        assert.is_false(is_over)
        local times, n_urls = fetches()
        assert.same({ 400, 1 }, { n_urls, most_of(times) })
        for _, share in ipairs(folder:lines "shares") do
            assert.is_true(tonumber(share) >= 10, "one did " .. share)
        end
        assert.equal(100, #client:jobs { status = "done", limit = 1000 })
    end)

    it("go on while runners come, hand over and go", function()
        local submitters = {}
        for _, caller in ipairs { "ann", "bob" } do
            submitters[#submitters + 1] = start(SUBMITTER, { CALLER = caller, JOBS = 60 })
        end
        local runners = {}
        for i = 1, 8 do
            runners[i] = start_runner(i % 2 == 0 and "manual" or "threads", i < 7 and 0.4 or 60)
            eventually(function() return #folder:lines "ready" == i end)
        end
        eventually(function() return #folder:lines "ids" == 120 and count_live() == 0 end, 40)
        go_home()
        have_ended_well(submitters)
        have_ended_well(runners)
        local times, n_urls = fetches()
        assert.same({ 480, 1 }, { n_urls, most_of(times) })
        assert.equal(120, #client:jobs { status = "done", limit = 1000 })
    end)

    it("go on when some of them are killed: what was in flight runs again, nothing else", function()
        local victims, runners = {}, {}
        for i = 1, 4 do
            victims[i] = start_runner(i % 2 == 0 and "manual" or "threads")
        end
        are_ready(4)
        local submitter = start(SUBMITTER, { CALLER = "ann", JOBS = 60 })
        for i, victim in ipairs(victims) do
            eventually(function() return #folder:lines "fetched" > 40 * i end)
            runners[i] = start_runner(i % 2 == 0 and "threads" or "manual")
            victim:kill()
            assert.same(137, victim:wait())
        end
        eventually(function() return #folder:lines "ids" == 60 and count_live() == 0 end, 40)
        go_home()
        have_ended_well { submitter }
        have_ended_well(runners)
        local times, n_urls = fetches()
        assert.equal(240, n_urls)
        local n_again = #folder:lines "fetched" - n_urls
        -- Three at once in each, and as many outcomes that had not been stored yet.
        assert.is_true(n_again <= 4 * 6 and most_of(times) <= 5, n_again .. " ran again")
        assert.equal(60, #client:jobs { status = "done", limit = 1000 })
        assert.equal("240|240|1", fresh.sql(
            "select count(*), sum(attempts), max(attempts) from outcome", folder.store))
    end)

    it("obey cancels from anywhere", function()
        local runners = { start_runner "threads", start_runner "manual" }
        are_ready(2)
        local own = fresh.keep(assert(batch.new { store = folder.store, durability = "normal",
            executor = "manual", on_restart = "resume", jobs_per_caller = 100, jobs_total = 100 }))
        local ids = {}
        for i = 1, 6 do
            ids[i] = assert((i > 3 and own or client):submit("me", fresh.targets(3, "slow" .. i)))
        end
        eventually(function() return #folder:lines "fetched" == 6 end)
        for i, id in ipairs(ids) do
            assert.is_true((i % 2 == 0 and own or client):cancel(id))
        end
        eventually(function() return #folder:lines "stopped" == 6 end, 5)
        eventually(function() return count_live() == 0 end)
        go_home()
        have_ended_well(runners)
        local times = fetches()
        assert.same(6, #folder:lines "fetched")
        assert.equal(1, most_of(times))
        assert.equal(6, #client:jobs { status = "cancelled", limit = 1000 })
    end)

    it("work on what luabatch submits, and luabatch cancels what they work on", function()
        local runners = { start_runner "threads", start_runner "manual" }
        are_ready(2)
        local function luabatch(words)
            local command = ("luabatch %s --store %s 2>&1"):format(words, folder.store)
            local pipe = assert(io.popen(command))
            local output = pipe:read "*a"
            pipe:close()
            return output
        end
        local id = luabatch("submit http://a/1 http://a/2"):match "%x+%-%x+%-%x+%-%x+%-%x+"
        assert.equal("done", client:wait(id, 10).status)
        assert.match("http://a/2", luabatch("results " .. id), 1, true)
        id = luabatch("submit http://a/slow http://a/3"):match "%x+%-%x+%-%x+%-%x+%-%x+"
        eventually(function() return #folder:lines "fetched" == 3 end)
        luabatch("cancel " .. id)
        eventually(function() return folder:lines "stopped"[1] end)
        eventually(function() return client:status(id).targets_done == 1 end)
        go_home()
        have_ended_well(runners)
        assert.same(3, #folder:lines "fetched")
    end)

    it("pick up what clients submit, even when they have much to do", function()
        local runners = { start_runner "threads", start_runner "threads" }
        are_ready(2)
        for i = 1, 3 do  -- for six hands
            assert(client:submit("much", fresh.targets(200, "much" .. i .. "/")))
        end
        eventually(function() return #folder:lines "fetched" > 10 end)
        local spans = {}
        for i = 1, 12 do
            local began = core.now()
            assert(client:submit("me", fresh.targets(1, "one" .. i .. "-")))
            eventually(function()
                return folder:read "fetched":find("one" .. i .. "-1\n", 1, true)
            end)
            spans[i] = core.now() - began
        end
        table.sort(spans)
        assert.is_true(spans[6] < 0.05, "half of them took " .. spans[6])
        client:cancel(client:jobs { caller = "much" }[1].id)
        go_home()
        have_ended_well(runners)
    end)
end)
