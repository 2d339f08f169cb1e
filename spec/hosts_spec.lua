-- SPDX-License-Identifier: MIT
--
-- Slots of hosts as fetch functions use them: over all workers of a process, and given back
-- whatever becomes of the fetch.

local cqueues = require "cqueues"

local batch = require "batch"
local http = require("batch.core").http
local sites = require "spec.support.site"

local runners = {}

local function opened(options)
    options.store, options.jobs_total, options.jobs_per_caller = ":memory:", 1000, 1000
    options.durability = "normal"
    local runner = assert(batch.new(options))
    table.insert(runners, runner)
    return runner
end

after_each(function()
    for i = #runners, 1, -1 do
        table.remove(runners, i):close()
    end
end)

-- A fetch function with slots. Its settings are upvalues, for it is carried to the workers' states.
local function limited(rules, work)
    local retry = require "batch.retry"
    return function(target, ctx)
        local slot, seconds = require("batch.core").http.enter("spec", target.url, {
            limit = rules.limit, delay = rules.delay, lasts = 60, who = ctx.job .. ctx.idx,
        })
        if not slot then
            return nil, retry.later("the host is busy", seconds, { patient = true })
        end
        return slot:run(work, target, ctx)
    end
end

local function get(target)
    local core_http, monotime = require("batch.core").http, require("cqueues").monotime
    local begun = monotime()
    local client = assert(core_http.new { allow = { "127.0.0.0/8" } })
    local answer, message = client:get(target.url)
    client:close()
    if not answer then
        return nil, message
    end
    return { content = answer.body, meta = { begun = begun, ended = monotime() } }
end

-- Runs so many targets of one URL, each a job, and gives their metas and how long it took.
local function run(runner, count, url)
    local ids, metas, begun = {}, {}, cqueues.monotime()
    for i = 1, count do
        ids[i] = assert(runner:submit("me", { { url = url, options = { nr = i } } }))
    end
    for i, id in ipairs(ids) do
        assert(runner:wait(id, 30))
        local _, targets = runner:status(id)
        metas[i] = assert(targets[1].result, targets[1].error).meta
    end
    return metas, cqueues.monotime() - begun
end

-- Whether something takes at most so many times as long as something else, once in five tries, for
-- the machine may be busy with other things. Both give their seconds.
local function is_as_fast(times, something, other)
    local tries = {}
    for i = 1, 5 do
        local seconds, floor = something(), other()
        if seconds < times * floor then
            return
        end
        tries[i] = ("%.3f s beside %.3f s"):format(seconds, floor)
    end
    error(table.concat(tries, ", "), 2)
end

local function most_at_once(metas)
    local most = 0
    for _, one in ipairs(metas) do
        local count = 0
        for _, other in ipairs(metas) do
            if other.begun <= one.begun and one.begun < other.ended then
                count = count + 1
            end
        end
        most = math.max(most, count)
    end
    return most
end

describe("a host's limit", function()
    local site, base
    setup(function()
        site = sites.start()
        base = site.base
    end)
    teardown(function()
        site:stop()
    end)

    it("holds over all workers, without making them wait", function()
        is_as_fast(2.5, function()
            local runner = opened { workers = 16, fetch = limited({ limit = 2 }, get) }
            local metas, seconds = run(runner, 100, base .. "/slow?seconds=0.02")
            assert.same(2, most_at_once(metas))
            assert.is_true(seconds > 1, seconds)
            -- Each target was put off about as often as it has to be, not all the time.
            local n_most = 100 * 15 * math.max(1, seconds / 2)
            assert.is_true(runner:stats().retries < n_most, runner:stats().retries)
            return seconds
        end, function()
            local _, seconds = run(opened { workers = 2, fetch = get }, 100,
                base .. "/slow?seconds=0.02")
            return seconds
        end)
    end)

    it("leaves workers to other hosts", function()
        local runner = opened { workers = 2, fetch = limited({ limit = 1 }, get) }
        local ids = {}
        for i = 1, 10 do
            local target = { url = base .. "/slow?seconds=1", options = { nr = i } }
            ids[i] = assert(runner:submit("me", { target }))
        end
        local elsewhere = base:gsub("127.0.0.1", "127.0.0.2")
        elsewhere = { url = elsewhere .. "/" } -- where nothing listens, so that it ends at once
        local job = assert(runner:wait(assert(runner:submit("you", { elsewhere })), 10))
        assert.same("failed", job.status)
        assert.is_true(runner:stats().jobs.done < 5, "it waited for those of the other host")
        for _, id in ipairs(ids) do
            runner:cancel(id)
        end
    end)

    it("costs little where it is not reached", function()
        is_as_fast(3, function()
            local runner = opened { workers = 16, fetch = limited({ limit = 100 }, get) }
            local _, seconds = run(runner, 200, base .. "/pages/1")
            return seconds
        end, function()
            local _, seconds = run(opened { workers = 16, fetch = get }, 200, base .. "/pages/1")
            return seconds
        end)
    end)

    it("lets small pages through one after the other at once", function()
        is_as_fast(10, function()
            local runner = opened { workers = 16, fetch = limited({ limit = 2 }, get) }
            local metas, seconds = run(runner, 200, base .. "/pages/2")
            assert.same(2, most_at_once(metas))
            return seconds
        end, function()
            local _, seconds = run(opened { workers = 2, fetch = get }, 200, base .. "/pages/2")
            return seconds
        end)
    end)

    it("keeps requests one delay apart", function()
        local runner = opened { workers = 8, fetch = limited({ limit = 2, delay = 0.05 }, get) }
        local before = cqueues.monotime()
        local metas, seconds = run(runner, 20, base .. "/pages/3")
        local begun = {}
        for i, meta in ipairs(metas) do
            begun[i] = meta.begun
        end
        table.sort(begun)
        -- Noted a moment after the slot was had, the first one's perhaps late: hence since before.
        for i = 2, #begun do
            assert.is_true(begun[i] - before >= (i - 1) * 0.05)
        end
        assert.is_true(seconds < 10, seconds)
    end)
end)

