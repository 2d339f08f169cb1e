-- SPDX-License-Identifier: MIT

--- Requests to a store's file: the HTTP API, called in this process, without a socket. Whoever can
-- open the file is the operator, who sees the jobs of all callers. Runs in a coroutine of cqueues,
-- and knows nothing of jobs.

local api = require "batch.api"
local batch = require "batch"
local condition = require "cqueues.condition"
local cqueues = require "cqueues"
local exits = require "batch.cli.exits"
local settings = require "batch.cli.settings"
local terminal = require "batch.cli.terminal"

-- Who submits, unless --caller says: as with a server that has no tokens.
local OPERATOR = "local"
-- A list that its user wrote stands for itself.
local MAX_BODY_BYTES = 2 ^ 53
local CLOSE_SECONDS = 10

local methods = {}
local metatable = { __name = "store_transport", __index = methods }

function metatable.__tostring(self)
    return ("transport to %s"):format(self.name)
end

local function log(level, message, fields)
    if level == "warn" or level == "error" then
        local detail = fields and fields.detail
        terminal.say(("%s: %s"):format(level, message) .. (detail and ": " .. detail or ""))
    end
end

local function find_store(args)
    local path, message = settings.existing_store(args)
    if path or not args.may_make_store then
        return path, message
    end
    path = settings.store_path { store = args.store }
    terminal.say(("%s is a new store; a job waits there until something works on it"):format(path))
    return path
end

local function open_client(args, path)
    local fields, message, warnings = settings.runner_fields { config = args.config, allow = {} }
    if not fields then
        return nil, message, exits.usage
    end
    for _, warning in ipairs(warnings) do
        terminal.say(warning)
    end
    fields.store, fields.log = path, log
    local client, why, code = batch.client(fields)
    return client, why, code == "invalid" and exits.usage or exits.store
end

--- Opens a store.
-- @tparam table args `store`; `may_make_store`: it need not be there yet; `config`: a file whose
-- `[batch]` counts; `caller`: act as this caller, not as the operator; `class` of what is submitted
-- @treturn[1] store_transport
-- @treturn[2] nil
-- @treturn[2] string why it cannot be opened
-- @treturn[2] number the exit code
local function new(args)
    local path, message = find_store(args)
    if not path then
        return nil, message, exits.store
    end
    local client, why, exit = open_client(args, path)
    if not client then
        return nil, why, exit
    end
    local served = api.new {
        identify = function() return args.caller or false, args.class end,
        operator = OPERATOR,
        max_body = MAX_BODY_BYTES,
        settings = {},
    }
    local notifier = require("batch.notifier").new(client, condition.new)
    served:attach(client, notifier)
    return setmetatable({
        name = path, _client = client, _api = served, _notifier = notifier,
    }, metatable)
end

-- Wakes what waits for the store; ends with the loop that it runs in.
local function pump(self)
    local readable = { pollfd = self._client:fd(), events = "r" }
    while true do
        cqueues.poll(readable, self._notifier:dispatch())
    end
end

local function start(self)
    if not self._is_started then
        self._is_started = true
        cqueues.running():wrap(pump, self)
    end
end

local function make_request(request)
    local headers = request.headers or {}
    return {
        method = request.method,
        path = request.path,
        query = request.query,
        header = function(name)
            return name == "content-type" and request.body and "application/json" or headers[name]
        end,
        read_body = function() return request.body or "" end,
    }
end

-- The body as one chunk, or as the API makes it.
local function chunks_of(body)
    if type(body) == "function" then
        return function()
            local is_made, chunk = pcall(body)
            if is_made then
                return chunk
            end
            return nil, "the answer broke off: " .. tostring(chunk)
        end
    end
    local is_read = body == ""
    return function()
        local chunk = not is_read and body or nil
        is_read = true
        return chunk
    end
end

--- Answers a request; see the transport of a server.
-- @tparam table request
-- @treturn table the response
function methods:request(request)
    start(self)
    local answer = self._api:handle(make_request(request))
    return {
        status = answer.status,
        content_type = answer.headers["content-type"] or "",
        next_chunk = chunks_of(answer.body),
        close = answer.finish or function() end,
    }
end

--- Closes the store.
function methods:close()
    self._client:close(CLOSE_SECONDS)
end

--- @export
return {
    new = new,
}
