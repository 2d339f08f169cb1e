-- SPDX-License-Identifier: MIT

--- Tends a runner in nginx's event loop: a light thread that sleeps until the runner has something
-- to tell, and has the notifier tell it. The runner's threads wake it by a byte into a unix socket,
-- the bell: nginx has no way to wait for any other descriptor.

local core = require "batch.core"

local RINGS_PER_TIMER = 10000 -- then another timer takes over
local FOR_EVER_MS = 2 ^ 31 - 1
local CONNECT_MS = 1000
local RING_BYTES = 4096
-- Between two looks of a tender that has no bell, and of a worker that leaves.
local LOOK_SECONDS = 0.01
-- A timer that did not start is asked for again after so long.
local START_PATIENCE_SECONDS = 1

local methods = {}
local metatable = { __name = "tender", __index = methods }

local function traceback(raised)
    return debug.traceback(tostring(raised), 2)
end

-- Returns the socket into which the runner rings from now on; nil: there is none.
local function connect(self)
    local path, message = self._runner:open_bell()
    if path then
        local bell = ngx.socket.tcp()
        bell:settimeouts(CONNECT_MS, CONNECT_MS, FOR_EVER_MS)
        local is_connected, why = bell:connect("unix:" .. path)
        local is_answered
        is_answered, message = self._runner:answer_bell()
        if is_connected and is_answered then
            return bell
        end
        message = why or message
    end
    self._log("error", "no bell: the runner is looked at every few milliseconds instead",
        { detail = message })
    return nil
end

-- Has the notifier tell what there is, and again when it wants to.
local function dispatch(self)
    local is_fine, pause = xpcall(self._notifier.dispatch, traceback, self._notifier)
    if not is_fine then
        self._log("error", "internal error", { detail = pause })
    elseif pause and not self._is_due then
        self._is_due = ngx.timer.at(pause, function()
            self._is_due = false
            dispatch(self)
        end)
    end
end

-- Returns false when the bell is gone.
local function listen(bell)
    if bell then
        return bell:receiveany(RING_BYTES) ~= nil
    end
    ngx.sleep(LOOK_SECONDS)
    return true
end

local start

-- The one that was in charge until now has lost its bell, and goes.
local function tend(_, self, generation)
    local bell = connect(self)
    local n_rings = 0
    if generation <= self._n_seen_off then
        return -- asked for before the worker had nothing more to wait for
    end
    self._generation = generation
    while self._generation == generation do
        dispatch(self)
        n_rings = n_rings + 1
        if not listen(bell) and self._generation == generation then
            bell = nil
            self._on_loss()
            start(self)
        elseif n_rings % RINGS_PER_TIMER == 0 then
            start(self)
        end
    end
end

function start(self)
    self._n_timers = self._n_timers + 1
    self._started_at = core.monotime()
    local is_started, message = ngx.timer.at(0, tend, self, self._n_timers)
    if not is_started then
        self._log("error", "no timer to tend the runner", { detail = message })
    end
end

-- Ends the tender when the worker has nothing more to wait for.
local function see_off(_, self)
    while not self._has_left() do
        ngx.sleep(LOOK_SECONDS)
    end
    self._on_left()
    -- Whoever comes later asks for another one at once.
    self._generation, self._n_seen_off, self._started_at = nil, self._n_timers, -math.huge
    self._runner:ring()
end

--- Makes a tender; `ensure` begins its work.
-- @tparam table parts
--
-- - `runner`, `notifier`, `log`
-- - `has_left()`: once the worker leaves, whether it has nothing more to wait for
-- - `on_left()`: called then; more than once if somebody comes later
-- - `on_loss()`: called when nginx has closed the bell
-- @treturn tender
local function new(parts)
    return setmetatable({
        _runner = parts.runner, _notifier = parts.notifier, _log = parts.log,
        _has_left = parts.has_left, _on_left = parts.on_left, _on_loss = parts.on_loss,
        _n_timers = 0, _n_seen_off = 0, _started_at = -math.huge,
        _is_due = false, _is_leaving = false,
    }, metatable)
end

--- Sees to it that the runner is tended. Cheap, to be called before each wait for it.
function methods:ensure()
    if self._generation or core.monotime() - self._started_at < START_PATIENCE_SECONDS then
        return
    end
    start(self)
    if self._is_leaving then
        ngx.timer.at(0, see_off, self)
    end
end

--- Tends the runner for only as long as somebody waits for it.
function methods:leave()
    self._is_leaving = true
    ngx.timer.at(0, see_off, self)
end

--- @export
return { new = new }
