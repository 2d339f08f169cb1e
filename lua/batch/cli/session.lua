-- SPDX-License-Identifier: MIT

--- What the commands that ask about jobs have in common: where to ask (a store's file or a server),
-- a loop that a signal ends, and how refusals become a sentence and an exit code. Commands speak
-- the HTTP API either way.

local cjson = require("cjson").new()
local core = require "batch.core"
local cqueues = require "cqueues"
local exits = require "batch.cli.exits"
local terminal = require "batch.cli.terminal"
local texts = require "batch.cli.texts"

local TICK_SECONDS = 0.1
local MAX_WHOLE = 2 ^ 53
local TOKEN_VARIABLE = "LUABATCH_TOKEN"

-- The exit codes of the API's statuses; of any other client error wrong usage, else "not now".
local EXITS = { [404] = exits.failed, [409] = exits.failed, [410] = exits.failed,
    [429] = exits.store }

local methods = {}
local metatable = { __name = "session", __index = methods }

function metatable.__tostring(self)
    return ("session with %s"):format(self.transport.name)
end

--- Declares where a command asks.
-- @param command of argparse
local function declare_place(command)
    command:mutex(
        command:option("--store", "The store's file. Default: luabatch.db in the current folder.")
            :argname("F"),
        command:option("--server", "Ask a server instead: http://HOST:PORT, https://HOST or "
            .. "unix:/PATH.")
            :argname("URL"))
    command:option("--token", "The server's token; it shows in lists of processes, which the "
        .. "variable " .. TOKEN_VARIABLE .. " does not.")
        :argname("T")
end

local function open_server(args)
    return require("batch.cli.server_transport").new(args.server,
        args.token or terminal.environment(TOKEN_VARIABLE))
end

-- Returns the transport, or nil, what is wrong, and the exit code.
local function open_transport(args)
    if args.server then
        for _, name in ipairs { "caller", "class" } do
            if args[name] then
                return nil, ("--%s is for a store: a server knows it by the token"):format(name),
                    exits.usage
            end
        end
        local transport, message = open_server(args)
        return transport, message, exits.usage
    elseif args.token then
        return nil, "--token is for a server, but there is no --server", exits.usage
    end
    local transport, message, exit = require("batch.cli.store_transport").new(args)
    return transport, message, exit or exits.store
end

local function loop(session, work)
    local controller, is_fine, exit = cqueues.new(), nil, nil
    controller:wrap(function()
        is_fine, exit = xpcall(function() return work(session) end, debug.traceback)
    end)
    while is_fine == nil do
        assert(controller:step(TICK_SECONDS))
        if is_fine == nil and core.caught() then
            return exits.interrupted
        elseif session.tick then
            session.tick()
        end
    end
    return is_fine and exit or error(exit, 0)
end

--- Runs the work of a command in a loop of cqueues, until it ends or a signal does.
-- @tparam table args of the command line
-- @tparam function work called with the session, in a coroutine; returns the exit code
-- @treturn number the exit code
local function run(args, work)
    local transport, message, exit = open_transport(args)
    if not transport then
        terminal.say(message)
        return exit
    end
    core.catch_signals()
    local session = setmetatable({
        transport = transport,
        bar = terminal.make_progress(args.json),
    }, metatable)
    exit = loop(session, work)
    session.bar:clear()
    if exit == exits.interrupted and session.parting then
        session.bar:say(session.parting)
    end
    transport:close()
    return exit
end

local function read_all(response)
    local chunks = {}
    while true do
        local chunk, message = response.next_chunk()
        if not chunk then
            return not message and table.concat(chunks) or nil, message
        end
        chunks[#chunks + 1] = chunk
    end
end

local function decode(text)
    local is_json, value = pcall(cjson.decode, text)
    return is_json and type(value) == "table" and value or nil
end

local function text_or_nil(value)
    return type(value) == "string" and value ~= "" and value or nil
end

-- What users of the command line can do, by status or code, where the API's hint is for those who
-- write HTTP. Where a target is invalid the line of the list is told.
local HINTS = {
    [401] = "--token or the variable " .. TOKEN_VARIABLE .. " says which token to send",
    [404] = "luabatch list shows the jobs that there are",
    [409] = "luabatch results prints the outcomes that it has",
    invalid = "",
}

local function find_exit(status, has_code)
    if status == 401 or status == 403 then
        return exits.usage -- perhaps a proxy's word, which says it in its own way
    elseif not has_code then
        return exits.store
    end
    return EXITS[status] or status < 500 and exits.usage or exits.store
end

-- What a status that is no success means: a fault with `message`, `code`, `hint` and the exit code.
local function read_fault(self, response)
    local status = response.status
    local answer = decode(read_all(response) or "")
    local fault = answer and type(answer.error) == "table" and answer.error or {}
    return {
        status = status,
        code = text_or_nil(fault.code),
        message = text_or_nil(fault.message)
            or ("%s answered with status %d, which no batch server does"):format(
                self.transport.name, status),
        hint = text_or_nil(HINTS[status] or HINTS[fault.code] or fault.hint),
        exit = find_exit(status, fault.code ~= nil),
    }
end

--- Says what went wrong.
-- @tparam table fault
-- @treturn number the exit code for it
function methods:report(fault)
    local words = { fault.message }
    if fault.code then
        words[#words + 1] = ("(%s)"):format(fault.code)
    end
    local sentence = table.concat(words, " ")
    self.bar:say(texts.clean(fault.hint and sentence .. "; " .. fault.hint or sentence))
    return fault.exit
end

--- Sends a request whose answer is read as it comes.
-- @tparam table request as transports take it
-- @treturn[1] table the response, of a status that means success
-- @treturn[2] nil
-- @treturn[2] table the fault: `message`, `exit`, and perhaps `status`, `code`, `hint`; without a
-- status nobody was reached
function methods:open(request)
    local response, message = self.transport:request(request)
    if not response then
        return nil, { message = message, exit = exits.store }
    elseif response.status >= 200 and response.status < 300 then
        return response
    end
    local fault = read_fault(self, response)
    response.close()
    return nil, fault
end

--- Sends a request and reads the answer as JSON.
-- @tparam table request as transports take it
-- @treturn[1] table the answer
-- @treturn[2] nil
-- @treturn[2] table the fault, as of `open`
function methods:call(request)
    local response, fault = self:open(request)
    if not response then
        return nil, fault
    end
    local text, message = read_all(response)
    response.close()
    local answer = text and decode(text)
    if not answer then
        return nil, message and { message = message, exit = exits.store }
            or self:fault_without "JSON"
    end
    return answer
end

--- Tells whether a value is a job as the API sends it; another program's answer is none.
-- @param value
-- @treturn boolean
local function is_job(value)
    if type(value) ~= "table" or type(value.id) ~= "string" or type(value.status) ~= "string" then
        return false
    end
    for _, name in ipairs { "targets_total", "targets_done", "targets_failed", "bytes" } do
        local number = value[name]
        if type(number) ~= "number" or number % 1 ~= 0 or number > MAX_WHOLE then
            return false
        end
    end
    return true
end

--- The path of a job.
-- @tparam string id as the user wrote it
-- @tparam[opt] string rest what follows, with its slash
-- @treturn string
function methods:path(id, rest)
    local escaped = id:gsub("[^%w._~-]", function(byte)
        return ("%%%02X"):format(byte:byte())
    end)
    return "/v1/batches/" .. escaped .. (rest or "")
end

--- Reads a job without its targets.
-- @tparam string id
-- @treturn[1] table the job
-- @treturn[2] nil
-- @treturn[2] table the fault
function methods:job(id)
    local answer, fault = self:call {
        method = "GET", path = self:path(id), query = "limit=0&results=false",
    }
    if answer and not is_job(answer.job) then
        return nil, self:fault_without "a job"
    end
    return answer and answer.job, fault
end

--- The fault of an answer that lacks what every batch server sends.
-- @tparam string what is missing
-- @treturn table the fault
function methods:fault_without(what)
    return {
        message = ("%s answered without %s, which no batch server does"):format(
            self.transport.name, what),
        exit = exits.store, is_final = true,
    }
end

--- The exit code that a job's status means; a live one is no failure.
-- @tparam table job
-- @treturn number
local function exit_of(job)
    local has_failed = job.status == "partial" or job.status == "failed"
        or job.status == "cancelled"
    return has_failed and exits.failed or exits.done
end

--- @export
return {
    run = run,
    declare_place = declare_place,
    exit_of = exit_of,
    is_job = is_job,
}
