-- SPDX-License-Identifier: MIT

--- A runner's methods. Each checks its arguments, calls the core, and passes on what it says; hooks
-- and the log function run here, in the state of whoever polls.

local core = require "batch.core"
local evented = require "batch.evented"
local field_types = require "batch.field_types"
local hooks = require "batch.hooks"
local manual = require "batch.manual"

local PAGE = 256  -- targets that an iterator reads at once

local methods = {}

local metatable = {
    __index = methods,
    __name = "batch.runner",
    __tostring = function(self)
        return (tostring(self._handle):gsub("^userdata", "batch.runner"))
    end,
    __close = function(self)
        pcall(self.close, self)  -- raises in a fork's child, where there is nothing to close
    end,
}

local function check_self(self)
    if type(self) ~= "table" or getmetatable(self) ~= metatable then
        error("a runner expected, got " .. type(self) .. " (a dot instead of a colon?)", 3)
    end
    return self._handle
end

local function check_given(value, name)
    if value == nil then
        error(name .. " is missing", 3)
    end
end

local function invalid(name, rule, value)
    return nil, ("%s must be %s, got %s"):format(name, rule, field_types.shown(value)), "invalid"
end

local function is_count(value)
    return value == nil or (type(value) == "number" and value >= 0 and value % 1 == 0)
end

local function check_id(id)
    if type(id) ~= "string" then
        error("id must be a string, got " .. type(id), 3)
    end
end

local function check_targets(check, targets)
    for i, target in ipairs(targets) do
        local admitted, message = check { url = target.url, options = target.options or {} }
        if not admitted then
            local reason = message == nil and "refused by the fetch's check" or tostring(message)
            return nil, ("target %d: %s"):format(i - 1, reason), "invalid"
        end
    end
    return true
end

--- Submits a job. Submitting the same again gives the same job while its lease lasts.
-- @tparam string caller whose job it is: part of the key, and what jobs_per_caller counts
-- @tparam table targets list of `{url = string, options = table or nil}`
-- @tparam[opt] table options `class`: a label that comes back with the job
-- @treturn[1] string the job's id
-- @treturn[1] boolean whether it was known already
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `invalid`, `too_many_targets`, `caller_busy`, `busy`, `closed` or `store`
function methods:submit(caller, targets, options)
    local handle = check_self(self)
    check_given(caller, "caller")
    check_given(targets, "targets")
    local class, message, code = self:_admit(targets, options)
    if not class then
        return nil, message, code
    end
    return handle:submit(caller, targets, class)
end

-- What a submit checks before the core does: returns the class.
function methods:_admit(targets, options)
    if options ~= nil and type(options) ~= "table" then
        return invalid("options", "a table", options)
    end
    if self._check and type(targets) ~= "userdata" then -- core.targets() were checked one by one
        local ok, message, code = core.check_targets(targets)  -- check may rely on their form
        if ok then
            ok, message, code = check_targets(self._check, targets)
        end
        if not ok then
            return nil, message, code
        end
    end
    return options and options.class or ""
end

--- Reads a job and its targets, as one consistent snapshot; renews the lease.
-- @tparam string id
-- @tparam[opt] table options `from` (idx, 0), `limit` (all), `results` (true: contents come along)
-- @treturn[1] table the job
-- @treturn[1] table its targets from `from` on, in idx order
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `not_found`, `expired`, `invalid` or `store`
function methods:status(id, options)
    local handle = check_self(self)
    check_id(id)
    options = options or {}
    if not is_count(options.from) then
        return invalid("from", "an integer from 0", options.from)
    end
    if not is_count(options.limit) then
        return invalid("limit", "an integer from 0", options.limit)
    end
    return handle:status(id, options.from, options.limit, options.results ~= false)
end

--- Iterates over the targets with an outcome, in idx order, in constant memory.
-- @tparam string id
-- @tparam[opt] table options `from`: the first idx
-- @treturn[1] function an iterator of targets
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `not_found`, `expired`, `invalid` or `store`
-- @raise the iterator does, when the store fails or the job goes away on the way
function methods:results(id, options)
    local handle = check_self(self)
    check_id(id)
    local from = options and options.from or 0
    if not is_count(from) then
        return invalid("from", "an integer from 0", from)
    end
    local function read_page()
        return handle:status(id, from, PAGE, true, true, true)
    end
    local job, page, code = read_page()
    if not job then
        return nil, page, code
    end
    local position = 0
    return function()
        position = position + 1
        if not page[position] then
            local again, next_page = read_page()
            if not again then
                error("results of " .. id .. ": " .. next_page, 2)
            end
            page, position = next_page, 1
        end
        local target = page[position]
        from = target and target.idx + 1 or from
        return target
    end
