-- SPDX-License-Identifier: MIT
--
-- Jobs outlive nginx's workers and masters: reloads, kills, upgrades, quits and stops, under load.

local batch = require "batch"
local core = require "batch.core"
local cqueues = require "cqueues"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local nginx = require "spec.support.nginx"
local openresty = require "spec.support.openresty"
local site = require "spec.support.stub_site"
local web = require "spec.support.web"

local SLOWNESS = nginx.SLOWNESS
local N_HANDS = 4 -- light threads of a worker

-- Submits jobs by some clients at once, as fast as they are taken; a submit whose answer does not
-- come is sent again. ids: filled on the way. Returns functions to be run together.
local function submitters(server, pages, load, ids)
    local next_job, clients = 0, {}
    ids.n = 0
    local function submit(number)
        local urls = {}
        for i = 1, load.targets do
            urls[i] = pages:target(number .. "-" .. i, load.seconds).url
        end
        local body, headers = openresty.body(urls), openresty.as "loader"
        while true do
            local answer = server:request("POST", "/api/v1/batches", body, headers)
            if answer and not answer.is_broken then
                assert(answer.status == 202 or answer.status == 200, answer.body)
                return answer:json().id
            end
            cqueues.sleep(0.01)
        end
    end
    for i = 1, 8 do
        clients[i] = function()
            while next_job < load.jobs do
                next_job = next_job + 1
                local number = next_job
                ids[number] = submit(number)
                ids.n = ids.n + 1
            end
        end
    end
    return clients
end

-- Waits until so many jobs are submitted.
local function await_submits(ids, n)
    while ids.n < n do
        cqueues.sleep(0.005)
    end
end

-- How many targets of the jobs have another number of attempts than one.
local function check_jobs(ids, load, seconds)
    local client = fresh.client()
    local n_odd = 0
    for i = 1, load.jobs do
        local job = assert(client:wait(ids[i], (seconds or 40) * SLOWNESS))
        assert.same({ "done", load.targets }, { job.status, job.targets_done })
        local _, targets = client:status(ids[i], { results = false })
        for _, target in ipairs(targets) do
            n_odd = n_odd + (target.attempts == 1 and 0 or 1)
        end
    end
    assert.same(0, n_odd, "targets with another number of attempts than one")
    client:close()
    local store = fresh.store()
    assert.is_true(store:check())
end

