-- SPDX-License-Identifier: MIT

--- A server's life: the runner is opened, again and again if its store cannot be had, the API gets
-- it, signals reload or end it. Brings together what knows nothing of each other: api, server,
-- runner, log. Everything runs in one cqueues controller.

local api = require "batch.api"
local batch = require "batch"
local condition = require "cqueues.condition"
local core = require "batch.core"
local cqueues = require "cqueues"
local notifier = require "batch.notifier"
local reload = require "batch.service.reload"
local server = require "batch.server"
local signals = require "batch.service.signals"
local systemd = require "batch.systemd"

-- Between two tries to open the store; doubles.
local FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.5, 10
local RETRY_PATIENCE_SECONDS = 0.05 -- with a lock: a try holds up whoever is served meanwhile
local CLOSE_LOOK_SECONDS = 0.02 -- between two looks whether all that ran has ended
-- Before what has failed by a defect is done again.
local DEFECT_PAUSE_SECONDS = 1

local EXIT_CLEAN, EXIT_CUT_OFF, EXIT_USAGE, EXIT_ADDRESS = 0, 1, 2, 3
local EXITS = { invalid = EXIT_USAGE, address = EXIT_ADDRESS }

local function log(self, level, message, fields)
    self._log:write(level, message, fields)
end

local function traceback(reason)
    return debug.traceback(tostring(reason), 2)
end

-- Runs what the server hangs without: a failure in it is a defect, but no reason to stop.
local function persevere(self, f)
    local is_fine, trace
    repeat
        is_fine, trace = xpcall(f, traceback, self)
        if not is_fine then
            log(self, "error", "internal error", { detail = trace })
            cqueues.poll(DEFECT_PAUSE_SECONDS)
        end
    until is_fine
end

-- The store ------------------------------------------------------------------------------------

-- Wakes whoever waits for the runner, until the runner is closed: by `close` below.
local function tend(self)
    local pollable = { pollfd = self._runner:fd(), events = "r" }
    while self._runner do
        local pause = self._notifier:dispatch()
        cqueues.poll(pollable, self._tend_now, pause)
    end
end

local function attach(self, runner)
    self._runner = runner
    self._notifier = notifier.new(runner, condition.new)
    self._api:attach(runner, self._notifier)
    self._cq:wrap(persevere, self, tend)
end

-- Returns true, or nil, message and code.
local function open_runner(self, patience)
    local runner, message, code = batch._new_with_patience(self._fields, patience)
    if not runner then
        return nil, message, code
    end
    attach(self, runner)
    return true
end

local function keep_trying(self)
    local pause = FIRST_RETRY_SECONDS
    while not self._is_closing do
        cqueues.poll(self._tend_now, pause)
        pause = math.min(2 * pause, LAST_RETRY_SECONDS)
        if self._is_closing then
            return
        end
        local is_open, message = open_runner(self, RETRY_PATIENCE_SECONDS)
        if is_open then
            log(self, "info", "the store is open", { store = self._fields.store })
            return
        end
        self._api:detach("store", message)
    end
end

-- Returns true, also without a store, or nil and an exit code.
local function start_runner(self)
    local is_open, message, code = open_runner(self)
    if is_open then
        return true
    elseif code ~= "store" then
        log(self, "error", message)
        return nil, EXITS[code] or EXIT_USAGE
    end
    log(self, "warn", "the store cannot be opened; serving without batch until it can",
        { store = self._fields.store, detail = message })
    self._api:detach("store", message)
    self._cq:wrap(persevere, self, keep_trying)
    return true
end

-- The end --------------------------------------------------------------------------------------

-- Whether the runner has ended; never waits for it.
local function has_runner_ended(self)
    if not self._runner then
        return true
    end
    cqueues.cancel(self._runner:fd()) -- which is closed with it
    if not self._runner:close(0) then
        self._tend_now:signal()
        return false
    end
    self._api:detach "closing"
    self._runner = nil
    self._tend_now:signal()
    return true
end

-- As long as there is work to end, whoever comes gets an answer. Then requests before the runner:
-- what they read is gone with it.
local function wind_up(self)
    local is_over = false
    while not is_over and cqueues.monotime() < self._end_at do
        if not self._runner or self._runner:unsettled() == 0 then
            self._server:stop_accepting()
            is_over = self._server:active() == 0 and has_runner_ended(self)
        end
        cqueues.poll(is_over and 0 or CLOSE_LOOK_SECONDS)
    end
    if not is_over then
        log(self, "warn", "the grace ran out", { seconds = self._grace })
        self._server:stop_accepting()
        has_runner_ended(self)
    end
    self._exit = is_over and EXIT_CLEAN or EXIT_CUT_OFF
