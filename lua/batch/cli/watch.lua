-- SPDX-License-Identifier: MIT

--- `luabatch watch`: shows how far a job is until it ends. Its events come without the contents of
-- results; when the server goes away for a while, watching goes on behind the last event.

local cjson = require("cjson").new()
local core = require "batch.core"
local events = require "batch.cli.events"
local exits = require "batch.cli.exits"
local json = require "batch.json"
local persist = require "batch.cli.persist"
local session = require "batch.cli.session"
local terminal = require "batch.cli.terminal"

local LIVE = { queued = true, running = true }

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    command:argument("ID", "The job."):target("id")
    session.declare_place(command)
    command:flag("--json", "Print the job as JSON when it has ended, and no progress.")
end

local function count(counts, target)
    local kind = target.status == "failed" and "failed" or "done"
    counts[kind] = counts[kind] + 1
    counts.fresh = counts.fresh + 1
end

-- Takes what has arrived. Returns the job if it has ended.
local function take(counts, found)
    for _, event in ipairs(found) do
        local is_json, value = pcall(cjson.decode, event.data)
        if is_json and event.name == "target" and type(value) == "table" then
            count(counts, value)
            counts.last_id = event.id
        elseif is_json and event.name == "job" and session.is_job(value) then
            return value
        end
    end
end

-- Reads events until the job ends or the stream does.
local function read_events(at, id, counts)
    local response, fault = at:open {
        method = "GET", path = at:path(id, "/events"), query = "results=false",
        headers = { ["last-event-id"] = counts.last_id },
    }
    if not response then
        return nil, fault
    end
    local reader, job, has_moved = events.new(), nil, false
    local chunk, message
    repeat
        chunk, message = response.next_chunk()
        if chunk then
            has_moved = true
            job = take(counts, reader:feed(chunk))
        end
    until job or not chunk
    response.close()
    return job, { message = message or "the server ended the stream", exit = exits.store },
        has_moved
end

-- What is known before the first event.
local function begin_counts(job)
    local n_done = job.targets_done - job.targets_failed
    return {
        total = job.targets_total, done = n_done, failed = job.targets_failed, fresh = 0,
        last_id = job.targets_done > 0 and ("%d"):format(job.targets_done - 1) or nil,
    }
end

local function say_end(at, job)
    local n_done = job.targets_done - job.targets_failed
    at.bar:say(("%s: %d done, %d failed of %d%s"):format(job.status, n_done, job.targets_failed,
        job.targets_total, type(job.error) == "string" and ", error: " .. job.error or ""))
end

--- Shows a job's progress until it ends.
-- @tparam session at
-- @tparam string id
-- @tparam boolean is_json the job is printed when it has ended
-- @treturn number the exit code
local function follow(at, id, is_json)
    local job, fault = at:job(id)
    if not job then
        return at:report(fault)
    end
    if LIVE[job.status] then
        local counts = begin_counts(job)
        at.parting = "the job goes on"
        at.tick = function() at.bar:update(counts, core.monotime()) end
        job, fault = persist.persist(at, function() return read_events(at, id, counts) end)
        at.tick = nil
        at.bar:clear()
    end
    if not job then
        return at:report(fault)
    end
    if not is_json then
        say_end(at, job)
        return session.exit_of(job)
    end
    local is_written, exit = terminal.answer(json.encode(job) .. "\n")
    return is_written and session.exit_of(job) or exit
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
local function execute(args)
    return session.run(args, function(at) return follow(at, args.id, args.json) end)
end

--- @export
return {
    execute = execute,
    declare = declare,
    follow = follow,
}
