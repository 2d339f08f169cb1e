-- SPDX-License-Identifier: MIT

--- What one process of nginx has started: its runner, and what waits for it, fetches for it and
-- serves it. From the opening of the store, which is tried until it succeeds, to the process's end.

local api = require "batch.api"
local batch = require "batch"
local condition = require "batch.openresty.condition"
local executor = require "batch.openresty.executor"
local notifier = require "batch.notifier"
local settings = require "batch.openresty.settings"
local stalls = require "batch.openresty.stalls"
local tender = require "batch.openresty.tender"

-- With a lock, when the store is opened: nobody is served meanwhile.
local START_PATIENCE_SECONDS, RETRY_PATIENCE_SECONDS = 1, 0.05
-- Between two tries to open the store; doubles.
local FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.5, 10
local SETUP_PAUSE_SECONDS = 1 -- before a setup that raised is called again
local EXIT_WATCH_SECONDS = 3600 -- any: what counts is how its timer ends

local methods = {}
local metatable = { __name = "worker", __index = methods }

local function traceback(raised)
    return debug.traceback(tostring(raised), 2)
end

local function each_api(self, f)
    for _, each in pairs(self.apis) do
        f(each)
    end
end

local function has_left(self)
    -- First who fetches: asking has it find the fetches that nobody will end.
    return (not self.executor or self.executor:busy() == 0)
        and self.notifier:calls() == 0 and self.runner:unsettled() == 0
end

local function run_setup(self)
    local setup = self.fetch.setup or function() end
    local is_fine, trace = xpcall(setup, traceback)
    if not is_fine then
        self.fields.log("error", "setup raised an error", { detail = trace })
    end
    return is_fine
end

local function run_teardown(self)
    local teardown = self.fetch and self.fetch.teardown
    if not teardown or self.is_torn_down then
        return
    end
    self.is_torn_down = true
    local is_fine, trace = xpcall(teardown, traceback)
    if not is_fine then
        self.fields.log("error", "teardown raised an error", { detail = trace })
    end
end

-- Not before setup is through: it runs in a timer, where it may yield as fetch may.
local function begin_fetching(premature, self)
    if premature then
        return
    elseif run_setup(self) then
        self.executor:start()
        self.runner:watch_turns(function() self.executor:wake() end)
    else
        ngx.timer.at(SETUP_PAUSE_SECONDS, begin_fetching, self)
    end
end

-- nginx reloads or quits: what is being fetched is finished, the rest is for the other workers.
local function leave(self)
    self.is_leaving = true
    if not self.runner then
        return
    end
    self.runner:begin_handover()
    self.notifier:stop()
    each_api(self, function(each) each:dismiss() end)
    if self.executor then
        self.executor:leave()
    end
    self.tender:leave()
end

local function new_tender(self)
    return tender.new {
        runner = self.runner, notifier = self.notifier, log = self.fields.log,
        has_left = function() return has_left(self) end,
        on_left = function() run_teardown(self) end,
        on_loss = function()
            if self.is_leaving and self.executor then
                self.executor:cut() -- nginx's own shutdown time-out has come
            end
        end,
    }
end

local function attach(self, runner)
    self.runner = runner
    self.notifier = notifier.new(runner, condition.new)
    self.tender = new_tender(self)
    self.tender:ensure()
    if self.fetch then
        self.executor = executor.new {
            runner = runner, fetch = self.fetch.fetch, workers = self.fields.workers,
            log = self.fields.log, stalls = stalls.new(self.fields.log),
        }
        ngx.timer.at(0, begin_fetching, self)
    end
    each_api(self, function(each) each:attach(runner, self.notifier) end)
end

-- Returns true, or nil, message and code.
local function open(self, patience)
    local runner, message, code = batch._new_with_patience(self.fields, patience,
        self.fetch and self.fetch.check)
    if runner then
        attach(self, runner)
        return true
    end
    self.why, self.code = message, code
    each_api(self, function(each) each:detach("store", message) end)
    return nil, message, code
end

local function keep_trying(premature, self, pause)
    if premature or self.is_leaving then
        return
    elseif open(self, RETRY_PATIENCE_SECONDS) then
        self.fields.log("info", "the store is open", { store = self.fields.store })
    else
        pause = math.min(2 * pause, LAST_RETRY_SECONDS)
        ngx.timer.at(pause, keep_trying, self, pause)
    end
end

local function watch_exit(premature, self)
    if premature then
        leave(self)
    end
end

--- Makes what a process starts.
-- @tparam table fields of `batch.new`
-- @tparam ?table fetch the functions that light threads run; nil: worker threads fetch
-- @treturn worker with the fields `runner` and `notifier` once the store is open, `why` and `code`
-- until then, `is_leaving`, and `fields`
local function new(fields, fetch)
    return setmetatable({ fields = fields, fetch = fetch, apis = {}, is_leaving = false },
        metatable)
end

--- Stands for a process whose `start` was refused, for those who ask it nevertheless.
-- @tparam string why
-- @treturn worker
local function refused(why)
    local self = new({ log = settings.write_to_error_log })
    self.why, self.code = why, "invalid"
    return self
end

--- Opens the store; one that cannot be opened is tried again until it can.
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string `store`, and it will be tried again; or `invalid`
function methods:start()
    local is_open, message, code = open(self, START_PATIENCE_SECONDS)
    if is_open or code == "store" then
        ngx.timer.every(EXIT_WATCH_SECONDS, watch_exit, self)
    end
    if not is_open and code == "store" then
        ngx.timer.at(FIRST_RETRY_SECONDS, keep_trying, self, FIRST_RETRY_SECONDS)
    end
    return is_open, message, code
end

--- Sees to it that whoever waits from now on is woken.
function methods:tend()
    if self.tender then
        self.tender:ensure()
    end
end

--- The API below a prefix, made once.
-- @tparam function identify as for `batch.api`, like the others: the same at each call
-- @tparam string prefix
-- @tparam integer max_body
-- @treturn api
function methods:api(identify, prefix, max_body)
    local key = prefix .. " " .. max_body
    if self.apis[key] then
        return self.apis[key]
    end
    local made = api.new {
        identify = identify, prefix = prefix, max_body = max_body, settings = self.fields,
        is_shared = true,
    }
    if self.runner then
        made:attach(self.runner, self.notifier)
    else
        made:detach("store", self.why)
    end
    if self.is_leaving then
        made:dismiss()
    end
    self.apis[key] = made
    return made
end

--- @export
return { new = new, refused = refused }