describe("a slot of a host", function()
    local url, key
    before_each(function()
        key = "spec " .. math.random()
        url = "http://example.org/"
    end)

    local function enter(fields, name)
        fields = fields or {}
        fields.limit = fields.limit or 1
        return http.enter(key, name or url, fields)
    end

    local function is_free()
        local slot = enter { who = "probe" }
        if slot then
            slot:leave()
        end
        return slot ~= false
    end

    it("is one of few", function()
        local slot = assert(enter())
        local refused, seconds = enter()
        assert.same(false, refused)
        assert.is_true(seconds >= 0.001 and seconds <= 1)
        slot:leave()
        slot:leave()
        assert.is_true(is_free())
    end)

    it("belongs to host and port, however they are written", function()
        local slot = assert(enter())
        for _, same in ipairs { "http://EXAMPLE.org:80/x?y", "http://example.org./" } do
            assert.same({ same, false }, { same, (enter({}, same)) })
        end
        for _, other in ipairs {
            "https://example.org/", "http://example.org:8080/", "http://www.example.org/",
        } do
            local another = enter({}, other)
            assert.is_truthy(another)
            another:leave()
        end
        slot:leave()
    end)

    it("is another with other settings", function()
        local slot, another = enter(), http.enter(key .. "b", url, { limit = 1 })
        assert.is_truthy(slot and another)
        slot:leave()
        another:leave()
    end)

    it("comes back from what it ran, with what that returned", function()
        assert.same({ 1, nil, 3 }, { enter():run(function(...) return ... end, 1, nil, 3) })
        assert.is_true(is_free())
    end)

    it("comes back when that raises", function()
        local slot = enter()
        local ok, raised = pcall(slot.run, slot, error, { "reason" })
        assert.same({ false, { "reason" } }, { ok, raised })
        assert.is_true(is_free())
    end)

    it("comes back when it is forgotten", function()
        enter()
        collectgarbage()
        assert.is_true(is_free())
    end)

    it("lapses when its thread is lost", function()
        local slot = enter { lasts = 0.5 }
        assert.is_false(is_free())
        cqueues.sleep(0.6)
        assert.is_true(is_free())
        slot:leave()
    end)

    it("comes back when the fetch is stopped by its time-out", function()
        local function loop(target)
            while target.options.loops do
                target.options.loops = true
            end
            return "there"
        end
        local runner = opened {
            workers = 2, fetch = limited({ limit = 1 }, loop), target_timeout = "0.2s",
        }
        local targets = {
            { url = url, options = { loops = true } },
            { url = url },
        }
        local id = assert(runner:submit("me", targets))
        assert(runner:wait(id, 10))
        local _, found = runner:status(id)
        assert.same({ "timed out", "there" }, { found[1].error, found[2].result.content })
        assert.same(0, runner:stats().abandoned_threads)
    end)

    it("is not to be had for what is no URL", function()
        local hint = "only http and https are fetched"
        assert.same({ nil, "scheme 'ftp' is not allowed", hint, "url" },
            { enter({}, "ftp://example.org/") })
    end)
end)

describe("http.address", function()
    it("says how a URL would be requested, and from which host", function()
        local known = {
            { " http://EXAMPLE.org ", "http://EXAMPLE.org/", "example.org:80" },
            { "https://a.example:8443/b/../c?d=e f#g", "https://a.example:8443/c?d=e+f",
                "a.example:8443" },
            { "http://0x7f.1/", "http://127.0.0.1/", "127.0.0.1:80" },
            { "http://[::1]:81/", "http://[::1]:81/", "[::1]:81" },
        }
        for _, row in ipairs(known) do
            assert.same({ row[2], row[3] }, { http.address(row[1]) })
        end
        assert.same({ nil, "user names in URLs are not allowed",
            "send them as a header, Authorization", "url" }, { http.address "http://a@b.example/" })
    end)
end)
