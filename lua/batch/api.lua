-- SPDX-License-Identifier: MIT

--- The HTTP API: a request table in, a response table out. Knows no socket and no event loop;
-- serves the stand-alone server, nginx, and the command line over a store.
--
-- A request has `method`, `path` (percent-encoded, without query), `query` (text or nil),
-- `header(lower_case_name)`, and `read_body(max_bytes)`, which gives the body, or nil and
-- "too_large", "timeout" or "broken"; perhaps `is_gone()`, whether nobody waits for the answer any
-- more. A response has `status`, `headers` (lower-case names),
-- `body`: text, or a function that gives the next chunk, nil at the end, may yield, and raises when
-- the answer cannot be completed; perhaps `finish`, to be called when the body has been sent or
-- given up; also `caller` and the error's `code`, for the log. To HEAD it is GET's response, text
-- included, for its length; the host leaves the body out.
-- @module batch.api

local answers = require "batch.api.answers"
local openapi = require "batch.api.openapi"
local query = require "batch.api.query"
local routes = require "batch.api.routes"

local methods = {}
local metatable = { __name = "api", __index = methods }

function metatable.__tostring(self)
    return ("api (%s)"):format(self.runner and "with a runner" or self._absent_code)
end

-- An absent runner, as the answer tells it.
local ABSENT = {
    disabled = "batch is disabled in the configuration",
    store = "the store cannot be opened",
    closing = answers.CLOSING,
}

--- Makes an API that has no runner yet.
-- @tparam table parts
--
-- - `identify(request)`: gives the caller's name and class, or nil, a sentence, a code of no
--   use here, and perhaps a hint
-- - `operator`: who submits when the caller is false, which stands for one who sees all jobs
-- - `max_body`: bytes of a request's body
-- - `settings`: the fields of the configuration's `[batch]`
-- - `is_shared`: whether other processes on the store answer at the same address, so that what is
--   counted has to be that of all
-- - `prefix` (""): what stands before /v1 in addresses that clients use
-- @treturn api
local function new(parts)
    return setmetatable({
        identify = parts.identify,
        operator = parts.operator,
        max_body = parts.max_body,
        settings = parts.settings,
        is_shared = parts.is_shared,
        prefix = parts.prefix or "",
        is_closing = false,
        is_dismissing = false,
        _absent_code = "store",
    }, metatable)
end

--- Gives the API its runner.
-- @tparam batch.runner runner
-- @tparam notifier notifier of that runner
function methods:attach(runner, notifier)
    self.runner, self.notifier = runner, notifier
end

--- Takes the runner away: requests that need it are refused.
-- @tparam string code `disabled`, `store` or `closing`
-- @tparam[opt] string why a sentence for the answer
function methods:detach(code, why)
    self.runner, self.notifier = nil, nil
    self._absent_code, self._absent_why = code, why
end

--- From now on nobody is kept waiting: waits are answered at once, and streams end. Another process
-- goes on with the jobs; the rest is answered as before.
function methods:dismiss()
    self.is_dismissing = true
    if self.notifier then
        self.notifier:stop()
    end
end

--- From now on submits are refused, and nobody is kept waiting.
function methods:close()
    self.is_closing = true
    self:dismiss()
end

--- The answer where a runner is needed and there is none.
-- @tparam ?boolean has_why whether it says why: callers may know paths, strangers may not
-- @treturn table response
function methods:refuse_absent(has_why)
    return answers.refusal(self._absent_code, ABSENT[self._absent_code],
        has_why and self._absent_why or nil)
end

--- The OpenAPI description.
-- @treturn string JSON
function methods:description()
    self._description = self._description or openapi.describe(routes, self.prefix)
    return self._description
end

-- Who calls, what for, with which parameters; or the refusal.
local function read_context(self, request, operation, id)
    local context = { prefix = self.prefix }
    if operation.needs ~= "nothing" then
        local caller, class, _, hint = self.identify(request)
        if caller == nil then
            return nil, answers.refusal("unauthorized", class or "who are you?",
                hint, { ["www-authenticate"] = "Bearer" })
        end
        context.caller, context.class = caller or nil, class
    end
    local values, message = query.read(request.query, operation.parameters or {})
    if not values then
        return nil, answers.refusal("bad_request", message)
    end
    context.query = values
    context.id = id and query.decode(id)
    if operation.needs ~= "nothing" and not self.runner then
        return nil, self:refuse_absent(true)
    end
    return context
end

-- The body of a stream that is not asked for.
local function no_chunk()
    return nil
end

--- Answers a request. May yield; raises nothing but the faults of this program.
-- @tparam table request
-- @treturn table response
function methods:handle(request)
    local route, id = routes.find(request.path)
    if not route then
        return answers.refusal("not_found", "there is nothing at this address",
            "GET " .. self.prefix .. "/openapi.json tells which addresses there are")
    end
    local operation = routes.operation(route, request.method)
    if not operation then
        return answers.refusal("method_not_allowed", answers.quote(request.method)
            .. " is not possible here", nil, { allow = route.allow })
    end
    local context, refused = read_context(self, request, operation, id)
    local response = refused or operation.handler(self, request, context)
    response.caller = context and context.caller
    if request.method == "HEAD" and type(response.body) == "function" then
        response.body = no_chunk
    end
    return response
end

--- @export
return { new = new }
