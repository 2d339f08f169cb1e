-- SPDX-License-Identifier: MIT

--- The description of the API in OpenAPI 3.0, made from the table of routes.

local answers = require "batch.api.answers"
local json = require "batch.json"
local version = require "batch.version"

local STRING, INTEGER, BOOLEAN = { type = "string" }, { type = "integer" }, { type = "boolean" }
local TIME = { type = "string", format = "date-time" }
local OPTIONS = { type = "object", additionalProperties = true }

local function object(properties, required)
    return { type = "object", properties = properties, required = json.list(required) }
end

local function list(items)
    return { type = "array", items = items }
end

local function reference(name)
    return { ["$ref"] = "#/components/schemas/" .. name }
end

local function one_of(values)
    return { type = "string", enum = json.list(values) }
end

local JOB_STATUS = one_of { "queued", "running", "done", "partial", "failed", "cancelled" }

local schemas = {
    Submission = object({
        targets = list(object({ url = STRING, options = OPTIONS }, { "url" })),
    }, { "targets" }),
    Submitted = object({
        id = STRING, status = JOB_STATUS, reused = BOOLEAN, targets_total = INTEGER,
        expires_at = TIME,
    }, { "id", "status", "reused", "targets_total", "expires_at" }),
    Job = object({
        id = STRING, status = JOB_STATUS, error = STRING, caller = STRING, class = STRING,
        targets_total = INTEGER, targets_done = INTEGER, targets_failed = INTEGER, bytes = INTEGER,
        created_at = TIME, started_at = TIME, finished_at = TIME, expires_at = TIME,
    }, { "id", "status", "caller", "class", "targets_total", "targets_done", "targets_failed",
        "bytes", "created_at", "expires_at" }),
    Result = object({ content = STRING, encoding = one_of { "base64" }, meta = OPTIONS },
        { "content", "meta" }),
    Target = object({
        idx = INTEGER, url = STRING, options = OPTIONS,
        status = one_of { "pending", "done", "failed" }, result = reference "Result",
        error = STRING, hint = STRING, attempts = INTEGER, started_at = TIME, finished_at = TIME,
    }, { "idx", "url", "options", "status", "attempts" }),
    Jobs = object({
        jobs = list(reference "Job"), next = { type = "string", nullable = true },
    }, { "jobs", "next" }),
    Page = object({
        job = reference "Job", targets = list(reference "Target"),
        next = { type = "integer", nullable = true },
    }, { "job", "targets", "next" }),
    Cancelled = object({ id = STRING, status = one_of { "cancelled" } }, { "id", "status" }),
    Status = object({ status = STRING }, { "status" }),
    Error = object({
        error = object({ code = STRING, message = STRING, hint = STRING },
            { "code", "message", "hint" }),
    }, { "error" }),
}

local PARAMETER_TYPES = {
    count = { type = "integer", minimum = 0 },
    flag = BOOLEAN,
    id = STRING,
}

local function parameter_of(parameter, place)
    return {
        name = parameter.name, ["in"] = place, description = parameter.sentence,
        schema = parameter.values and one_of(parameter.values)
            or PARAMETER_TYPES[parameter.type],
    }
end

local function parameters_of(path, operation)
    local described = {}
    if path:find("/ID", 1, true) then
        described[1] = { name = "id", ["in"] = "path", required = true, schema = STRING }
    end
    for _, parameter in ipairs(operation.parameters or {}) do
        described[#described + 1] = parameter_of(parameter, "query")
    end
    if operation.header then
        described[#described + 1] = parameter_of(operation.header, "header")
    end
    return json.list(described)
end

-- What every request that needs a caller may be answered, too.
local COMMON_CODES = { "unauthorized", "disabled", "store" }

local function codes_by_status(operation)
    local by_status = {}
    local lists = { operation.codes, operation.needs ~= "nothing" and COMMON_CODES or {} }
    for _, codes in ipairs(lists) do
        for _, code in ipairs(codes) do
            local status = answers.statuses[code]
            by_status[status] = by_status[status] or {}
            table.insert(by_status[status], code)
        end
    end
    return by_status
end

local function responses_of(operation)
    local described = {}
    for status, content in pairs(operation.answers) do
        local is_media = content:find("/", 1, true)
        described[("%d"):format(status)] = {
            description = operation.sentence,
            content = {
                [is_media and content or "application/json"] = {
                    schema = is_media and STRING or reference(content),
                },
            },
        }
    end
    for status, codes in pairs(codes_by_status(operation)) do
        described[("%d"):format(status)] = {
            description = table.concat(codes, ", "),
            content = { ["application/json"] = { schema = reference "Error" } },
        }
    end
    return described
end

local function operation_of(path, operation)
    return {
        operationId = operation.name,
        summary = operation.sentence,
        parameters = parameters_of(path, operation),
        requestBody = operation.body and {
            required = true,
            content = { ["application/json"] = { schema = reference(operation.body) } },
        },
        responses = responses_of(operation),
        security = json.list(operation.needs ~= "nothing" and { { token = json.list {} } } or {}),
    }
end

--- Describes the API.
-- @tparam table routes the module batch.api.routes
-- @tparam string prefix of the addresses, "" for none
-- @treturn string JSON
local function describe(routes, prefix)
    local paths = {}
    for _, route in ipairs(routes.routes) do
        local described = {}
        for _, method in ipairs(routes.METHODS) do
            described[method:lower()] = route[method] and operation_of(route.path, route[method])
        end
        paths[(route.path:gsub("/ID", "/{id}"))] = described
    end
    return json.encode {
        openapi = "3.0.3",
        info = { title = "batch", version = version,
            description = "Durable batches of targets: submit, watch, read, cancel." },
        servers = json.list { { url = prefix == "" and "/" or prefix } },
        paths = paths,
        components = {
            schemas = schemas,
            securitySchemes = { token = { type = "http", scheme = "bearer" } },
        },
    }
end

--- @export
return { describe = describe }
