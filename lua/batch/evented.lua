-- SPDX-License-Identifier: MIT

--- The methods of a runner for event loops and servers. Calls that write do not wait: they are
-- answered by a callback, inside of `poll`. What is read comes as JSON, as HTTP sends it.

local hooks = require "batch.hooks"

local methods = {}

local function answer_submit(event)
    if event.code then
        return nil, event.message, event.code
    end
    return event.id, event.is_reused, event.status, event.expires_at
end

local function answer_whether(event)
    if event.code and event.code ~= "not_found" then
        return nil, event.message, event.code
    end
    return event.code == nil
end

-- Begins, and notes who wants the answer: it comes by a poll, so not before. Returns true, or the
-- refusal, after which no answer comes.
local function begin(self, method, answer, callback, ...)
    local ticket = self._n_calls + 1
    local is_begun, message, code = self._handle[method](self._handle, ticket, ...)
    if not is_begun then
        return nil, message, code
    end
    self._n_calls = ticket
    self._calls[ticket] = { callback = callback, answer = answer }
    return true
end

--- Begins a submit.
-- @tparam function callback gets what `submit` returns: id and whether it is known, then also the
-- job's status and its expires_at; or nil, message, code. Called once, inside of `poll` or `close`;
-- what it raises is logged
-- @tparam string caller
-- @tparam table targets
-- @tparam[opt] table options as for `submit`
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string the sentence; callback will not be called
-- @treturn[2] string `invalid` or `closed`
function methods:begin_submit(callback, caller, targets, options)
    local class, message, code = self:_admit(targets, options)
    if not class then
        return nil, message, code
    end
    return begin(self, "begin_submit", answer_submit, callback, caller, targets, class)
end

--- Begins to cancel a job.
-- @tparam function callback gets what `cancel` returns
-- @tparam string id
-- @treturn boolean true, or nil, message, code, as for `begin_submit`; `not_found` for what is no
-- id
function methods:begin_cancel(callback, id)
    return begin(self, "begin_cancel", answer_whether, callback, id)
end

--- Begins to renew a lease.
-- @tparam function callback gets what `touch` returns
-- @tparam string id
-- @treturn boolean as for `begin_cancel`
function methods:begin_touch(callback, id)
    return begin(self, "begin_touch", answer_whether, callback, id)
end

--- Refuses submits from now on, starts no further target, and cancels the fetches' contexts. What
-- is there can be read until `close`.
function methods:begin_close()
    self._handle:begin_close()
end

--- Gives the jobs to the other processes on the store: `take` and worker threads get no further
-- target, jobs that are not in flight are everybody's at once, the others as soon as their target
-- is stored. Fetches go on undisturbed, submits are stored for others, reads work as before. Does
-- not wait: when `unsettled` gives 0 a close takes nothing away from anybody.
function methods:begin_handover()
    self._handle:begin_handover()
end

--- Counts what a close waits for.
-- @treturn integer targets that this runner fetches, or whose outcome is not stored yet
function methods:unsettled()
    return self._handle:unsettled()
end

--- Asks to be told that something in the store has changed, by whichever process.
-- @tparam function callback called without arguments inside of `poll`, once for many changes
function methods:watch(callback)
    self._on_change = callback
    self._handle:watch()
end

--- Asks to be told that targets may be taken, by a runner whose program takes them itself.
-- @tparam function callback called without arguments inside of `poll`, once for many turns: when a
-- job comes, an outcome is stored, a wait is over. Some may have been taken by then
function methods:watch_turns(callback)
    self._on_turn = callback
    self._handle:watch_turns()
end

--- Opens the bell: a unix socket to connect to, for event loops that cannot wait for `fd`. It lies
-- in a folder of its own that only this user may enter.
-- @treturn[1] string its path, good for one connection, until `answer_bell` or `close`
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `store`
function methods:open_bell()
    return self._handle:open_bell()
end

--- Takes the connection that was made to the bell, and removes socket and folder. From now on one
-- byte comes over it whenever there is something to poll that was not there before, and at once if
-- there is already. A former connection ends; nothing that it was told is lost.
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string the sentence: nobody has connected, which may be tried again
-- @treturn[2] string a code
function methods:answer_bell()
    return self._handle:answer_bell()
end

--- Sends a byte over the bell; if nobody has been answered, with the first connection.
function methods:ring()
    self._handle:ring()
end

--- What tells whether jobs have changed: their status, or their number of outcomes.
-- @tparam {string,...} ids
-- @treturn {integer,...} a number for each that changes with the job; -1: there is no such job.
-- Or nil, message, `store`
function methods:marks(ids)
    return self._handle:marks(ids)
end

--- Reads a job and some of its targets as JSON; renews the lease.
-- @tparam string id
-- @tparam table options `caller`: whose job it has to be, else it is unknown; `from` (0); `limit`;
-- `results`: whether contents come along; `outcomes`: only targets that have one
-- @treturn[1] table `job` (text), `targets` (list of texts: as many as wanted, fewer when they are
-- large), `next` (the idx behind the last of them), `status`, `mark`, `targets_done`,
-- `targets_total`
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `not_found`, `expired` or `store`
function methods:read_json(id, options)
    return self._handle:json(id, options.caller, options.from, options.limit, options.results,
        options.outcomes)
end

--- Reads a job and some of its targets as one JSON text; renews the lease.
-- @tparam string id
-- @tparam table options `caller`, `from`, `limit`, `results` as for `read_json`
-- @treturn[1] string an object of `job`, `targets` (fewer than wanted when they are large) and
-- `next` (the idx behind the last of them, null at the job's end)
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `not_found`, `expired` or `store`
function methods:page_json(id, options)
    return self._handle:page_json(id, options.caller, options.from, options.limit,
        options.results)
end

--- Lists jobs as JSON, newest first.
-- @tparam table filter as for `jobs`
-- @treturn[1] {string,...} texts
-- @treturn[1] {string,...} their ids
-- @treturn[2] nil
-- @treturn[2] string the sentence
-- @treturn[2] string `store`
function methods:list_json(filter)
    return self._handle:jobs_json(filter.caller, filter.status, filter.limit, filter.before)
end

-- Whether an event was for a callback of these methods. One that raises is logged: the next event
-- may be somebody else's answer.
function methods:_deliver_evented(event)
    if event.kind == "answer" then
        local call = self._calls[event.ticket]
        self._calls[event.ticket] = nil
        hooks.run("a callback", self._log, call.callback, call.answer(event))
        return true
    elseif event.kind == "change" then
        hooks.run("the callback of watch", self._log, self._on_change)
        return true
    elseif event.kind == "turn" then
        hooks.run("the callback of watch_turns", self._log, self._on_turn)
        return true
    end
    return false
end

--- @export
return methods
