-- SPDX-License-Identifier: MIT

--- The answers about jobs that are made at once: submit, list, read, cancel. Each handler gets the
-- API, the request, and a context: `caller` (nil: sees everybody's jobs), `class`, `id`, `query`.

local answers = require "batch.api.answers"
local cjson = require("cjson").new()
local core = require "batch.core"
local json = require "batch.json"
local nearest = require "batch.nearest"

-- The core's own limit for options is 100 tables; around them are the target, the list, the body.
local MAX_DEPTH = 104
local MAX_PAGE = 1000
-- Nobody's connection lasts for longer.
local MAX_WAIT_SECONDS = 3600
-- Between two looks whether the client is still there: many give up earlier than they said.
local LOOK_SECONDS = 2

local TERMINAL = { done = true, partial = true, failed = true, cancelled = true }

local function check_content(request)
    local content_type = (request.header "content-type" or ""):lower()
    local media, parameters = content_type:match "^%s*([^;%s]*)%s*(.*)$"
    local charset = parameters:match 'charset%s*=%s*"?([^";%s]*)'
    local coding = (request.header "content-encoding" or "identity"):lower()
    if media ~= "application/json" or charset and charset ~= "utf-8" and charset ~= "utf8" then
        return nil, answers.refusal("unsupported_media_type", "the body must be application/json")
    elseif coding ~= "identity" then
        return nil, answers.refusal("unsupported_media_type", "the body must not be compressed",
            "send it without Content-Encoding")
    end
    return true
end

local function read_body(api, request)
    local body, why = request.read_body(api.max_body)
    if body then
        return body
    elseif why == "too_large" then
        return nil, answers.refusal("too_large", ("the body is above %d bytes"):format(
            api.max_body))
    elseif why == "timeout" then
        return nil, answers.refusal("timeout", "the body did not come in time")
    end
    return nil, answers.refusal("bad_request", "the body is incomplete",
        "send as many bytes as Content-Length says, or the last chunk")
end

local function wrong_shape(message)
    return nil, answers.refusal("bad_request", message,
        'the body is {"targets": [{"url": "https://…", "options": {}}]}')
end

-- The list of targets that a body holds. What a target may be is the runner's to say.
local function parse_targets(body)
    local is_json, fault = core.check_json(body, MAX_DEPTH)
    if not is_json then
        return nil, answers.refusal("bad_json", "the body is no JSON: " .. fault)
    end
    local value = cjson.decode(body)
    if type(value) ~= "table" or not body:find "^%s*{" then
        return wrong_shape "the body must be an object"
    end
    for key in pairs(value) do
        if key ~= "targets" then
            local near = nearest.nearest(key, { "targets" })
            return wrong_shape(("unknown field %s%s"):format(answers.quote(key),
                near and ", did you mean 'targets'?" or ""))
        end
    end
    local targets = value.targets
    -- Decoded, an empty object is as an empty list; there is no other bracket in such a body.
    local is_list = type(targets) == "table"
        and (#targets > 0 or next(targets) == nil and body:find("[", 1, true))
    if not is_list then
        return wrong_shape "targets must be a list"
    end
    return targets
end

local function submitted(context, targets, id, is_reused, status, expires_at)
    local text = ('{"id":"%s","status":"%s","reused":%s,"targets_total":%d,"expires_at":%s}')
        :format(id, status, tostring(is_reused), #targets, json.encode_time(expires_at))
    return answers.answer(is_reused and 200 or 202, text,
        { location = context.prefix .. "/v1/batches/" .. id })
end

--- `POST /v1/batches`
local function submit(api, request, context)
    if api.is_closing then
        return answers.refusal("closing", answers.CLOSING)
    end
    local is_fine, refused = check_content(request)
    if not is_fine then
        return refused
    end
    local body, targets
    body, refused = read_body(api, request)
    if body then
        targets, refused = parse_targets(body)
    end
    if not targets then
        return refused
    end
    local id, is_reused, status, expires_at = api.notifier:call("submit",
        context.caller or api.operator, targets, { class = context.class })
    if not id then
        return answers.runner_refusal(is_reused, status)
    end
    return submitted(context, targets, id, is_reused, status, expires_at)
end

--- `GET /v1/batches`
local function list(api, _, context)
    local query = context.query
    local limit = math.min(query.limit, MAX_PAGE)
    -- One more than wanted tells whether there is a next page.
    local texts, ids, code = api.runner:list_json {
        caller = context.caller, status = query.status, limit = limit + 1, before = query.before,
    }
    if not texts then
        return answers.runner_refusal(ids, code)
    end
    local next_id = texts[limit + 1] and ids[limit]
    texts[limit + 1] = nil
    return answers.answer(200, ('{"jobs":[%s],"next":%s}'):format(table.concat(texts, ","),
        next_id and json.encode(next_id) or "null"))
end

-- Waits until a job changes, the time is up, nobody waits for the answer any more, or all waiting
-- is stopped, of which only an early end tells.
local function wait_in_turns(api, request, id, mark, seconds)
    local end_at = core.monotime() + seconds
    local is_gone = request.is_gone or function() return false end
    repeat
        local turn_end_at = math.min(core.monotime() + LOOK_SECONDS, end_at)
        local has_changed = api.notifier:wait(id, mark, turn_end_at - core.monotime())
        local is_over = has_changed or core.monotime() < turn_end_at or turn_end_at == end_at
    until is_over or is_gone()
end

-- Waits until the job is no longer what it is now, if it may change at all. Returns what it was.
local function wait_for_change(api, request, context)
    local page, message, code = api.runner:read_json(context.id,
        { caller = context.caller, limit = 0 })
    if page and not TERMINAL[page.status] then
        wait_in_turns(api, request, context.id, page.mark,
            math.min(context.query.wait, MAX_WAIT_SECONDS))
    end
    return page, message, code
end

--- `GET /v1/batches/ID`
local function read(api, request, context)
    local query = context.query
    local page, message, code = true, nil, nil
    if query.wait > 0 then
        local was_dismissing = api.is_dismissing
        page, message, code = wait_for_change(api, request, context)
        -- Answered at once, who waits in a loop would ask again at once.
        if page and was_dismissing and not TERMINAL[page.status] then
            return answers.refusal("closing", answers.CLOSING)
        end
    end
    local text
    if page then
        text, message, code = api.runner:page_json(context.id, {
            caller = context.caller, from = query.from, limit = query.limit,
            results = query.results,
        })
    end
    if not text then
        return answers.runner_refusal(message, code)
    end
    return answers.answer(200, text)
end

local function already_finished(status)
    return answers.refusal("already_finished", ("the job is %s already"):format(status))
end

--- `DELETE /v1/batches/ID`
local function cancel(api, _, context)
    local of_caller = { caller = context.caller, limit = 0 }
    local page, message, code = api.runner:read_json(context.id, of_caller)
    -- One whose lease has lapsed may be live still, and count towards the caps.
    if not page and code ~= "expired" then
        return answers.runner_refusal(message, code)
    elseif page and TERMINAL[page.status] then
        return already_finished(page.status)
    end
    local is_cancelled
    is_cancelled, message, code = api.notifier:call("cancel", context.id)
    if is_cancelled then
        return answers.answer(200, ('{"id":"%s","status":"cancelled"}'):format(context.id))
    elseif is_cancelled == nil then
        return answers.runner_refusal(message, code)
    end
    -- It ended while it was to be cancelled.
    page, message, code = api.runner:read_json(context.id, of_caller)
    return page and already_finished(page.status) or answers.runner_refusal(message, code)
end

--- @export
return { submit = submit, list = list, read = read, cancel = cancel, TERMINAL = TERMINAL }
