-- SPDX-License-Identifier: MIT

--- How the API answers: responses as tables, errors as JSON, and which status a code has. One place
-- for all of them, because a client tells errors apart by nothing else.

local core = require "batch.core"
local json = require "batch.json"

-- Seconds after which what is busy now may be free.
local RETRY_AFTER = "1"
local CLOSING = "the server is shutting down"
local MAX_QUOTED = 40 -- bytes

-- code → status, and what is sent along
local statuses = {
    bad_json = 400,
    bad_request = 400,
    unauthorized = 401,
    not_found = 404,
    method_not_allowed = 405,
    timeout = 408,
    already_finished = 409,
    expired = 410,
    too_large = 413,
    unsupported_media_type = 415,
    too_many_targets = 422,
    invalid = 422,
    caller_busy = 429,
    busy = 429,
    internal = 500,
    disabled = 503,
    closing = 503,
    store = 503,
    unhealthy = 503,
    store_full = 507,
}

-- What the client may do about an error, where nobody knows better. Clients are programs that speak
-- HTTP as well as users of the command line.
local hints = {
    bad_json = "send JSON by the letter, in UTF-8",
    bad_request = "the description, openapi.json, tells what a request may hold",
    unauthorized = "send the header Authorization: Bearer TOKEN",
    not_found = "only its own caller sees a job, and for no longer than its lease",
    method_not_allowed = "the header Allow names the methods that there are",
    timeout = "send the whole request at once",
    already_finished = "the outcomes that it has can be read",
    expired = "the job's lease has lapsed: submit it again",
    too_large = "send fewer targets, or raise server.max_body",
    unsupported_media_type = "send the header Content-Type: application/json",
    too_many_targets = "a job has at most targets_per_job targets: submit several jobs",
    invalid = "correct what the message names; the first target is target 0",
    caller_busy = "the caller has as many live jobs as jobs_per_caller allows: wait for one to end",
    busy = "there are as many live jobs as jobs_total allows: wait for one to end",
    internal = "the server's log has more",
    disabled = "batch.disabled in the server's configuration turns it on and off",
    closing = "try again in a moment",
    store = "try again in a moment; the server's log has more",
    unhealthy = "the log and the metrics tell which",
    store_full = "nothing of this was stored; try again when there is room on the disk",
}

-- Shared by the answers that have no others: hosts only read them.
local USUAL_HEADERS = { ["content-type"] = "application/json", ["cache-control"] = "no-store" }

local function copy(headers)
    local twin = {}
    for name, value in pairs(headers or {}) do
        twin[name] = value
    end
    return twin
end

--- An answer of JSON.
-- @tparam integer status
-- @tparam string text JSON
-- @tparam[opt] table headers
-- @treturn table response
local function answer(status, text, headers)
    if headers then
        headers = copy(headers)
        for name, value in pairs(USUAL_HEADERS) do
            headers[name] = value
        end
    end
    return { status = status, headers = headers or USUAL_HEADERS, body = text .. "\n" }
end

--- An error.
-- @tparam string code one of the API's
-- @tparam string message
-- @tparam[opt] string hint what the client may do about it; without, what the code suggests
-- @tparam[opt] table headers
-- @treturn table response, with `code`
local function refusal(code, message, hint, headers)
    local status = statuses[code]
    headers = copy(headers)
    if status == 429 or status == 503 then
        headers["retry-after"] = RETRY_AFTER
    end
    local fault = { code = code, message = message, hint = hint or hints[code] }
    -- What a module's check or a file's name says need not be UTF-8.
    local text = core.http.decode(json.encode { error = fault }, "utf-8")
    local response = answer(status, text, headers)
    response.code = code
    return response
end

--- A client's text as errors quote it: short, and nothing but ASCII.
-- @tparam string text
-- @treturn string
local function quote(text)
    return '"' .. text:sub(1, MAX_QUOTED):gsub("[^\32-\126]", "?") .. '"'
end

-- What the runner refuses with, where the API has its own words for it.
local function api_code(code, message)
    if code == "closed" then
        return "closing"
    elseif code == "store" and message:find("disk is full", 1, true) then
        return "store_full"
    end
    return code
end

--- An error as the runner tells it.
-- @tparam string message
-- @tparam string code
-- @treturn table response
local function runner_refusal(message, code)
    return refusal(api_code(code, message), message)
end

local breach = {}

function breach.__tostring(self)
    return self.message
end

--- Raises, in an answer that is made while it is sent, that it cannot be completed. A table, for
-- it is no defect: the host tells its log the message, without a traceback.
-- @tparam string message
local function break_off(message)
    error(setmetatable({ message = message }, breach))
end

--- An answer that is made while it is sent.
-- @tparam string content_type
-- @tparam function next_chunk gives text, nil at the end; may yield; raises when it cannot go on
-- @tparam function finish called when it is sent or given up, next_chunk perhaps never resumed
-- @treturn table response
local function stream(content_type, next_chunk, finish)
    local headers = {
        ["content-type"] = content_type,
        ["cache-control"] = "no-store",
        ["x-accel-buffering"] = "no", -- nginx in front would hold it back
    }
    return { status = 200, headers = headers, body = next_chunk, finish = finish }
end

--- @export
return {
    answer = answer,
    refusal = refusal,
    runner_refusal = runner_refusal,
    stream = stream,
    break_off = break_off,
    quote = quote,
    CLOSING = CLOSING,
    statuses = statuses,
}
