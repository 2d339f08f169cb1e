-- SPDX-License-Identifier: MIT
--
-- A language model's server for specs, in a process of its own: it speaks the protocol, notes what
-- it was sent, and answers what the test tells it to. And a `post` that sends over plain sockets.

local cjson = require "cjson"

local http_server = require "spec.support.http_server"
local json = require "batch.json"
local process = require "spec.support.process"

-- What the test told lies in a file, so that each answer may be another one.
local SERVER = [[
local cqueues, json, cjson = require "cqueues", require "batch.json", require "cjson"
local cq = cqueues.new()
local function told()
    local file = assert(io.open(folder .. "/told"))
    local text = file:read "*a"
    file:close()
    return cjson.decode(text)
end
local function tell(answers)
    local file = assert(io.open(folder .. "/told", "w"))
    file:write(cjson.encode(answers))
    file:close()
end
local server = assert(require("batch.server").listen {
    cq = cq, listen = "127.0.0.1:0", log = { write = function() end },
    handler = function(request)
        note("requests", json.encode {
            method = request.method, path = request.path, body = request.read_body(1e8),
            authorization = request.header "authorization",
            content_type = request.header "content-type",
        })
        local all = told()
        local answer = all[1]
        if #all > 1 then
            table.remove(all, 1)
            tell(all)
        end
        return { status = answer.status, headers = answer.headers or {}, body = answer.body }
    end,
})
note("address", server:address())
local deadline = cqueues.monotime() + 100
while cqueues.monotime() < deadline and not cq:empty() do
    assert(cq:step(1))
end
]]

local Model = {}
Model.__index = Model

--- Starts a model and waits until it listens.
-- @treturn table with `url`, up to /v1
local function start()
    local folder = process.folder()
    local self = setmetatable({ folder = folder }, Model)
    self.process = folder:start(SERVER)
    self.address = process.eventually(function() return folder:lines("address")[1] end)
    assert(self.address, self.process:output())
    self.url = "http://" .. self.address .. "/v1"
    return self
end

function Model:stop()
    self.folder:remove()
end

--- What comes to the next requests: one answer each, the last one to all that follow.
-- @tparam table ... `status` (200), `headers`, `body`
function Model:answers(...)
    local answers = { ... }
    for _, answer in ipairs(answers) do
        answer.status = answer.status or 200
    end
    local file = assert(io.open(self.folder.path .. "/told", "w"))
    file:write(cjson.encode(answers))
    file:close()
    os.remove(self.folder.path .. "/requests")
end

--- Answers with a text, as models do.
function Model:says(content, more)
    local choice = { index = 0, finish_reason = "stop",
        message = { role = "assistant", content = content } }
    for name, value in pairs(more or {}) do
        choice[name] = value
    end
    self:answers { body = json.encode { object = "chat.completion", choices = { choice } } }
end

--- What was sent since the answers were told, the body decoded as `json`.
function Model:requests()
    local requests = {}
    for i, line in ipairs(self.folder:lines "requests") do
        requests[i] = cjson.decode(line)
        requests[i].json = cjson.decode(requests[i].body)
    end
    return requests
end

--- A client's `post`, by plain sockets on loopback.
function Model.post(url, request)
    local address, path = url:match "^http://(127%.0%.0%.1:%d+)(/.*)$"
    local lines = { "POST " .. path .. " HTTP/1.1", "Host: " .. address,
        "Content-Length: " .. #request.body }
    for name, value in pairs(request.headers) do
        lines[#lines + 1] = name .. ": " .. value
    end
    local client = http_server.connect(address)
    client:send(table.concat(lines, "\r\n") .. "\r\n\r\n" .. request.body)
    local status, body, head = client:answer()
    client:close()
    return { status = status, body = body,
        retry_after = tonumber(head:lower():match "\nretry%-after: (%d+)") }
end

return { start = start }
