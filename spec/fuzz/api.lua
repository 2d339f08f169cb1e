-- SPDX-License-Identifier: MIT
--
-- The API with requests of any bytes, over a store in memory: each is answered with a status of the
-- table and JSON by the letter, nothing raises. An input is one request or several, parted by \1:
-- method and target in the first line, fields in the next ones, an empty line, and the body. $A to
-- $D stand for the ids of a finished job, a running one, a cancelled one, and a stranger's.

local answers = require "batch.api.answers"
local api = require "batch.api"
local batch = require "batch"
local cjson = require("cjson").new()
local core = require "batch.core"
local notifier = require "batch.notifier"

local INPUTS_A_RUNNER = 200
local MAX_BODY = 4096
local MAX_DEPTH = 120

local host, runner, ids
local n_inputs = 0
local logged = "" -- last

local function identify(request)
    local name = (request.header "authorization" or "alice"):match "^%s*(%w+)"
    if name == "root" then
        return false, ""
    elseif name ~= "alice" and name ~= "bob" then
        return nil, "no such token"
    end
    return name, "user"
end

local function fill()
    local a = assert(runner:submit("alice", { { url = "a1", options = { mode = "raw" } },
        { url = "a2" }, { url = "a3" } }))
    runner:drain(function(target)
        if target.url == "a2" then
            return nil, "no luck", "a \"hint\""
        end
        return { content = target.url .. "\0\255", meta = { title = "\195\164" } }
    end)
    local b = assert(runner:submit("alice", { { url = "b1" }, { url = "b2" } }))
    runner:finish(runner:take(), "one")
    local c = assert(runner:submit("alice", { { url = "c1" } }))
    runner:cancel(c)
    local d = assert(runner:submit("bob", { { url = "d1" } }))
    return { A = a, B = b, C = c, D = d }
end

local function start()
    if runner then
        runner:close()
    end
    runner = assert(batch.new {
        store = ":memory:", executor = "manual", durability = "normal", jobs_total = 1e6,
        jobs_per_caller = 4, log = function(_, message, fields)
            logged = message .. ": " .. tostring(fields and fields.detail)
        end,
    })
    host = api.new {
        identify = identify, operator = "operator", max_body = MAX_BODY,
        settings = { max_bytes = 1e6 }, prefix = "",
    }
    host:attach(runner, notifier.new(runner))
    host:dismiss() -- who would wait is answered
    ids = fill()
end

local function read_request(text)
    local line, rest = text:match "^([^\n]*)\n?(.*)$"
    local method, target = line:match "^(%S*) ?(.*)$"
    local path, query = target:gsub("%$([A-D])", ids):match "^([^?]*)%??(.*)$"
    local fields, position = {}, 1
    local field, value, stop = rest:match("^([%w-]+):([^\n]*)\n?()", position)
    while field do
        fields[field:lower()], position = value:gsub("%$([A-D])", ids), stop
        field, value, stop = rest:match("^([%w-]+):([^\n]*)\n?()", position)
    end
    local body = rest:sub(position):gsub("^\n", "")
    fields["content-type"] = fields["content-type"] or "application/json"
    return {
        method = method, path = path, query = query ~= "" and query or nil,
        header = function(name) return fields[name] end,
        read_body = function(max_bytes)
            if #body > max_bytes then
                return nil, "too_large"
            end
            return body
        end,
    }
end

local function check_json(text)
    local is_json, fault = core.check_json(text, MAX_DEPTH)
    assert(is_json, fault)
    return cjson.decode(text)
end

local function check_error(response)
    local fault = check_json(response.body).error
    assert(response.code == fault.code, "the code is told to the host")
    assert(response.status == answers.statuses[fault.code], "a code has its status")
    assert(#fault.message > 0 and #fault.hint > 0, "an error has a sentence and a hint")
    if fault.code == "internal" or fault.code == "store" then
        runner:poll()
        error(fault.message .. "; " .. logged)
    end
end

-- What a stream sends until it ends or breaks off, as streams of live jobs do here.
local function read_stream(response)
    local chunks = {}
    while true do
        local is_sent, chunk = pcall(response.body)
        if not is_sent then
            local name = type(chunk) == "table" and tostring(chunk)
            assert(name == answers.CLOSING, chunk)
            break
        elseif chunk == nil then
            break
        end
        chunks[#chunks + 1] = chunk
    end
    response.finish()
    return table.concat(chunks)
end

local function check_stream(response)
    local text, kind = read_stream(response), response.headers["content-type"]
    for line in text:gmatch "[^\n]+" do
        local json = kind == "application/jsonl" and line or line:match "^data: (.*)$"
        if json then
            check_json(json)
        end
    end
end

local function check_headers(headers)
    for name, value in pairs(headers) do
        assert(name == name:lower() and name:find "^[%w-]+$", "a field has a name in lower case")
        assert(not value:find "[%c\128-\255]", "a field's value is one line of ASCII")
    end
end

local function check_response(request, response)
    check_headers(response.headers)
    if type(response.body) == "function" then
        assert(response.status == 200, "a stream is an answer")
        check_stream(response)
    elseif response.status >= 400 then
        check_error(response)
    else
        assert(response.status == 200 or response.status == 202, "the status is in the table")
        assert(request.path == "/metrics" or check_json(response.body))
    end
end

return function(input)
    if n_inputs % INPUTS_A_RUNNER == 0 then
        start()
    end
    n_inputs = n_inputs + 1
    for text in (input .. "\1"):gmatch "([^\1]*)\1" do
        local request = read_request(text)
        check_response(request, host:handle(request))
    end
end
