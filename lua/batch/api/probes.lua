-- SPDX-License-Identifier: MIT

--- The answers for operators: is it alive, is it ready, what has it counted, what can it do. They
-- need no token and name no caller.

local answers = require "batch.api.answers"
local metrics = require "batch.metrics"

--- `GET /healthz`: the process answers.
local function live()
    return answers.answer(200, '{"status":"ok"}')
end

--- `GET /readyz`: the store can be written and the workers are alive.
local function ready(api)
    if api.is_closing then
        return answers.refusal("closing", answers.CLOSING)
    elseif not api.runner then
        return api:refuse_absent()
    end
    local stats = api.runner:stats()
    if not stats.store_healthy then
        return answers.refusal("store", "the store cannot be read or written")
    elseif not stats.healthy then
        return answers.refusal("unhealthy", "workers are missing, or a thread hangs")
    end
    return answers.answer(200, '{"status":"ok"}')
end

--- `GET /metrics`
local function count(api)
    local stats = api.runner and api.runner:stats { all = api.is_shared }
    local text = metrics.render(stats, api.settings)
    return {
        status = 200,
        headers = { ["content-type"] = metrics.CONTENT_TYPE, ["cache-control"] = "no-store" },
        body = text,
    }
end

--- `GET /openapi.json`
local function describe(api)
    return answers.answer(200, api:description())
end

--- @export
return { live = live, ready = ready, count = count, describe = describe }
