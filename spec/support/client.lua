-- SPDX-License-Identifier: MIT
--
-- An API without a server: requests as tables, answers with their JSON decoded. Each test opens its
-- own; its runner is closed after the test.

local api = require "batch.api"
local cjson = require "cjson"
local notifier = require "batch.notifier"
local worker = require "spec.support.worker"

local Client = {}
Client.__index = Client

local TOKENS = { alice = "user", bob = "" }

local function identify(request)
    local name = (request.header "authorization" or ""):match "^Bearer (%a+)$"
    if name == "root" then
        return false, ""
    end
    return TOKENS[name] and name, TOKENS[name] or "no such token"
end

--- Makes an API over a runner with the given fields; without fields, one that has no runner.
local function open(fields, prefix)
    local self = setmetatable({ caller = "alice" }, Client)
    self.api = api.new {
        identify = function(request)
            local caller, class = identify(request)
            if caller == nil then
                return nil, class
            end
            return caller, class
        end,
        operator = "operator",
        max_body = 64 * 1024,
        settings = { max_bytes = 64 * 1024 * 1024 },
        prefix = prefix,
    }
    if fields then
        self.runner = worker.open(fields)
        self.notifier = notifier.new(self.runner)
        self.api:attach(self.runner, self.notifier)
    end
    return self
end

-- "GET /path?query" with a body and headers of its own.
function Client:raw(line, body, headers)
    local method, target = line:match "^(%u+) (%S+)$"
    local path, query = target:match "^([^?]*)%??(.*)$"
    local all = { ["content-type"] = "application/json", authorization = "Bearer " .. self.caller }
    for name, value in pairs(headers or {}) do
        all[name] = value
    end
    return self.api:handle {
        method = method, path = path, query = query ~= "" and query or nil,
        header = function(name)
            return all[name] or nil -- false: not sent
        end,
        read_body = function(max)
            local text = body or ""
            if #text > max then
                return nil, "too_large"
            end
            return text
        end,
    }
end

--- Sends a request; gives the status, the decoded answer, and the response.
function Client:send(line, body, headers)
    local response = self:raw(line, body, headers)
    local text = response.body
    return response.status, text ~= "" and cjson.decode(text) or nil, response
end

--- Submits targets by their addresses; gives what `send` gives.
function Client:submit(...)
    local targets = {}
    for i, url in ipairs { ... } do
        targets[i] = { url = url }
    end
    return self:send("POST /v1/batches", cjson.encode { targets = targets })
end

--- Reads the chunks of a stream: all, or at most n.
function Client.chunks(response, n)
    local chunks = {}
    for chunk in response.body do
        chunks[#chunks + 1] = chunk
        if #chunks == n then
            break
        end
    end
    return chunks
end

return { open = open, chunks = Client.chunks }