-- Fetched again was only what the killed worker had fetched, or begun to, and had not stored yet.
local function check_repeated(requests, killed_at)
    local n_repeated = 0
    for _, moments in ipairs(requests) do
        n_repeated = n_repeated + (#moments > 1 and 1 or 0)
        if #moments > 1 then
            assert.is_true(#moments == 2 and moments[1] < killed_at + 0.05 * SLOWNESS
                and moments[2] > killed_at, ("asked for at %s, killed at %f"):format(
                table.concat(moments, ", "), killed_at))
        end
    end
    assert.is_true(n_repeated <= 3 * N_HANDS, n_repeated .. " targets were fetched again")
end

describe("under load, nginx's workers", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("lose and repeat nothing, reloaded thrice, killed once, and upgraded", function()
        local server, pages = openresty.start { batch = { workers = N_HANDS } }, site.start()
        local load, ids, killed_at = { jobs = 300, targets = 4, seconds = 0.004 }, {}, nil
        local all = submitters(server, pages, load, ids)
        all[#all + 1] = function()
            for i = 1, 3 do
                await_submits(ids, 50 * i)
                server:signal "HUP"
            end
            await_submits(ids, 200)
            killed_at = core.now()
            server:kill(server:workers()[1])
            await_submits(ids, 250)
            server:upgrade(cqueues.sleep)
        end
        web.together(all)
        check_jobs(ids, load)
        local requests = pages:requests()
        assert.same(load.jobs * load.targets, #requests)
        check_repeated(requests, killed_at)
        assert.same({}, server:complaints "exited on signal 9")
    end)

    it("lose nothing, killed twenty times, one after the other", function()
        local server, pages = openresty.start { batch = { workers = N_HANDS, crash_limit = 1000 } },
            site.start()
        local load, ids, n_kills = { jobs = 400, targets = 4, seconds = 0.004 }, {}, 0
        local all = submitters(server, pages, load, ids)
        all[#all + 1] = function()
            while n_kills < 20 do
                local workers = server:workers()
                if #workers > 0 then
                    n_kills = n_kills + 1
                    server:kill(workers[math.random(#workers)])
                end
                cqueues.sleep(0.02 + 0.2 * math.random())
            end
        end
        web.together(all)
        check_jobs(ids, load)
        assert.same(load.jobs, #fresh.client():jobs { limit = 1000 })
        local n_pages, n_repeated = pages:counts()
        assert.same(load.jobs * load.targets, n_pages)
        assert.is_true(n_repeated <= n_kills * 3 * N_HANDS, n_repeated .. " were fetched again")
        assert.same({}, server:complaints "exited on signal 9")
    end)

    it("lose nothing in a quit, and go on where they were", function()
        local server, pages = openresty.start { batch = { workers = N_HANDS } }, site.start()
        local load, ids = { jobs = 60, targets = 8, seconds = 0.02 }, {}
        web.together(submitters(server, pages, load, ids))
        assert.is_true((server:finish("QUIT", 10 * SLOWNESS)))
        local client = fresh.client()
        assert.is_true(client:stats().live_jobs > 0)
        assert.same(0, client:stats().inflight_targets)
        local _, n_repeated, n_requests = pages:counts()
        local n_done = 0
        for _, id in ipairs(ids) do
            n_done = n_done + client:status(id).targets_done
        end
        assert.same({ 0, n_done }, { n_repeated, n_requests })
        openresty.start { batch = { workers = N_HANDS } }
        check_jobs(ids, load)
        assert.same({ 480, 0, 480 }, { pages:counts() })
    end)

    it("give their jobs back when they are stopped: another runner goes on at once", function()
        local server, pages = openresty.start { batch = { workers = N_HANDS } }, site.start()
        local load, ids = { jobs = 40, targets = 4, seconds = 0.05 }, {}
        web.together(submitters(server, pages, load, ids))
        assert.is_true((server:finish "TERM"))
        local client = fresh.client()
        local function n_outcomes()
            local n = 0
            for _, id in ipairs(ids) do
                n = n + client:status(id, { limit = 0 }).targets_done
            end
            return n
        end
        local n_before, began_at = n_outcomes(), cqueues.monotime()
        assert.is_true(n_before < 160)
        fresh.keep(assert(batch.new { store = fresh.path "batch.db", durability = "normal",
            on_restart = "resume", workers = 2, fetch = function() return "elsewhere" end }))
        eventually(function() return n_outcomes() > n_before end, SLOWNESS)
        assert.is_true(cqueues.monotime() - began_at < SLOWNESS)
        check_jobs(ids, load)
    end)

    it("go on after a stop in another nginx", function()
        local server, pages = openresty.start { batch = { workers = N_HANDS } }, site.start()
        local load, ids = { jobs = 40, targets = 4, seconds = 0.05 }, {}
        web.together(submitters(server, pages, load, ids))
        assert.is_true((server:finish "TERM"))
        openresty.start { batch = { workers = N_HANDS } }
        check_jobs(ids, load)
        local _, n_repeated = pages:counts()
        assert.is_true(n_repeated <= 4 * N_HANDS, n_repeated .. " targets were fetched again")
    end)
end)

describe("a worker of nginx", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    -- The processes that fetched a job's targets, of which the second lasts.
    local function submit_steps(server, seconds)
        local id = server:run(([[
            return (assert(require("batch.openresty").submit("me", {
                { url = "whoami:#1" }, { url = "nap:%s" }, { url = "whoami:#2" } })))
        ]]):format(seconds))
        local client = fresh.client()
        eventually(function() return client:status(id).targets_done == 1 end)
        return id, client, tonumber(select(2, client:status(id))[1].result.content)
    end

    it("that is killed has its job taken over at once", function()
        local server = openresty.start()
        local id, client, first = submit_steps(server, 0.5)
        server:kill(first)
        local killed_at = cqueues.monotime()
        local job = assert(client:wait(id, 10))
        local seconds = cqueues.monotime() - killed_at
        assert.same("done", job.status)
        assert.is_true(seconds < 0.5 + 2 * SLOWNESS, "it took " .. seconds .. " s")
        local _, targets = client:status(id)
        assert.not_equal(first, tonumber(targets[3].result.content))
        assert.same(1, targets[2].attempts)
    end)

    it("that a target crashes again and again comes back: that target alone has crashed", function()
        local server = openresty.start { workers = 1, batch = { workers = 12, crash_limit = 3 } }
        local client = fresh.client { jobs_total = 100 }
        local function submit(caller, ...)
            local targets = {}
            for i, url in ipairs { ... } do
                targets[i] = { url = url }
            end
            return (assert(client:submit(caller, targets)))
        end
        local ids = { submit("poison", "say:1", "crash:0.1", "say:2") }
        for i = 1, 8 do
            ids[#ids + 1] = submit("fine" .. i, "nap:0.3", "say:x")
        end
        for i, id in ipairs(ids) do
            local job = assert(client:wait(id, 20 * SLOWNESS))
            assert.same(i == 1 and "partial" or "done", job.status)
        end
        local _, targets = client:status(ids[1])
        assert.same({ "crashed", 3, "done" },
            { targets[2].error, targets[2].attempts, targets[3].status })
        assert.same(3, select(2, server:error_log():gsub("exited on signal 6", "")))
        assert.same({}, server:complaints "exited on signal 6")
    end)

    it("that is reloaded finishes what it fetches, and another one goes on", function()
        local server = openresty.start()
        local id, client, first = submit_steps(server, 1)
        server:signal "HUP"
        assert.same("done", assert(client:wait(id, 20)).status)
        local _, targets = client:status(id)
        assert.not_equal(first, tonumber(targets[3].result.content))
        assert.is_true(targets[2].finished_at - targets[2].started_at < 1 + SLOWNESS)
        assert.same({ 1, 1, 1 },
            { targets[1].attempts, targets[2].attempts, targets[3].attempts })
        eventually(function() return not nginx.is_alive(first) end)
    end)

    it("that may not wait that long is cut short, and the target is fetched again", function()
        local server = openresty.start { main = "worker_shutdown_timeout 300ms;" }
        local id, client, first = submit_steps(server, 4)
        server:signal "HUP"
        eventually(function() return not nginx.is_alive(first) end, 3 * SLOWNESS)
        assert.same("done", assert(client:wait(id, 20)).status)
        local _, targets = client:status(id)
        assert.same({ 1, 1, 1 },
            { targets[1].attempts, targets[2].attempts, targets[3].attempts })
        assert.same({}, server:complaints())
    end)

    it("that leaves answers those who wait, and takes their submits", function()
        local server = openresty.start { workers = 1 }
        local id = server:run [[
            return require("batch.openresty").submit("me", { { url = "nap:1" }, { url = "say:x" } })
        ]]
        local waiting = server:begin("POST", "/run", ([[
            local batch = require "batch.openresty"
            local job, _, code = batch.wait(%q, 30)
            local later = batch.submit("me", { { url = "say:later" } })
            return job and job.status, code, later
        ]]):format(id))
        server:signal "HUP"
        local answer = waiting:finish():json()
        assert.same({ code = "closed" }, { code = answer["2"] })
        local client = fresh.client()
        assert.same("done", assert(client:wait(answer["3"], 20)).status)
        assert.same("done", assert(client:wait(id, 20)).status)
    end)

    it("that has nothing left to do but a request takes its submit, however late", function()
        local server = openresty.start { workers = 1 }
        local late = server:begin("POST", "/run", [[
            ngx.sleep(0.3)
            return (assert(require("batch.openresty").submit("me", { { url = "say:late" } })))
        ]])
        server:signal "HUP"
        assert.same("done", assert(fresh.client():wait(late:finish():json()["1"], 20)).status)
    end)

    it("leaves although a fetch has ended its own light thread", function()
        local server = openresty.start { workers = 1 }
        local before = server:workers()[1]
        server:run [[return (require("batch.openresty").submit("me", { { url = "exit:0.2" } }))]]
        server:signal "HUP"
        eventually(function() return not nginx.is_alive(before) end)
    end)
end)
