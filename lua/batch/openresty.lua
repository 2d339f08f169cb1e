-- SPDX-License-Identifier: MIT

--- The batch runner inside of nginx: each worker has a runner of its own, all share one store.
-- Nothing here waits for a disk or for another process: light threads yield until the runner's own
-- threads have the answer.
-- @module batch.openresty

local answers = require "batch.api.answers"
local core = require "batch.core"
local exchange = require "batch.openresty.exchange"
local location = require "batch.openresty.location"
local metrics = require "batch.metrics"
local process = require "ngx.process"
local settings = require "batch.openresty.settings"
local worker = require "batch.openresty.worker"

-- Phases in which a light thread may yield.
local YIELDING = {
    rewrite = true, server_rewrite = true, access = true, content = true, timer = true,
    ssl_cert = true, ssl_session_fetch = true, ssl_client_hello = true,
}
-- Those in which a request can be answered.
local ANSWERING = { rewrite = true, server_rewrite = true, access = true, content = true }
local MAX_WAIT_SECONDS = 3600 -- then the job is looked at again

local TERMINAL = { done = true, partial = true, failed = true, cancelled = true }

local NOT_STARTED = "batch is not started in this process: call start in init_worker_by_lua"
    .. " (and leave lua_code_cache on: without it, requests run in Lua states of their own)"
local IN_INIT = "open the runner in init_worker_by_lua: nothing survives the fork"

local here -- what this process has started

-- Whether a runner may be opened here; if not, why. Raises where it would be of no use to anybody.
local function check_place()
    local phase = ngx.get_phase()
    if phase == "init" then
        error(IN_INIT, 3)
    elseif phase ~= "init_worker" and phase ~= "timer" then
        return nil, ("start belongs in init_worker_by_lua, this is phase %s"):format(phase)
    elseif here and here.code ~= "invalid" then
        return nil, "batch is started in this process already"
    end
    return true
end

local function refuse(message)
    settings.write_to_error_log("error", message)
    return nil, message, "invalid"
end

--- Opens this worker's runner. Also writes to the error log why it cannot; a store that cannot be
-- opened is tried again until it can.
-- @tparam[opt] table config the fields of `batch.new`, with these differences: `executor` is
-- `"light"` (light threads run fetch, `workers` of them) or `"threads"`; by default light, but
-- threads for a fetch that says `blocks = true`, as the built-in pipeline does; `on_restart` is
-- `"resume"` by default; `log` writes to nginx's error log; a relative `store` begins at nginx's
-- prefix
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string `invalid` or `store`
-- @raise in init_by_lua, and if config is no table
local function start(config)
    if config ~= nil and type(config) ~= "table" then
        error("config must be a table, got " .. type(config), 2)
    end
    local is_fine, message = check_place()
    if not is_fine then
        return refuse(message)
    end
    local fields, fetch = settings.read(config or {})
    if not fields then
        here = worker.refused(fetch)
        return refuse(fetch)
    end
    here = worker.new(fields, fetch)
    local is_open, why, code = here:start()
    if not is_open then
        fields.log("error", why, { store = fields.store, process = process.type() })
    end
    return is_open, why, code
end

-- The runner's methods ---------------------------------------------------------------------------

-- The started runner; or nil, message, code. level: of the caller's caller, as for error.
local function started(level)
    if not here then
        error(NOT_STARTED, level + 1)
    elseif not here.runner then
        return nil, here.why, here.code
    end
    return here
end

-- The same for what a light thread has to wait for.
local function waiting(name)
    local phase = ngx.get_phase()
    if not YIELDING[phase] then
        error(("%s waits, which phase %s does not allow: call it in a timer, by ngx.timer.at")
            :format(name, phase), 3)
    end
    local self, message, code = started(3)
    if self then
        self:tend()
    end
    return self, message, code
end

local function check_id(id)
    if type(id) ~= "string" then
        error("id must be a string, got " .. type(id), 3)
    end
end

--- As `runner:submit`.
-- @tparam string caller
-- @tparam table targets
-- @tparam[opt] table options
-- @return id and whether it was known; or nil, message, code
-- @raise in a phase that cannot yield
local function submit(caller, targets, options)
    if caller == nil or targets == nil then
        error((caller == nil and "caller" or "targets") .. " is missing", 2)
    end
    local self, message, code = waiting "submit"
    if not self then
        return nil, message, code
    end
    local id, is_reused, status = self.notifier:call("submit", caller, targets, options)
    if not id then
        return nil, is_reused, status
    end
    return id, is_reused
