-- SPDX-License-Identifier: MIT
--
-- Runs inside of the nginx of bench/nginx.conf: what it serves and fetches, with the batch runner
-- and, for comparison, by light threads alone. Both fetch by the client of examples/openresty.

local batch = require "batch.openresty"
local core = require "batch.core"
local fetch = require "pages"

local PAGE = ("c"):rep(1024)
local LOOK_SECONDS = 0.002 -- between two looks whether a round has begun, or is over

local counters = ngx.shared.counters
local text -- what the bare answer says

-- The page that is fetched.
local function page()
    ngx.header.content_length = #PAGE
    ngx.print(PAGE)
end

-- Fetching without the batch runner --------------------------------------------------------------

-- One of the light threads. Numbers of targets are dealt over all processes, as jobs are; a round
-- has begun when there are some.
local function work(premature, host)
    while not premature and not ngx.worker.exiting() do
        if (counters:get "n_left" or 0) <= 0 then
            ngx.sleep(LOOK_SECONDS)
        else
            local n = counters:incr("n_left", -1)
            if n >= 0 then
                assert(fetch { url = ("http://%s/pages/%d"):format(host, n), options = {} })
                counters:incr("n_done", 1, 0)
            end
        end
    end
end

local function argument(name)
    return tonumber(ngx.var["arg_" .. name])
end

-- Answers with the seconds that a number of fetches take.
local function measure_fetch()
    local n_targets, began_at = argument "jobs" * argument "n", core.monotime()
    counters:set("n_done", 0)
    counters:set("n_left", n_targets)
    repeat
        ngx.sleep(LOOK_SECONDS)
    until counters:get "n_done" == n_targets
    ngx.print(core.monotime() - began_at)
end

-- With it ----------------------------------------------------------------------------------------

local n_submitted = 0

local function submit(n_targets)
    local targets = {}
    for i = 1, n_targets do
        n_submitted = n_submitted + 1
        targets[i] = { url = ("http://%s/pages/%d"):format(ngx.var.http_host, n_submitted) }
    end
    return assert(batch.submit("local", targets))
end

-- Answers with a finished job's id.
local function measure_submit()
    local id = submit(argument "n")
    batch.wait(id)
    ngx.print(id)
end

-- Answers with the seconds from the first submit to the last job's end.
local function measure_drain()
    local began_at, submitting = core.monotime(), {}
    for i = 1, argument "jobs" do
        submitting[i] = ngx.thread.spawn(submit, argument "n")
    end
    local ids = {}
    for i, thread in ipairs(submitting) do
        ids[i] = select(2, assert(ngx.thread.wait(thread)))
    end
    for _, id in ipairs(ids) do
        local job, message, code = batch.wait(id)
        -- One that ended early may be evicted by now.
        assert(job and job.status == "done" or code == "not_found", message)
    end
    ngx.print(core.monotime() - began_at)
end

-- The rest ---------------------------------------------------------------------------------------

-- A text as long as is asked for.
local function bare()
    local len = argument "len"
    if not text or #text ~= len then
        text = ("x"):rep(len)
    end
    ngx.print(text)
end

-- Starts the runner or, where the store has no name, as many light threads in its place.
local function start(fields)
    if fields.store == "" then
        for _ = 1, fields.workers do
            assert(ngx.timer.at(0, work, fields.host))
        end
        return
    end
    assert(batch.start {
        store = fields.store, durability = fields.durability, workers = fields.workers,
        fetch = "pages", targets_per_job = 100000, jobs_per_caller = 1000, jobs_total = 1000,
    })
end

return {
    start = start, page = page, bare = bare,
    submit = measure_submit, drain = measure_drain, fetch = measure_fetch,
}
