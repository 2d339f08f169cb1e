-- SPDX-License-Identifier: MIT

--- What a request comes to, whatever the protocol: the handler's response or an error in its place,
-- `finish` once, one line in the access log. Knows no socket.

local cqueues = require "cqueues"
local json = require "batch.json"

local monotime = cqueues.monotime

local MAX_LOGGED = 200 -- bytes of what a client sent
local JSON_TYPE = "application/json"

local answer = {}

--- An error as a response.
-- @tparam integer status
-- @tparam string code
-- @tparam string message
-- @tparam string hint
-- @treturn table
function answer.refusal(status, code, message, hint)
    local text = json.encode { error = { code = code, message = message, hint = hint } }
    local headers = { ["content-type"] = JSON_TYPE, ["cache-control"] = "no-store" }
    return { status = status, headers = headers, body = text .. "\n", code = code }
end

-- The codes of what is refused before there is a request for the handler.
local CODES = { [408] = "timeout", [413] = "too_large" }
local HINTS = { [408] = "send the whole request at once", [414] = "send a shorter address",
    [431] = "send fewer or shorter header fields" }
local HTTP_HINT = "send a request as RFC 9110 and 9112 have it; a program for HTTP does"

--- A malformed request's response.
-- @tparam integer status
-- @tparam string message
-- @treturn table
function answer.bad_request(status, message)
    return answer.refusal(status, CODES[status] or "bad_request", message,
        HINTS[status] or HTTP_HINT)
end

--- What the client sees when the server's own code fails.
function answer.internal()
    return answer.refusal(500, "internal", "internal error", "the server's log has more")
end

local function traceback(reason)
    return debug.traceback(tostring(reason), 2)
end

-- What is wrong with a response, as a sentence, or nil. A line break in a field would let its value
-- write fields of its own.
local function fault_of(response)
    if type(response) ~= "table" or type(response.status) ~= "number"
        or type(response.headers) ~= "table" then
        return "the handler gave no response"
    elseif type(response.body) ~= "string" and type(response.body) ~= "function" then
        return "the response's body is neither text nor a function"
    end
    for name, value in pairs(response.headers) do
        if type(value) ~= "string" or value:find("[%z\1-\31\127]")
            or type(name) ~= "string" or name:find("[^%l%d-]") then
            return ("the response's field %s cannot be sent"):format(tostring(name))
        end
    end
    return nil
end

--- Runs the handler. Never raises: what the handler raises goes to the log.
-- @tparam table server with `handler` and `log`
-- @tparam table request
-- @treturn table response
function answer.of(server, request)
    local is_fine, response = xpcall(server.handler, traceback, request)
    local fault
    if not is_fine then
        fault, response = response, nil
    else
        fault = fault_of(response)
    end
    if not fault then
        return response
    end
    answer.report(server, fault, request)
    if type(response) == "table" then
        answer.finish(server, response)
    end
    return answer.internal()
end

--- Has the handler answer what a client sent.
-- @tparam table server
-- @tparam table request `method`, `path`, `query`, `fields`, `peer`
-- @tparam table source where the body comes from: `read(max_bytes)`, `is_gone()`, and `fault`, what
-- is wrong with what was read; that answers then, for the handler does not know it
-- @treturn table response
function answer.ask(server, request, source)
    local fields = request.fields
    local response = answer.of(server, {
        method = request.method, path = request.path, query = request.query, peer = request.peer,
        header = function(name) return fields[name] end,
        read_body = function(max_bytes) return source:read(max_bytes) end,
        is_gone = function() return source:is_gone() end,
    })
    if source.fault then
        answer.finish(server, response)
        return answer.bad_request(400, source.fault)
    end
    return response
end

--- Writes a failure of the server's own code to the log.
function answer.report(server, fault, request)
    pcall(server.log.write, server.log, "error", "request failed", {
        error = fault, method = answer.loggable(request.method),
        path = answer.loggable(request.path),
    })
end

--- Remembers for the log why a response is not whole; the fault of a body that raised is told now.
-- @tparam table server
-- @tparam table request
-- @tparam table response
-- @tparam string why as `batch.server.pump` tells it
-- @tparam string|nil reason
function answer.break_off(server, request, response, why, reason)
    if why == "raised" then
        answer.report(server, reason, request)
    else
        response.broken_off = reason
    end
end

--- Calls the response's `finish`, if it has one that was not called yet.
function answer.finish(server, response)
    local finish = response.finish
    if finish then
        response.finish = nil
        local is_fine, reason = xpcall(finish, traceback)
        if not is_fine then
            answer.report(server, reason, {})
        end
    end
end

--- A method or a path as it goes into the log.
function answer.loggable(text)
    if text and #text > MAX_LOGGED then
        return text:sub(1, MAX_LOGGED) .. "..."
    end
    return text
end

--- Writes the line of a request to the access log.
-- @tparam table server
-- @tparam table request what is known of it: `method`, `path`, `peer`, `protocol`, `began_at`
-- @tparam table response
-- @tparam integer n_bytes of the body that were sent
-- @tparam boolean is_whole whether that is all; if not, the line says so, and why
function answer.record(server, request, response, n_bytes, is_whole)
    local seconds = monotime() - request.began_at
    pcall(server.log.write, server.log, "info", "request", {
        method = answer.loggable(request.method), path = answer.loggable(request.path),
        status = response.status,
        bytes = n_bytes, seconds = math.floor(seconds * 1e6 + 0.5) / 1e6,
        caller = response.caller, code = response.code, peer = request.peer,
        protocol = request.protocol, incomplete = not is_whole or nil,
        error = response.broken_off,
    })
end

--- @export
return answer
