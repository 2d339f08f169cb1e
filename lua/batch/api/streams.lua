-- SPDX-License-Identifier: MIT

--- The answers about jobs that are made while they are sent: outcomes as JSON Lines, and events.
-- A page of the store is held at a time, and nothing while there is nothing to send.

local answers = require "batch.api.answers"
local jobs = require "batch.api.jobs"

-- Proxies and clients take a connection that is silent for longer for dead.
local HEARTBEAT_SECONDS = 15
-- How long a client of events waits before it connects again.
local RECONNECT_MS = 1000

-- Whether a page ends its job: it is over, and every outcome is in the page or before it.
local function is_last(page)
    return jobs.TERMINAL[page.status] and page.next >= page.targets_done
end

local function read_page(api, context, from)
    return api.runner:read_json(context.id, {
        caller = context.caller, from = from, results = context.query.results, outcomes = true,
    })
end

-- Of a stream that has begun: when the job or the store goes away it is broken off, for what was
-- sent must not look complete.
local function read_on(api, context, from)
    local page, message = read_page(api, context, from)
    return page or answers.break_off(message)
end

-- Who goes while a stream waits leaves no one behind who waits.
local function stream(content_type, next_chunk, waiter)
    return answers.stream(content_type, next_chunk, function() waiter:leave() end)
end

--- `GET /v1/batches/ID/results`
local function results(api, _, context)
    local follow = context.query.follow
    local page, message, code = read_page(api, context, context.query.from)
    if not page then
        return answers.runner_refusal(message, code)
    end
    local from, waiter = page.next, api.notifier:waiter(context.id)
    if #page.targets == 0 then
        page = nil -- sending the head may take its time: by then there may be some
    end
    local function next_chunk()
        while true do
            page = page or read_on(api, context, from)
            local this = page
            page, from = nil, this.next
            if #this.targets > 0 then
                return table.concat(this.targets, "\n") .. "\n"
            elseif is_last(this) or not follow then
                return nil
            elseif api.is_dismissing then
                answers.break_off(answers.CLOSING)
            end
            waiter:wait(this.mark, HEARTBEAT_SECONDS)
        end
    end
    return stream("application/jsonl", next_chunk, waiter)
end

local function event_lines(page)
    local lines, first = {}, page.next - #page.targets
    for i, target in ipairs(page.targets) do
        lines[i] = ("id: %d\nevent: target\ndata: %s\n\n"):format(first + i - 1, target)
    end
    return table.concat(lines)
end

-- The idx after the last one that the client has seen.
local function resume_from(request, context)
    local last = request.header "last-event-id"
    if not last or last == "" then
        return context.query.from
    end
    return last:find "^%d%d?%d?%d?%d?%d?%d?%d?%d?$" and tonumber(last) + 1 or nil
end

--- `GET /v1/batches/ID/events`
local function events(api, request, context)
    local from = resume_from(request, context)
    if not from then
        return answers.refusal("bad_request", "Last-Event-ID must be the id of an event")
    end
    local page, message, code = read_page(api, context, from)
    if not page then
        return answers.runner_refusal(message, code)
    end
    local head, has_ended = ("retry: %d\n\n"):format(RECONNECT_MS), false
    local waiter = api.notifier:waiter(context.id)
    local function next_chunk()
        while not has_ended do
            page = page or read_on(api, context, from)
            local this, chunk = page, head .. event_lines(page)
            page, head, from, has_ended = nil, "", page.next, is_last(page)
            if has_ended then
                return chunk .. ("event: job\ndata: %s\n\n"):format(this.job)
            elseif chunk ~= "" then
                return chunk
            elseif api.is_dismissing then
                return nil -- the client connects again, and finds where it was
            elseif not waiter:wait(this.mark, HEARTBEAT_SECONDS) then
                return ":\n\n"
            end
        end
        return nil
    end
    return stream("text/event-stream", next_chunk, waiter)
end

--- @export
return { results = results, events = events }
