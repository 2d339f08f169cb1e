-- SPDX-License-Identifier: MIT

--- The work of the built-in pipeline: one target in, content or failure out. Runs in worker states;
-- the clients of such a state, one for each set of settings, are kept here because functions that
-- are carried from state to state can hold plain data only.

local deadline = require "batch.deadline"
local http = require("batch.core").http
local option = require("batch.target_options").read
local reason = require "batch.reason"
local recover = require "batch.recover"
local retry = require "batch.retry"
local stages = require "batch.stages"

local BUSY = { [429] = true, [503] = true }
local TRY_AGAIN = { [408] = true, [500] = true, [502] = true, [504] = true }
local TRY_AGAIN_KINDS = { connect = true, resolve = true }

local ABANDONED_AFTER = 10 -- seconds; twice what the core gives a fetch past its deadline
local FIRST_PAUSE = 0.5 -- seconds, doubled from one attempt to the next

local clients = {} -- settings.key → client

--- Opens this state's client for the settings, unless it is there.
-- @tparam table settings `key` and `client` (the fields of `http.new`)
-- @return the client
-- @raise if the settings are wrong
local function open(settings)
    local client = clients[settings.key]
    if not client then
        client = assert(http.new(settings.client))
        clients[settings.key] = client
    end
    return client
end

--- Closes this state's client for the settings, if there is one.
local function close(settings)
    local client = clients[settings.key]
    clients[settings.key] = nil
    if client then
        client:close()
    end
end

local function seconds_left(settings, ctx)
    local timeout = settings.client.timeout
    return math.min(timeout, deadline.left(ctx) or timeout)
end

-- What a request ended with: its answer, or error, hint, and what kind of failure it was.
local function judge(answer, message, hint, kind)
    if not answer then
        return { error = message, hint = hint, kind = kind, is_passing = TRY_AGAIN_KINDS[kind] }
    elseif BUSY[answer.status] then
        return { error = retry.later(reason.words(answer.status), answer.retry_after),
            status = answer.status }
    elseif answer.status >= 400 then
        return { error = reason.words(answer.status), status = answer.status,
            is_passing = TRY_AGAIN[answer.status] }
    end
    return { answer = answer }
end

-- Between half and one and a half of the nominal pause, so that workers do not come back in step.
local function pause_after(attempt)
    return FIRST_PAUSE * 2 ^ (attempt - 1) * (0.5 + math.random())
end

local function may_wait(ctx, seconds)
    return seconds < (deadline.left(ctx) or math.huge)
end

-- Requests the target's URL up to `attempts` times.
local function request(settings, target, ctx)
    local client = open(settings)
    for attempt = 1, settings.attempts do
        local outcome = judge(client:get(target.url, {
            headers = option(target, "headers"), timeout = seconds_left(settings, ctx),
            cancel_fd = ctx.cancel_fd,
        }))
        outcome.attempts = attempt
        local pause = pause_after(attempt)
        if not outcome.is_passing or attempt == settings.attempts or not may_wait(ctx, pause) then
            return outcome
        elseif not ctx:sleep(pause) then
            return { error = "cancelled" }
        end
    end
end

-- A slot of a URL's host; false, and the seconds until it is worth asking again; or nil, message
-- and hint.
local function enter(settings, url, ctx)
    local left = deadline.left(ctx)
    return http.enter(settings.key, url, {
        limit = settings.per_host,
        delay = settings.per_host_delay,
        -- A thread that is given up never leaves; it is, some seconds after the deadline.
        lasts = left and math.max(left, 0) + ABANDONED_AFTER,
        who = ("%s %s"):format(tostring(ctx.job), tostring(ctx.idx)),
    })
end

-- The same, once the target's host has room for a request.
local function request_in_turn(settings, target, ctx)
    local slot, seconds_or_message, hint = enter(settings, target.url, ctx)
    if slot then
        return slot:run(request, settings, target, ctx)
    elseif slot == false then
        local busy = retry.later("the host is busy", seconds_or_message, { patient = true })
        return { error = busy }
    end
    return { error = seconds_or_message, hint = hint }
end

local function get_copy(settings, address, ctx)
    local answer, message = open(settings):get(address, {
        timeout = seconds_left(settings, ctx), cancel_fd = ctx.cancel_fd, exempt = true,
    })
    return answer or { error = message }
end

-- What the archive says. Here the worker waits for its turn: the page would have to be asked again
-- if the target were put back. Nil when there is no time left for that.
local function get_copy_in_turn(settings, address, ctx)
    while true do
        local slot, seconds_or_message = enter(settings, address, ctx)
        if slot then
            return slot:run(get_copy, settings, address, ctx)
        elseif slot == nil then
            return { error = seconds_or_message }
        elseif not may_wait(ctx, seconds_or_message) then
            return nil
        elseif not ctx:sleep(seconds_or_message) then
            return { error = "cancelled" }
        end
    end
end

-- The newest archived copy in place of what cannot be had; the failure itself, with a hint, when
-- there is none.
local function heal(settings, target, ctx, failure)
    local address, message, hint = recover.address(settings.archive, target.url)
    if not address then
        return { error = message, hint = hint }
    end
    local answer = get_copy_in_turn(settings, address, ctx)
    if not answer then
        return { error = retry.later("the archive is busy", nil, { patient = true }) }
    end
    local is_healed
    is_healed, message, hint = recover.judge(failure, answer, settings.archive)
    if not is_healed then
        return { error = message, hint = hint }
    end
    return { answer = answer, attempts = failure.attempts, recovered_from = answer.url }
end

-- What reaches the language model: its address is the operator's.
local function post_by(settings)
    return function(url, fields)
        fields.exempt = true
        return open(settings):post(url, fields)
    end
end

--- Fetches a target: what a fetch function is to the runner.
-- @tparam table settings as for `open`, and `attempts`, `per_host`, `per_host_delay` (seconds),
-- `archive`, `llm`
-- @tparam table target `url`, `options`
-- @tparam table ctx `job`, `idx`; `deadline` and `cancel_fd` may be nil
-- @treturn[1] table `{content =, meta =}`
-- @treturn[2] nil
-- @treturn[2] string|table why not, or a `retry.later`
-- @treturn[2] ?string a hint
local function fetch(settings, target, ctx)
    local is_fine, fault, advice = stages.check(target, settings.llm)
    if not is_fine then
        return nil, fault, advice
    end
    local outcome = request_in_turn(settings, target, ctx)
    if not outcome.answer and option(target, "recover") and recover.is_healable(outcome) then
        outcome = heal(settings, target, ctx, outcome)
    end
    if not outcome.answer then
        return nil, outcome.error, outcome.hint
    end
    local result, message, hint = stages.apply(outcome.answer, {
        target = target, ctx = ctx, llm = settings.llm, post = post_by(settings),
    })
    if not result then
        return nil, message, hint
    end
    result.meta.attempts = outcome.attempts
    result.meta.recovered_from = outcome.recovered_from
        and http.decode(outcome.recovered_from, "utf-8")
    return result
end

--- @export
return { open = open, fetch = fetch, close = close }
