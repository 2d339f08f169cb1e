-- SPDX-License-Identifier: MIT

--- What a runner counts, as Prometheus reads it: text exposition format 0.0.4. Knows no runner and
-- no server: a table of stats goes in, text comes out. The table of metrics below is all there is;
-- the table in docs/operations.md, the dashboard and the alerts in examples/ are held against it.

local json = require "batch.json"
local version = require "batch.version"

local CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

-- In the order of the text. A metric has name, type, help, and its place: the field of one of three
-- tables, "stats" (of runner:stats(); the default), "settings" (of the configuration's [batch]) or
-- "process" (what is known without either). A metric whose table or field is missing is left out.
-- With values the field holds one number for each, which becomes the label of that name.
local METRICS = {
    { name = "batch_jobs_total", type = "counter", field = "jobs", label = "outcome",
      values = { "done", "partial", "failed", "cancelled", "restart" },
      help = "jobs whose end was stored, by how; restart: their process had ended" },
    { name = "batch_job_duration_seconds", type = "histogram", field = "job_seconds",
      help = "how long jobs took from their submit; a cancelled one has no duration" },
    { name = "batch_targets_total", type = "counter", field = "targets", label = "outcome",
      values = { "done", "failed" },
      help = "outcomes that were stored" },
    { name = "batch_target_duration_seconds", type = "histogram", field = "target_seconds",
      help = "how long the call of fetch took that gave the outcome" },
    { name = "batch_result_bytes", type = "histogram", field = "result_bytes",
      help = "size of stored results, content and meta" },
    { name = "batch_live_jobs", type = "gauge", field = "live_jobs",
      help = "jobs queued or running, over all processes on the store" },
    { name = "batch_inflight_targets", type = "gauge", field = "inflight_targets",
      help = "targets being fetched now, over all processes on the store" },
    { name = "batch_oldest_pending_seconds", type = "gauge", field = "oldest_pending_seconds",
      help = "age of the oldest live job, over all processes on the store; 0 without one" },
    { name = "batch_retries_total", type = "counter", field = "retries",
      help = "times that a busy target was put off, to be tried again" },
    { name = "batch_store_bytes", type = "gauge", field = "store_bytes",
      help = "all stored results together, over all processes on the store" },
    { name = "batch_store_limit_bytes", type = "gauge", field = "max_bytes", source = "settings",
      help = "what max_bytes allows; above it the oldest finished jobs are evicted" },
    { name = "batch_evicted_jobs_total", type = "counter", field = "evicted_jobs",
      help = "finished jobs evicted because results exceeded max_bytes" },
    { name = "batch_commit_duration_seconds", type = "histogram", field = "commit_seconds",
      help = "how long transactions took that stored outcomes" },
    { name = "batch_commit_targets", type = "histogram", field = "commit_targets",
      help = "outcomes stored in one transaction" },
    { name = "batch_abandoned_threads", type = "gauge", field = "abandoned_threads",
      help = "worker threads given up, stuck in code without end" },
    { name = "batch_events_dropped_total", type = "counter", field = "events_dropped",
      help = "events, log lines among them, dropped because their list was full" },
    { name = "batch_healthy", type = "gauge", field = "healthy",
      help = "1 while the store can be read and written and all workers live" },
    { name = "batch_up", type = "gauge", field = "up", source = "process",
      help = "1 while this process has a runner; 0: batch is disabled or its store does not open" },
    { name = "batch_build_info", type = "gauge", field = "builds", source = "process",
      label = "version", values = { version },
      help = "always 1; the label is the version" },
}

for _, metric in ipairs(METRICS) do
    metric._head = ("# HELP %s %s\n# TYPE %s %s"):format(metric.name, metric.help, metric.name,
        metric.type)
    metric._prefixes = {}  -- "name_bucket{le=…} " by its bound: the bounds never change
end

local BUILDS = { [version] = 1 }
local WITH_RUNNER, WITHOUT_RUNNER = { up = 1, builds = BUILDS }, { up = 0, builds = BUILDS }

-- As JSON has it, but with what JSON lacks, and with a point in every locale.
local function number_text(value)
    if type(value) == "boolean" then
        return value and "1" or "0"
    elseif value ~= value then
        return "NaN"
    elseif value - value ~= 0 then
        return value > 0 and "+Inf" or "-Inf"
    end
    return (json.encode_number(value):gsub("[^%de+-]+", "."))
end

local function bucket_prefix(metric, bound)
    local prefix = metric._prefixes[bound]
    if not prefix then
        prefix = ('%s_bucket{le="%s"} '):format(metric.name, number_text(bound))
        metric._prefixes[bound] = prefix
    end
    return prefix
end

local function add_histogram(lines, metric, histogram)
    for _, bucket in ipairs(histogram.buckets) do
        lines[#lines + 1] = bucket_prefix(metric, bucket.le) .. number_text(bucket.count)
    end
    lines[#lines + 1] = metric.name .. "_sum " .. number_text(histogram.sum)
    lines[#lines + 1] = metric.name .. "_count " .. number_text(histogram.count)
end

-- A label that was not counted yet is there with 0: a rate needs the step from 0 to 1.
local function add_labelled(lines, metric, counts)
    for _, value in ipairs(metric.values) do
        lines[#lines + 1] = ('%s{%s="%s"} %s'):format(metric.name, metric.label, value,
            number_text(counts[value] or 0))
    end
end

local function add_metric(lines, metric, value)
    lines[#lines + 1] = metric._head
    if metric.type == "histogram" then
        add_histogram(lines, metric, value)
    elseif metric.values then
        add_labelled(lines, metric, value)
    else
        lines[#lines + 1] = metric.name .. " " .. number_text(value)
    end
end

--- Writes the answer to a scrape.
-- @tparam[opt] table stats of `runner:stats()`; nil: there is no runner, because batch is disabled
-- or its store does not open, and the text says so (`batch_up 0`)
-- @tparam[opt] table settings the configuration's `[batch]`, of which `max_bytes` is told (bytes)
-- @treturn string Prometheus text, to be sent with `CONTENT_TYPE`
local function render(stats, settings)
    local sources = {
        stats = stats,
        settings = stats and settings,
        process = stats and WITH_RUNNER or WITHOUT_RUNNER,
    }
    local lines = {}
    for _, metric in ipairs(METRICS) do
        local source = sources[metric.source or "stats"]
        local value = source and source[metric.field]
        if value ~= nil then
            add_metric(lines, metric, value)
        end
    end
    lines[#lines + 1] = ""
    return table.concat(lines, "\n")
end

--- @export
return { render = render, CONTENT_TYPE = CONTENT_TYPE, METRICS = METRICS }