end

-- Whatever happens, the process ends.
local function end_all(self)
    local is_fine, trace = xpcall(wind_up, traceback, self)
    if not is_fine then
        log(self, "error", "internal error", { detail = trace })
        self._exit = EXIT_CUT_OFF
    end
end

local function begin_end(self, reason)
    log(self, "info", "shutting down", { reason = reason, grace = self._grace })
    self._is_closing = true
    self._end_at = cqueues.monotime() + self._grace
    if self._runner then
        self._runner:begin_close()
    end
    self._api:close()
    self._tend_now:signal()
    self._cq:wrap(end_all, self)
    systemd.notify "STOPPING=1"
end

-- Signals --------------------------------------------------------------------------------------

local function take_new_config(self)
    local config, message = self._load()
    local known
    if config then
        known, message = reload.apply({ started = self._started, server = self._server,
            log = self._log }, config)
    end
    if known then
        self._callers = known
        log(self, "info", "reloaded tokens, log level and TLS files")
    else
        log(self, "error", "not reloaded, all is as before", { detail = message })
    end
end

local function obey_signals(self)
    while not self._exit do
        local wish, name = self._signals:next()
        if wish == "reload" then
            take_new_config(self)
        elseif not self._is_closing then
            begin_end(self, name)
        else
            log(self, "warn", "ended at once by a second signal")
            self._exit = EXIT_CUT_OFF
        end
    end
end

-- A coroutine that fails is a defect, but no reason to take the others along.
local function loop(self)
    while not self._exit do
        local is_fine, message, _, thread = self._cq:step()
        if not is_fine then
            local trace = thread and debug.traceback(thread, tostring(message)) or message
            log(self, "error", "internal error", { detail = tostring(trace) })
            -- Without a coroutine it was the loop itself: it would fail again, and for ever.
            self._exit = self._exit or not thread and EXIT_CUT_OFF or nil
        end
    end
    return self._exit
end

local function new(config, parts)
    local self = {
        _log = parts.log, _load = parts.load, _fields = parts.fields, _cq = cqueues.new(),
        _callers = parts.callers, _started = config.server, _signals = signals.catch(),
        _grace = config.server.shutdown_grace, _tend_now = condition.new(), _is_closing = false,
    }
    local has_port = not config.server.listen:find "^unix:" -- browsers reach no other socket
    self._api = api.new {
        identify = function(request)
            local host = has_port and request.header "host" or nil
            return self._callers:identify(request.header "authorization", host)
        end,
        max_body = config.server.max_body,
        settings = config.batch,
    }
    self._fields.log = function(level, message, fields) log(self, level, message, fields) end
    return self
end

-- Returns true, or nil and an exit code.
local function listen(self, section)
    local listening, message, code = server.listen {
        listen = section.listen, tls_certificate = section.tls_certificate,
        tls_key = section.tls_key, log = self._log, cq = self._cq,
        handler = function(request) return self._api:handle(request) end,
    }
    if not listening then
        log(self, "error", message)
        return nil, EXITS[code] or EXIT_ADDRESS
    end
    self._server = listening
    return true
end

-- Without them the limits of jq and pdftotext still hold, but not the ban on network and processes.
local function look_for_filters(self)
    if self._fields.fetch == "batch.fetch" and not core.is_child_filtered() then
        log(self, "warn", "no seccomp here: jq and pdftotext run without a filter")
    end
end

local function start(self, config)
    local is_fine, exit = listen(self, config.server)
    if is_fine and config.batch.disabled then
        self._api:detach "disabled"
    elseif is_fine then
        is_fine, exit = start_runner(self)
    end
    if not is_fine then
        return nil, exit
    end
    look_for_filters(self)
    log(self, "info", "listening", { address = self._server:address() })
    local is_told, message = systemd.notify "READY=1"
    if not is_told then
        log(self, "warn", message)
    end
    return true
end

--- Serves until a signal ends it.
-- @tparam table config as batch.config gives it
-- @tparam table parts `fields`: of batch.new, but for the log; `log`: a batch.log; `load`: gives
-- the configuration anew, or nil and a sentence
-- @treturn integer exit code
local function run(config, parts)
    local known, message = reload.callers(config)
    if not known then
        parts.log:write("error", message)
        return EXIT_USAGE
    end
    parts.callers = known
    core.raise_files() -- a connection is a file, and shells allow but 1,024
    local self = new(config, parts)
    local is_started, exit = start(self, config)
    if is_started then
        self._cq:wrap(persevere, self, obey_signals)
        exit = loop(self)
        log(self, "info", "ended", { exit = exit })
    end
    if self._server then
        self._server:close()
    end
    return exit
end

--- @export
return { run = run }