end

local function call(name, id)
    local self, message, code = waiting(name)
    if not self then
        return nil, message, code
    end
    local is_done
    is_done, message, code = self.notifier:call(name, id)
    if is_done == nil and code == "not_found" then
        return false
    end
    return is_done, message, code
end

--- As `runner:cancel`.
-- @tparam string id
-- @treturn boolean
-- @raise in a phase that cannot yield
local function cancel(id)
    check_id(id)
    return call("cancel", id)
end

--- As `runner:touch`.
-- @tparam string id
-- @treturn boolean
-- @raise in a phase that cannot yield
local function touch(id)
    check_id(id)
    return call("touch", id)
end

--- As `runner:wait`, but only this light thread waits.
-- @tparam string id
-- @tparam[opt] number seconds at most; for ever if left out
-- @treturn table job; or nil, message, code: also `closed`, when nginx reloads or quits
-- @raise in a phase that cannot yield
local function wait(id, seconds)
    check_id(id)
    local self, message, code = waiting "wait"
    local end_at = core.monotime() + (seconds or math.huge)
    while self do
        local page
        page, message, code = self.runner:read_json(id, { limit = 0 })
        if not page then
            break
        elseif TERMINAL[page.status] then
            return (self.runner:status(id, { limit = 0 }))
        elseif core.monotime() >= end_at then
            return nil, "timeout", "timeout"
        elseif self.is_leaving then
            return nil, "closed", "closed"
        end
        self.notifier:wait(id, page.mark, math.min(end_at - core.monotime(), MAX_WAIT_SECONDS))
    end
    return nil, message, code
end

-- A method that only reads, which is done where it is called.
local function reader(name)
    return function(...)
        local self, message, code = started(2)
        if not self then
            return nil, message, code
        end
        return self.runner[name](self.runner, ...)
    end
end

-- HTTP -------------------------------------------------------------------------------------------

local function check_answering(name)
    local phase = ngx.get_phase()
    if not ANSWERING[phase] then
        error(("%s answers a request, which phase %s does not allow"):format(name, phase), 3)
    elseif not here then
        error(NOT_STARTED, 3)
    end
end

local function traceback(raised)
    return debug.traceback(tostring(raised), 2)
end

-- A defect, or a function caller that raises, is told in the API's own words.
local function answer(api, request)
    local is_fine, response = xpcall(api.handle, traceback, api, request)
    if is_fine then
        return response
    end
    here.fields.log("error", "internal error", { detail = response })
    return answers.refusal("internal", "internal error")
end

--- Answers the request that is being handled: the HTTP API below a prefix.
-- @tparam[opt] table options
--
-- - `prefix` (""): where the location begins, such as "/api"
-- - `caller`: gives the caller's name, or nil for 401, and as second value its class; without it
--   only loopback is served, by its own names, as caller "local"
-- - `max_body` (1 MiB): bytes of a request's body; nginx's client_max_body_size holds as well
-- @raise before `start`, where no request can be answered, and for wrong options
local function serve(options)
    check_answering "serve"
    local prefix, caller, max_body = location.read(options)
    local api = here:api(location.identify, prefix, max_body)
    here:tend()
    local request = exchange.request(prefix, caller)
    exchange.respond(request, answer(api, request), here.fields.log)
end

--- Answers the request with what Prometheus reads: what all workers have counted, since it is
-- chance which of them answers.
-- @raise before `start`, and where no request can be answered
local function answer_metrics()
    check_answering "metrics"
    ngx.header.content_type = metrics.CONTENT_TYPE
    local stats = here.runner and here.runner:stats { all = true }
    ngx.print(metrics.render(stats, here.fields))
end

--- @export
return {
    start = start,
    submit = submit,
    status = reader "status",
    results = reader "results",
    jobs = reader "jobs",
    cancel = cancel,
    touch = touch,
    wait = wait,
    stats = reader "stats",
    serve = serve,
    metrics = answer_metrics,
}
