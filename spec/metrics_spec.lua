-- SPDX-License-Identifier: MIT
--
-- The text that Prometheus scrapes: exact, complete from the first scrape, and to its own tool's
-- liking.

local batch = require "batch"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local metrics = require "batch.metrics"
local promtool = require "spec.support.promtool"

local VERSION = batch._VERSION:match("%S+$")

local function histogram(sum, ...)
    local counts, buckets = { ... }, {}
    local bounds = { 0.005, 1, 1048576, math.huge }
    for i, bound in ipairs(bounds) do
        buckets[i] = { le = bound, count = counts[i] }
    end
    return { count = counts[#bounds], sum = sum, buckets = buckets }
end

local function known_stats()
    return {
        live_jobs = 3, inflight_targets = 2, waiting_targets = 1, oldest_pending_seconds = 1.5,
        store_bytes = 2 ^ 40, healthy = true,
        jobs = { done = 7, failed = 1 }, targets = { done = 12345678901, failed = 0 },
        retries = 4, evicted_jobs = 0, abandoned_threads = 0, events_dropped = 9,
        job_seconds = histogram(0.1 + 0.2, 1, 2, 3, 3),
        target_seconds = histogram(0, 0, 0, 0, 0),
        result_bytes = histogram(2 ^ 53, 1, 1, 1, 1),
        commit_seconds = histogram(1e-7, 1, 1, 1, 1),
        commit_targets = histogram(6, 0, 2, 3, 4),
    }
end

-- The lines of a metric, its own and its histogram's, without HELP and TYPE.
local function samples(text, name)
    local found = {}
    for line in text:gmatch("([^\n]*)\n") do
        local sample = line:match("^[%w_]+")
        if sample and sample:gsub("^" .. name .. "_%l+$", name) == name then
            found[#found + 1] = line
        end
    end
    return found
end

describe("metrics", function()
    it("have HELP, TYPE and every outcome from the start", function()
        local text = metrics.render(known_stats())
        assert.equal([[
# HELP batch_jobs_total jobs whose end was stored, by how; restart: their process had ended
# TYPE batch_jobs_total counter
batch_jobs_total{outcome="done"} 7
batch_jobs_total{outcome="partial"} 0
batch_jobs_total{outcome="failed"} 1
batch_jobs_total{outcome="cancelled"} 0
batch_jobs_total{outcome="restart"} 0
]], text:match("^.-restart\"} 0\n"))
        assert.same({ 'batch_targets_total{outcome="done"} 12345678901',
            'batch_targets_total{outcome="failed"} 0' }, samples(text, "batch_targets_total"))
    end)

    it("have cumulated histograms with bounds as Prometheus writes them", function()
        local text = metrics.render(known_stats())
        assert.same({
            'batch_job_duration_seconds_bucket{le="0.005"} 1',
            'batch_job_duration_seconds_bucket{le="1"} 2',
            'batch_job_duration_seconds_bucket{le="1048576"} 3',
            'batch_job_duration_seconds_bucket{le="+Inf"} 3',
            "batch_job_duration_seconds_sum 0.30000000000000004",
            "batch_job_duration_seconds_count 3",
        }, samples(text, "batch_job_duration_seconds"))
    end)

    it("have exact numbers", function()
        local text = metrics.render(known_stats(), { max_bytes = 64 * 1024 * 1024 })
        assert.same({ "batch_store_bytes 1099511627776" }, samples(text, "batch_store_bytes"))
        assert.same({ "batch_store_limit_bytes 67108864" },
            samples(text, "batch_store_limit_bytes"))
        assert.same({ "batch_oldest_pending_seconds 1.5" },
            samples(text, "batch_oldest_pending_seconds"))
        assert.matches("\nbatch_result_bytes_sum 9007199254740992\n", text)
        assert.matches("\nbatch_commit_duration_seconds_sum 1e%-07\n", text)
    end)

    it("have a point in their numbers in a locale with a comma", function()
        local format = string.format
        finally(function() rawset(string, "format", format) end)
        rawset(string, "format", function(...)  -- as after os.setlocale("de_DE.UTF-8")
            return (format(...):gsub("(%d)%.(%d)", "%1,%2"))
        end)
        assert.same({ "batch_oldest_pending_seconds 1.5" },
            samples(metrics.render(known_stats()), "batch_oldest_pending_seconds"))
    end)

    it("tell a healthy runner from one that is not", function()
        local stats = known_stats()
        assert.same({ "batch_healthy 1" }, samples(metrics.render(stats), "batch_healthy"))
        stats.healthy = false
        assert.same({ "batch_healthy 0" }, samples(metrics.render(stats), "batch_healthy"))
    end)

    it("tell the version", function()
        assert.same({ ('batch_build_info{version="%s"} 1'):format(VERSION) },
            samples(metrics.render(known_stats()), "batch_build_info"))
    end)

    it("are still a text without a runner, and say so", function()
        assert.equal(([[
# HELP batch_up 1 while this process has a runner; 0: batch is disabled or its store does not open
# TYPE batch_up gauge
batch_up 0
# HELP batch_build_info always 1; the label is the version
# TYPE batch_build_info gauge
batch_build_info{version="%s"} 1
]]):format(VERSION), metrics.render(nil, { max_bytes = 1 }))
        assert.same({ "batch_up 1" }, samples(metrics.render(known_stats()), "batch_up"))
    end)

    it("name the form of the text for the answer's header", function()
        assert.equal("text/plain; version=0.0.4; charset=utf-8", metrics.CONTENT_TYPE)
    end)
end)

describe("a runner's metrics", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local function text_after_work()
        local runner = fresh.runner {
            executor = "threads", targets_per_job = 10,
            fetch = function(target)
                if target.url == "bad" then
                    return nil, "no such page"
                end
                return ("x"):rep(5000)
            end,
        }
        local id = assert(runner:submit("me", { { url = "good" }, { url = "bad" } }))
        assert(runner:wait(id, 10))
        -- The histogram of commits gets its entry when the commit is over.
        eventually(function() return runner:stats().targets.failed == 1 end)
        return metrics.render(runner:stats(), { max_bytes = 1024 })
    end

    it("count what it did", function()
        local text = text_after_work()
        for _, line in ipairs {
            'batch_jobs_total{outcome="partial"} 1', 'batch_jobs_total{outcome="done"} 0',
            'batch_targets_total{outcome="done"} 1', 'batch_targets_total{outcome="failed"} 1',
            "batch_job_duration_seconds_count 1", "batch_target_duration_seconds_count 2",
            'batch_result_bytes_bucket{le="4096"} 0', 'batch_result_bytes_bucket{le="16384"} 1',
            'batch_result_bytes_bucket{le="+Inf"} 1', "batch_result_bytes_sum 5000",
            "batch_live_jobs 0", "batch_inflight_targets 0", "batch_store_bytes 5000",
            "batch_healthy 1", "batch_up 1",
        } do
            assert.is_truthy(text:find("\n" .. line .. "\n", 1, true), line .. "\n" .. text)
        end
    end)

    it("are all there", function()
        local text, missing = text_after_work(), {}
        for _, metric in ipairs(metrics.METRICS) do
            if #samples(text, metric.name) == 0 then
                missing[#missing + 1] = metric.name
            end
        end
        assert.same({}, missing)
    end)

    it("are to promtool's liking", function()
        if not promtool.is_here then
            pending("needs promtool")
        end
        for _, text in ipairs { text_after_work(), metrics.render(nil) } do
            local output, is_content = promtool.run("check metrics", text)
            assert.equal("", output)
            assert.is_true(is_content)
        end
    end)
end)
