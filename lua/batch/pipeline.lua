-- SPDX-License-Identifier: MIT

--- The work of the built-in pipeline: one target in, content or failure out. Runs in worker states;
-- the clients of such a state, one for each set of settings, are kept here because functions that
-- are carried from state to state can hold plain data only.

local content = require "batch.content"
local http = require("batch.core").http
local is_absent = require("batch.target_options").is_absent
local reason = require "batch.reason"
local retry = require "batch.retry"

local BUSY = { [429] = true, [503] = true }
local TRY_AGAIN = { [408] = true, [500] = true, [502] = true, [504] = true }
local TRY_AGAIN_KINDS = { connect = true, resolve = true }

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

local function option(target, name)
    local value = (target.options or {})[name]
    if is_absent(value) then
        return nil
    end
    return value
end

local function request(settings, target, ctx)
    local timeout = settings.client.timeout
    if ctx.deadline then
        timeout = math.min(timeout, ctx.deadline - os.time())
    end
    return { headers = option(target, "headers"), timeout = timeout, cancel_fd = ctx.cancel_fd }
end

-- What an answer means: an outcome of result, or of error, hint and is_passing. Servers may write
-- any bytes into their headers; decoded they are text, as meta has to be.
local function judge(answer, target)
    if BUSY[answer.status] then
        local message = reason.words(answer.status)
        return { error = retry.later(message, answer.retry_after) }
    elseif answer.status >= 400 then
        return { error = reason.words(answer.status), is_passing = TRY_AGAIN[answer.status] }
    end
    local content_type = answer.content_type and http.decode(answer.content_type, "utf-8")
    local mode = option(target, "mode") or "auto"
    local text, meta, hint = content.read(mode, answer.body, content_type)
    if not text then
        return { error = meta, hint = hint }
    end
    meta.status, meta.url = answer.status, http.decode(answer.url, "utf-8")
    meta.content_type = content_type
    meta.bytes, meta.seconds = answer.bytes, answer.seconds
    return { result = { content = text, meta = meta } }
end

local function try(settings, target, ctx)
    local client = open(settings)
    local answer, message, hint, kind = client:get(target.url, request(settings, target, ctx))
    if answer then
        return judge(answer, target)
    end
    return { error = message, hint = hint, is_passing = TRY_AGAIN_KINDS[kind] }
end

-- Between half and one and a half of the nominal pause, so that workers do not come back in step.
local function pause_after(attempt)
    return FIRST_PAUSE * 2 ^ (attempt - 1) * (0.5 + math.random())
end

local function may_wait(ctx, seconds)
    return not ctx.deadline or os.time() + seconds < ctx.deadline
end

--- Fetches a target: what a fetch function is to the runner.
-- @tparam table settings as for `open`, and `attempts`
-- @tparam table target `url`, `options`
-- @tparam table ctx `deadline` and `cancel_fd` may be nil
-- @treturn[1] table `{content =, meta =}`
-- @treturn[2] nil
-- @treturn[2] string|table why not, or a `retry.later`
-- @treturn[2] ?string a hint
local function fetch(settings, target, ctx)
    for attempt = 1, settings.attempts do
        local outcome = try(settings, target, ctx)
        if outcome.result then
            outcome.result.meta.attempts = attempt
            return outcome.result
        end
        local pause = pause_after(attempt)
        if not outcome.is_passing or attempt == settings.attempts or not may_wait(ctx, pause) then
            return nil, outcome.error, outcome.hint
        elseif not ctx:sleep(pause) then
            return nil, "cancelled"
        end
    end
end

--- @export
return { open = open, fetch = fetch, close = close }