end

--- Lists jobs without their targets, newest first.
-- @tparam[opt] table filter `caller`, `status`, `limit` (100), `before` (an id)
-- @treturn table list of jobs, or nil, message, code
function methods:jobs(filter)
    local handle = check_self(self)
    filter = filter or {}
    if not is_count(filter.limit) then
        return invalid("limit", "an integer from 0", filter.limit)
    end
    for _, name in ipairs { "caller", "before" } do
        if filter[name] ~= nil and type(filter[name]) ~= "string" then
            return invalid(name, "a string", filter[name])
        end
    end
    local known = { queued = 1, running = 1, done = 1, partial = 1, failed = 1, cancelled = 1 }
    if filter.status ~= nil and not known[filter.status] then
        return invalid("status", "queued, running, done, partial, failed or cancelled",
            filter.status)
    end
    return handle:jobs(filter.caller, filter.status, filter.limit, filter.before)
end

--- Cancels a job. The target in flight finishes and is stored; no further one starts.
-- @tparam string id
-- @treturn boolean false for an unknown id and for a job that is already terminal
function methods:cancel(id)
    local handle = check_self(self)
    check_id(id)
    return handle:cancel(id)
end

--- Renews the lease of a job.
-- @tparam string id
-- @treturn boolean false when it is unknown or its lease has lapsed
function methods:touch(id)
    local handle = check_self(self)
    check_id(id)
    return handle:touch(id)
end

--- Blocks this thread until the job is terminal.
-- @tparam string id
-- @tparam[opt] number seconds at most; for ever if left out
-- @treturn[1] table the job
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `timeout`, `not_found`, `expired` or `store`
function methods:wait(id, seconds)
    local handle = check_self(self)
    check_id(id)
    return handle:wait(id, seconds)
end

--- Outcomes of all jobs of the store in the order of their commits.
-- @tparam[opt] number after the `seq` of the last one seen; 0 for the beginning
-- @tparam[opt] number limit at most so many (100)
-- @treturn table list of targets that also have `job` and `seq`
function methods:changes(after, limit)
    return check_self(self):changes(after, limit)
end

--- What the runner and its store look like.
-- @tparam[opt] table options `all`: count what all runners on the store did since it was made
-- @treturn table gauges of the store over all processes, counters of this runner since it was made
function methods:stats(options)
    return check_self(self):stats(options ~= nil and options.all)
end

--- A descriptor that is readable when `poll` has something.
-- @treturn integer
function methods:fd()
    return check_self(self):fd()
end

--- Calls the hooks, and the log function, with what has happened since the last call.
-- @treturn integer number of events delivered
function methods:poll()
    local handle = check_self(self)
    local count = 0
    local event = handle:next_event()
    while event do
        if not self:_deliver_evented(event) then
            hooks.deliver(event, self._hooks, self._log)
        end
        count = count + 1
        event = not self._is_closed and handle:next_event()
    end
    return count
end

--- Ends the runner: cancels the fetches' contexts, waits for them, gives unfinished jobs up.
-- May be called again.
-- @tparam[opt] number seconds to wait at most
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `timeout`: fetches still run
function methods:close(seconds)
    local handle = check_self(self)
    handle:check_process()
    local is_closed, message, code = handle:close(seconds)
    if not is_closed then
        return nil, message, code
    end
    self._is_closed = true
    for _, event in ipairs(message) do
        self:_deliver_evented(event)
    end
    return true
end

-- The handle, if this runner's program does the work itself.
function methods:_hands(name)
    local handle = check_self(self)
    if not self._is_manual then
        error(name .. " needs executor = \"manual\"", 3)
    end
    return handle
end

for _, more in ipairs { manual, evented } do
    for name, method in pairs(more) do
        methods[name] = method
    end
end

-- Makes a runner of a handle of the core. parts: hooks, log, check, is_manual.
local function new(handle, parts)
    return setmetatable({
        _handle = handle,
        _hooks = parts.hooks or {},
        _log = parts.log,
        _check = parts.check,
        _is_manual = parts.is_manual,
        _calls = {},
        _n_calls = 0,
    }, metatable)
end

--- @export
return { new = new }
