-- SPDX-License-Identifier: MIT

--- The table of routes: what requests there are, which parameters they take, what they answer. The
-- dispatch and the OpenAPI description both come from it.

local jobs = require "batch.api.jobs"
local probes = require "batch.api.probes"
local streams = require "batch.api.streams"

local STATUSES = { "queued", "running", "done", "partial", "failed", "cancelled" }

local FROM = { name = "from", type = "count", default = 0, sentence = "the first idx" }
local RESULTS = { name = "results", type = "flag", default = true,
    sentence = "whether the contents of results come along" }

-- A route has path ("ID" stands for a job's id), and by method: name, handler, sentence, parameters
-- of the query, a header that counts as one, and answers: status → what it is, or the codes of
-- errors. needs: "runner" (a caller and a runner; the default), or "nothing".
local routes = {
    {
        path = "/v1/batches",
        POST = {
            name = "submit", handler = jobs.submit,
            sentence = "Submits a list of targets as one job; the same list again is the same job.",
            body = "Submission",
            answers = { [202] = "Submitted", [200] = "Submitted" },
            codes = { "bad_json", "bad_request", "timeout", "too_large", "unsupported_media_type",
                "too_many_targets", "invalid", "caller_busy", "busy", "closing", "store_full" },
        },
        GET = {
            name = "list", handler = jobs.list,
            sentence = "Lists the caller's jobs, newest first.",
            parameters = {
                { name = "status", type = "choice", values = STATUSES,
                  sentence = "only jobs of this status" },
                { name = "limit", type = "count", default = 100,
                  sentence = "at most so many jobs; 1000 at once" },
                { name = "before", type = "id", sentence = "only jobs older than this id" },
            },
            answers = { [200] = "Jobs" },
            codes = { "bad_request" },
        },
    },
    {
        path = "/v1/batches/ID",
        GET = {
            name = "read", handler = jobs.read,
            sentence = "Reads a job and some of its targets; renews the lease.",
            parameters = {
                FROM,
                { name = "limit", type = "count", sentence = "at most so many targets" },
                RESULTS,
                { name = "wait", type = "count", default = 0,
                  sentence = "answer at the job's next change, or after so many seconds" },
            },
            answers = { [200] = "Page" },
            codes = { "bad_request", "not_found", "expired", "closing" },
        },
        DELETE = {
            name = "cancel", handler = jobs.cancel,
            sentence = "Cancels a job; the target in flight is stored, no further one starts.",
            answers = { [200] = "Cancelled" },
            codes = { "not_found", "already_finished", "expired", "closing", "store_full" },
        },
    },
    {
        path = "/v1/batches/ID/results",
        GET = {
            name = "results", handler = streams.results,
            sentence = "Streams the targets that have an outcome, one JSON object a line.",
            parameters = {
                FROM, RESULTS,
                { name = "follow", type = "flag", default = false,
                  sentence = "go on until the job ends" },
            },
            answers = { [200] = "application/jsonl" },
            codes = { "bad_request", "not_found", "expired" },
        },
    },
    {
        path = "/v1/batches/ID/events",
        GET = {
            name = "events", handler = streams.events,
            sentence = "Server-sent events: target for each outcome, its idx as the id, and last "
                .. "job. The header Last-Event-ID resumes.",
            parameters = { FROM, RESULTS },
            header = { name = "Last-Event-ID", type = "count",
                sentence = "the idx that was seen last; wins over from" },
            answers = { [200] = "text/event-stream" },
            codes = { "bad_request", "not_found", "expired" },
        },
    },
    {
        path = "/healthz",
        GET = {
            name = "healthz", handler = probes.live, needs = "nothing",
            sentence = "Whether the process answers.",
            answers = { [200] = "Status" }, codes = {},
        },
    },
    {
        path = "/readyz",
        GET = {
            name = "readyz", handler = probes.ready, needs = "nothing",
            sentence = "Whether the store can be written and the workers are alive.",
            answers = { [200] = "Status" }, codes = { "disabled", "store", "unhealthy", "closing" },
        },
    },
    {
        path = "/metrics",
        GET = {
            name = "metrics", handler = probes.count, needs = "nothing",
            sentence = "What was counted, as Prometheus reads it.",
            answers = { [200] = "text/plain" }, codes = {},
        },
    },
    {
        path = "/openapi.json",
        GET = {
            name = "openapi", handler = probes.describe, needs = "nothing",
            sentence = "This description.",
            answers = { [200] = "application/json" }, codes = {},
        },
    },
}

-- In the order in which Allow names them.
local METHODS = { "GET", "POST", "DELETE" }

local BELOW = "/v1/batches/" -- where ids stand

local by_path, is_method = {}, {}
for _, method in ipairs(METHODS) do
    is_method[method] = true
end
for _, route in ipairs(routes) do
    by_path[route.path] = route
    local allowed = {}
    for _, method in ipairs(METHODS) do
        if route[method] then
            allowed[#allowed + 1] = method == "GET" and "GET, HEAD" or method
        end
    end
    route.allow = table.concat(allowed, ", ")
end

--- Finds the route of a path.
-- @tparam string path percent-encoded, as it was sent
-- @treturn[1] table route
-- @treturn[1] ?string the id in it, percent-encoded
-- @treturn[2] nil
local function find(path)
    if path:sub(1, #BELOW) ~= BELOW then
        return by_path[path]
    end
    local id_at = #BELOW + 1
    local rest_at = path:find("/", id_at, true) or #path + 1
    if rest_at == id_at then
        return nil
    end
    return by_path[BELOW .. "ID" .. path:sub(rest_at)], path:sub(id_at, rest_at - 1)
end

--- What a route does by a method.
-- @tparam table route
-- @tparam string method as it was sent: any word
-- @treturn ?table operation; of HEAD it is that of GET
local function operation(route, method)
    if method == "HEAD" then
        method = "GET"
    end
    return is_method[method] and route[method] or nil
end

--- @export
return { routes = routes, find = find, operation = operation, METHODS = METHODS }
