-- SPDX-License-Identifier: MIT
--
-- batch.openresty in four workers of a real nginx: the runner's functions where requests are
-- answered, and light threads that fetch.

local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local nginx = require "spec.support.nginx"
local openresty = require "spec.support.openresty"
local site = require "spec.support.stub_site"

local SLOWNESS = nginx.SLOWNESS

local function list_of(urls)
    local words = {}
    for i, url in ipairs(urls) do
        words[i] = ("{ url = %q }"):format(url)
    end
    return "{" .. table.concat(words, ",") .. "}"
end

-- Runs a job of the URLs to its end in some worker; gives the job and its targets.
local function run_job(server, urls, options)
    return server:run(([[
        local batch = require "batch.openresty"
        local id = assert(batch.submit("me", %s, %s))
        local job = assert(batch.wait(id, 20))
        return job, select(2, batch.status(id))
    ]]):format(list_of(urls), options or "nil"))
end

describe("a worker of nginx", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("submits, waits, reads, lists and counts", function()
        local server = openresty.start()
        local job, targets = run_job(server, { "say:a", "fail:b", "say:c" }, "{ class = 'gold' }")
        assert.same({ "partial", "me", "gold", 3, 1 },
            { job.status, job.caller, job.class, job.targets_done, job.targets_failed })
        assert.same({ "a", "b", "c", 1 }, { targets[1].result.content, targets[2].error,
            targets[3].result.content, targets[3].attempts })
        local id, is_known, contents, listed, n_live, unknown = server:run [[
            local batch = require "batch.openresty"
            local id, is_known = batch.submit("me", {
                { url = "say:a" }, { url = "fail:b" }, { url = "say:c" } })
            local contents = {}
            for target in batch.results(id, { from = 1 }) do
                contents[#contents + 1] = target.result and target.result.content or target.error
            end
            return id, is_known, contents, batch.jobs { caller = "me" }[1].id,
                batch.stats().live_jobs, { batch.status "nobody" }
        ]]
        assert.same({ job.id, true, { "b", "c" }, job.id, 0 },
            { id, is_known, contents, listed, n_live })
        assert.same("not_found", unknown[3] or unknown["3"])
        assert.same({}, server:complaints())
    end)

    it("refuses as a runner does", function()
        local server = openresty.start { batch = { targets_per_job = 2, jobs_per_caller = 1 } }
        local answers = server:run [[
            local batch = require "batch.openresty"
            local function words(...)
                return tostring((select(2, ...))) .. ": " .. tostring((select(3, ...)))
            end
            local three = { { url = "a" }, { url = "b" }, { url = "c" } }
            local live = assert(batch.submit("me", { { url = "nap:20" } }))
            return { words(batch.submit("me", three)), words(batch.submit("me", {})),
                words(batch.submit("me", { { url = "say:x" } })), words(batch.wait("nobody")),
                words(batch.wait(live, 0.05)), words(batch.submit("you", { { url = 1 } })) }
        ]]
        assert.same({ "too many targets: too_many_targets", "busy: caller_busy",
            "unknown job: not_found", "timeout: timeout" },
            { answers[1], answers[3], answers[4], answers[5] })
        assert.matches(": invalid$", answers[2])
        assert.matches("^target 0: url .*: invalid$", answers[6])
    end)

    it("cancels and renews whatever worker has the job", function()
        local server = openresty.start()
        local id = server:run [[
            return require("batch.openresty").submit("me", { { url = "doze:30" },
                { url = "say:never" } })
        ]]
        eventually(function()
            return server:run(("return require('batch.openresty').status(%q)"):format(id))
                .status == "running"
        end)
        local pids, n_pids = {}, 0
        while n_pids < 2 do
            local pid, is_renewed = server:run(([[
                return ngx.worker.pid(), require("batch.openresty").touch(%q)
            ]]):format(id))
            assert.is_true(is_renewed)
            n_pids = n_pids + (pids[pid] and 0 or 1)
            pids[pid] = true
        end
        local first, second, job = server:run(([[
            local batch, id = require "batch.openresty", %q
            return batch.cancel(id), batch.cancel(id), (batch.status(id))
        ]]):format(id))
        assert.same({ true, false, "cancelled" }, { first, second, job.status })
        local client = fresh.client()
        eventually(function() return client:status(id).targets_done == 1 end)
        local _, targets = client:status(id)
        assert.same({ "interrupted", "pending" }, { targets[1].error, targets[2].status })
    end)

    it("serves others while one request waits", function()
        local server = openresty.start { workers = 1 }
        local id = server:run [[
            return require("batch.openresty").submit("me", { { url = "nap:1" } })
        ]]
        local waiting = server:begin("POST", "/run", ("return (assert(require('batch.openresty')"
            .. ".wait(%q, 20)))"):format(id))
        local began_at = core.now()
        assert.same("hello", server:get("/hello").body)
        assert.is_true(core.now() - began_at < 0.5 * SLOWNESS)
        assert.same("done", waiting:finish():json()["1"].status)
    end)

    it("fetches by cosockets, each target once, however many light threads there are", function()
        local server, pages = openresty.start { batch = { workers = 8 } }, site.start()
        local urls = {}
        for i = 1, 20 do
            urls[i] = {}
            for j = 1, 10 do
                urls[i][j] = pages:target(i .. "-" .. j).url:gsub("^", "")
            end
        end
        local client = fresh.client()
        local ids = {}
        for i = 1, 20 do
            ids[i] = server:run(("return require('batch.openresty').submit('me', %s)"):format(
                list_of(urls[i])))
        end
        for i, id in ipairs(ids) do
            assert.same("done", assert(client:wait(id, 20)).status)
            local _, targets = client:status(id)
            assert.same("content of /item/" .. i .. "-10", targets[10].result.content)
        end
        assert.same({ 200, 0, 200 }, { pages:counts() })
    end)
end)

describe("a fetch in a light thread", function()
    local server

    before_each(fresh.start)
    after_each(fresh.finish)

    local function outcome(url, batch)
        server = openresty.start { batch = batch, workers = 2 }
        local _, targets = run_job(server, { url }, "{ class = 'gold' }")
        return targets[1]
    end

    it("knows whom it works for", function()
        assert.same("me gold 0 1", outcome("context:").result.content)
    end)

    it("that raises ends in an error, and its traceback in the log", function()
        assert.same("internal error", outcome("raise:a secret").error)
        assert.truthy(server:line_with "a secret")
        assert.truthy(server:error_log():find "in_nginx/fetch.lua:%d+")
    end)

    it("that calls ngx.exit ends in an error, and the light thread is replaced", function()
        server = openresty.start { batch = { workers = 1 }, workers = 1 }
        local job, targets = run_job(server, { "exit:0#1", "exit:0.01#2", "say:x" })
        assert.same({ 3, 2, "internal error" },
            { job.targets_done, job.targets_failed, targets[2].error })
        assert.truthy(server:line_with "let it return instead")
    end)

    it("that takes too long is stopped where it waits", function()
        local target = outcome("nap:20", { target_timeout = 0.3 })
        assert.same("timed out", target.error)
        assert.is_true(target.finished_at - target.started_at < 2 * SLOWNESS)
    end)

    it("may put a busy target off", function()
        local target = outcome "busy:2"
        assert.same({ "fine at last", 3 }, { target.result.content, target.attempts })
    end)

    it("may be a function, a closure too", function()
        assert.same("own word for say:x", outcome("say:x", { raw = [[
            fetch = (function()
                local word = "own word"
                return function(target) return word .. " for " .. target.url end
            end)()
        ]] }).result.content)
    end)

    it("that blocks the event loop is named in the log", function()
        for url, name in pairs { ["block:0.3"] = 'url=block:0.3', ["hog:0.3"] = "one_of=%S+/0" } do
            assert.same("blocked", outcome(url).result.content)
            local line = eventually(function()
                return server:line_with "the event loop was blocked by a fetch"
            end)
            local blocked_for = tonumber(line:match "seconds=([%d.]+)")
            assert.is_true(blocked_for > 0.15, line)
            assert.matches(name, line)
            server:close()
        end
    end)

    it("that ends when the wall clock has been set is not blamed", function()
        assert.same("set", outcome("shift:3600").result.content)
        assert.is_nil(server:line_with "blocked")
    end)

    it("that lets others work is not blamed", function()
        outcome "nap:0.5"
        assert.is_nil(server:line_with "blocked")
    end)

    it("on worker threads works without ngx", function()
        local target = outcome("say:by thread", { executor = "threads",
            fetch = "spec.support.errand" })
        assert.same("by thread", target.result.content)
    end)
end)

describe("workers of nginx", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("begin at once what another process submits", function()
        local server = openresty.start()
        local client, quickest = fresh.client(), math.huge
        for i = 1, 10 do
            local began_at = core.monotime()
            local id = assert(client:submit("me", { { url = "say:" .. i } }))
            assert.same("done", assert(client:wait(id, 10)).status)
            quickest = math.min(quickest, core.monotime() - began_at)
        end
        assert.is_true(quickest < 0.05 * SLOWNESS, "it took " .. quickest .. " s")
        assert.same({}, server:complaints())
    end)

    it("share the work of one that has more than it can do", function()
        local server = openresty.start { batch = { workers = 1 } }
        local ids = server:run [[
            local batch, ids = require "batch.openresty", {}
            for i = 1, 16 do
                ids[i] = batch.submit("me", { { url = "nap:0.1#" .. i }, { url = "whoami:" } })
            end
            return ids
        ]]
        local client, pids, n_pids = fresh.client(), {}, 0
        for _, id in ipairs(ids) do
            assert.same("done", assert(client:wait(id, 20)).status)
            local pid = select(2, client:status(id))[2].result.content
            n_pids = n_pids + (pids[pid] and 0 or 1)
            pids[pid] = true
        end
        assert.is_true(n_pids > 1)
    end)

    it("use no processor while there is nothing to do", function()
        local server = openresty.start { batch = { workers = 16 } }
        run_job(server, { "say:a" })
        local function ticks()
            local sum = 0
            for _, pid in ipairs(server:workers()) do
                local file = assert(io.open(("/proc/%d/stat"):format(pid)))
                local user, system = file:read("*a"):match("%) " .. ("%S+ "):rep(11)
                    .. "(%d+) (%d+)")
                sum = sum + user + system
                file:close()
            end
            return sum
        end
        local before = ticks()
        core.poll_fd(-1, 2)
        local spent = ticks() - before -- hundredths of a second, of four workers in two seconds
        -- The keepers' looks take some; one worker that spins takes 200.
        assert.is_true(spent <= 40 * SLOWNESS, spent .. " ticks")
    end)

    it("count together: any of them tells the figures of all", function()
        local server = openresty.start()
        for i = 1, 12 do
            run_job(server, { "say:a" .. i, "fail:b" .. i })
        end
        eventually(function()
            local text = server:get("/metrics").body
            return text:find('\nbatch_jobs_total{outcome="partial"} 12\n', 1, true)
                and text:find('\nbatch_targets_total{outcome="done"} 12\n', 1, true)
        end)
        assert.matches("^text/plain; version=", server:get("/metrics").headers["content-type"])
    end)
end)
