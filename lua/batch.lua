-- SPDX-License-Identifier: MIT

--- The face of the library: what `require "batch"` gives. The core does the work; this checks what
-- is given, calls the user's hooks in the user's own state, and names things.
-- @module batch

local carry = require "batch.carry"
local cjson = require "cjson"
local core = require "batch.core"
local fields = require "batch.fields"
local retry = require "batch.retry"
local runner = require "batch.runner"
local version = require "batch.version"

core.use_json(cjson.decode)

local function check_fetch_table(value, name)
    if type(value) == "function" then
        return { fetch = value }
    end
    if type(value) ~= "table" or type(value.fetch) ~= "function" then
        return nil, ("fetch %s gives no function, got %s"):format(name, type(value))
    end
    for _, field in ipairs { "setup", "teardown", "check" } do
        if value[field] ~= nil and type(value[field]) ~= "function" then
            return nil, ("fetch %s: %s must be a function, got %s"):format(name, field,
                type(value[field]))
        end
    end
    return value
end

local function load_module(name)
    local ok, value = pcall(require, name)
    if not ok then
        return nil, ("fetch module '%s' does not load: %s"):format(name, tostring(value))
    end
    return check_fetch_table(value, ("module '%s'"):format(name))
end

-- The functions of a fetch, in this state.
local function load_fetch(fetch)
    if type(fetch) == "string" then
        return load_module(fetch)
    end
    return check_fetch_table(fetch, "table")
end

-- How the workers' states get their fetch: by a module's name, or carried. Also its check, which
-- runs here.
local function prepare_fetch(fetch)
    local parts, message = load_fetch(fetch)
    if not parts then
        return nil, message
    elseif type(fetch) == "string" then
        return { kind = "module", source = fetch, check = parts.check }
    end
    local carried = fetch
    if type(fetch) == "table" then
        carried = { setup = parts.setup, fetch = parts.fetch, teardown = parts.teardown }
    end
    local source, refusal = carry.pack(carried, "fetch")
    if not source then
        return nil, refusal
    end
    return { kind = "carried", source = source, check = parts.check }
end

-- Of a runner that fetches nothing itself, and was told nothing about how its targets are fetched.
local NO_FETCH = { kind = "module", source = "" }

-- Opens a runner after the fields were checked. inner: what users do not set: `clock`, a virtual
-- one for tests; `patience`, the seconds that a locked store is waited for; `stuck_after`,
-- those after which a thread that does not move hangs; `check`, that of a fetch which runs in this
-- state.
local function open(config, executor, inner, is_fetch_given)
    local fetch, message = NO_FETCH, nil
    if executor == "threads" or is_fetch_given then
        fetch, message = prepare_fetch(config.fetch)
    end
    if not fetch then
        return nil, message, "invalid"
    end
    local settings = {}
    for name, value in pairs(config) do
        settings[name] = value
    end
    settings.executor = executor
    settings.clock, settings.patience = inner.clock, inner.patience
    settings.stuck_after = inner.stuck_after
    settings.fetch_kind = fetch.kind
    settings.fetch = fetch.source
    settings.path = package.path
    settings.cpath = package.cpath
    settings.has_log = config.log ~= nil
    local handle, refusal, code = core.open(settings)
    if not handle then
        return nil, refusal, code
    end
    return runner.new(handle, {
        hooks = config.hooks,
        log = config.log,
        check = inner.check or fetch.check,
        is_manual = executor == "manual",
    })
end

local function check_and_open(config, executor, inner)
    if config ~= nil and type(config) ~= "table" then
        error("config must be a table, got " .. type(config), 3)
    end
    local full, message, code = fields.check("batch", config or {})
    if not full then
        return nil, message, code
    end
    return open(full, executor or full.executor, inner, config and config.fetch)
end

--- Opens a runner on a store, which it makes if there is none.
-- @tparam[opt] table config the fields of the README's table; all have defaults
-- @treturn[1] batch.runner the runner
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string `invalid` (a field, or a fetch that cannot be used) or `store`
-- @raise if config is no table
local function new(config)
    return check_and_open(config, nil, {})
end

--- Opens a store without workers: submits, reads and cancels; some runner on the same store works.
-- @tparam[opt] table config as for `new`
-- @treturn batch.runner a runner without `take`, `finish`, `fail`, `later` and `drain`
-- @see new
local function client(config)
    return check_and_open(config, "none", {})
end

--- Opens a store alone, for its upkeep.
-- @tparam string path of the file, or ":memory:"
-- @treturn[1] batch.store
-- @treturn[2] nil
-- @treturn[2] string what SQLite or the system said
-- @treturn[2] string `store`
-- @function store.open
local function open_store(path)
    return core.store_open(path)
end

--- @export
return {
    new = new,
    client = client,
    store = { open = open_store },

    --- The canonical JSON of a list of targets; two lists with the same one are the same job.
    -- @function canonical
    -- @tparam table targets list of `{url = string, options = table or nil}`
    -- @treturn string or nil, message, `invalid`
    canonical = core.canonical,

    --- The key by which a submit is known again: hex of the SHA-256 of caller, NUL and canonical.
    -- @function idem_key
    -- @tparam string caller
    -- @tparam table targets
    -- @treturn string 64 hex digits, or nil, message, `invalid`
    idem_key = core.idem_key,

    --- The decision of the caps, on counts that the caller took.
    -- @function caps
    -- @tparam table limits `targets_per_job`, `jobs_per_caller`, `jobs_total`
    -- @tparam table load `targets` of the job, live `caller_jobs` and `total_jobs` without it
    -- @treturn boolean true, or nil, message, code
    caps = core.caps,

    retry_later = retry.later,

    _VERSION = "batch " .. version,

    -- For batch.testing: a runner on a virtual clock.
    _new_on_clock = function(config, clock)
        return check_and_open(config, nil, { clock = clock })
    end,

    -- For event loops, which must not wait: locks are waited for so many seconds at most.
    _new_with_patience = function(config, seconds, check)
        return check_and_open(config, nil, { patience = seconds, check = check })
    end,

    -- For tests of the watch over threads: one that does not move for so many seconds hangs.
    _new_watched = function(config, seconds)
        return check_and_open(config, nil, { stuck_after = seconds })
    end,

    -- Gives the table of functions that a fetch is, or nil and a sentence.
    _load_fetch = load_fetch,
}
