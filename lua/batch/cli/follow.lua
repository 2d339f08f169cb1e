-- SPDX-License-Identifier: MIT

--- Follows a run in the store: writes each outcome of its jobs once, in commit order, counts it,
-- and keeps the progress display going, until all are there, or the user or the store says stop.
-- Everything comes from the store's change feed, so it does not matter which process fetched it,
-- or when.

local core = require "batch.core"

local WAIT_SECONDS = 0.1
local COUNT_SECONDS = 1
-- So long a store may refuse outcomes before the run gives up: time to make room on a disk.
local PATIENCE_SECONDS = 60
-- Also renews the leases of jobs that ended long before the run.
local LOOK_SECONDS = 5
local PAGE_BYTES = 8 * 1024 * 1024
local MAX_PAGE = 500

local LIVE = { queued = true, running = true }

local function write_outcome(run, outcome)
    local job = run.jobs[outcome.job]
    if not job then
        return true -- of another run in the same store
    end
    local line = run.hand:line(job, outcome.idx)
    run.summary:add(outcome, line, outcome.finished_at >= run.started_at)
    run.n_seen[outcome.job] = (run.n_seen[outcome.job] or 0) + 1
    return run.output:write(outcome, line)
end

local function show(run)
    local facts = run.summary
    run.bar:update({
        total = facts.total, done = facts.done, failed = facts.failed, fresh = facts.fresh,
        busy = run.n_busy,
    }, run.now())
end

-- So many that a page of large results fits into memory and one of small results is worth a query.
local function next_page(outcomes)
    local n_bytes = 0
    for _, outcome in ipairs(outcomes) do
        n_bytes = n_bytes + (outcome.result and #outcome.result.content or 0)
    end
    local mean = n_bytes / math.max(#outcomes, 1)
    return math.max(1, math.min(MAX_PAGE, math.floor(PAGE_BYTES / (mean + 1))))
end

-- Returns the number of outcomes that were read.
local function write_page(run)
    local outcomes, message, code = run.runner:changes(run.seq, run.page)
    if not outcomes then
        return nil, message, code
    end
    if #outcomes > 0 and run.is_shared_terminal then
        run.bar:clear()
    end
    if #outcomes > 0 and run.stuck_since then
        run.stuck_since = nil
        run.bar:say("going on")
    end
    for _, outcome in ipairs(outcomes) do
        local is_written, why, write_code = write_outcome(run, outcome)
        if not is_written then
            return nil, why, write_code
        end
        run.seq = outcome.seq
    end
    if #outcomes > 0 then
        run.page = next_page(outcomes)
        local is_flushed, why, flush_code = run.output:flush()
        if not is_flushed then
            return nil, why, flush_code
        end
    end
    return #outcomes
end

-- A job that somebody cancelled, or that is gone from the store, yields no further outcome.
local function is_over(run, id)
    local job, message, code = run.runner:status(id, { results = false, limit = 1 })
    if job then
        return not LIVE[job.status] and job.targets_done <= (run.n_seen[id] or 0)
    elseif code == "store" then
        return nil, message, code
    end
    return true
end

local function look_for_live_jobs(run)
    local n_live = 0
    for id in pairs(run.jobs) do
        local is_ended, message, code = is_over(run, id)
        if is_ended == nil then
            return nil, message, code
        end
        n_live = n_live + (is_ended and 0 or 1)
    end
    if n_live == 0 then
        return nil, "the jobs of what is pending were cancelled or dropped from the store",
            "incomplete"
    end
    return true
end

-- The core keeps outcomes that the store does not take and tries again; why is in its log. Once
-- each job has one of these nothing moves any more, which is how to tell it from a slow fetch. A
-- full disk may still take something small now and then, so only an outcome ends this.
local function look_whether_stuck(run, stats)
    if stats.inflight_targets + stats.waiting_targets > 0 then
        run.stuck_since = nil
    elseif not stats.healthy then
        run.stuck_since = run.stuck_since or run.now()
    end
    if not run.stuck_since or run.now() - run.stuck_since < PATIENCE_SECONDS then
        return true
    end
    return nil, ("gave up: nothing could be stored for %d seconds"):format(PATIENCE_SECONDS),
        "store"
end

local function tend(run)
    run.runner:poll()
    if run.now() >= run.count_at then
        run.count_at = run.now() + COUNT_SECONDS
        local stats = run.runner:stats()
        run.n_busy = stats.waiting_targets
        local is_going, message, code = look_whether_stuck(run, stats)
        if not is_going then
            return nil, message, code
        end
    end
    if run.now() >= run.look_at then
        run.look_at = run.now() + LOOK_SECONDS
        return look_for_live_jobs(run)
    end
    return true
end

--- Writes the outcomes of a run from the first one on, until each target has one.
-- @tparam table run `runner`, `jobs` (id to number), `hand` (the deal), `output`, `summary`, `bar`,
-- `started_at` in seconds since the epoch; `now`, if another clock than the system's monotonic one
-- tells how time passes
-- @treturn[1] true
-- @treturn[2] nil
-- @treturn[2] string why it ended early
-- @treturn[2] string `interrupted`, `incomplete`, `store`, or the code of who refused
local function outcomes(run)
    run.now = run.now or core.monotime
    run.seq, run.page, run.n_seen = 0, MAX_PAGE, {}
    run.n_busy, run.count_at, run.look_at = 0, 0, 0
    run.is_shared_terminal = run.out == nil and core.is_terminal(1)
    while true do
        local n_read, message, code = write_page(run)
        if not n_read then
            return nil, message, code
        end
        if run.summary:pending() == 0 then
            return true
        end
        if core.caught() then
            return nil, "interrupted", "interrupted"
        end
        local is_going, why, tend_code = tend(run)
        if not is_going then
            return nil, why, tend_code
        end
        show(run)
        if n_read == 0 then
            core.poll_fd(run.runner:fd(), WAIT_SECONDS)
        end
    end
end

--- @export
return {
    outcomes = outcomes,
}
