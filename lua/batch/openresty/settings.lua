-- SPDX-License-Identifier: MIT

--- What `batch.openresty.start` is given, made into what opens a runner: who runs fetch, where the
-- store lies, where log lines go. Knows no runner.

local batch = require "batch"
local batch_fields = require "batch.fields"
local log = require "batch.log"

local LEVELS = { debug = ngx.DEBUG, info = ngx.INFO, warn = ngx.WARN, error = ngx.ERR }

local function write_to_error_log(level, message, fields)
    ngx.log(LEVELS[level], "batch: ", log.describe(message, fields))
end

-- A relative path would begin in whatever folder nginx was started in.
local function below_prefix(path)
    if type(path) ~= "string" or path == "" or path:find "^[/:]" then
        return path
    end
    return ngx.config.prefix() .. path
end

-- Who runs fetch, "light" or "threads"; or nil and a sentence. What blocks its thread is kept out
-- of the event loop.
local function choose_executor(wanted, fetch)
    if wanted == nil then
        return fetch.blocks and "threads" or "light"
    elseif wanted == "light" and fetch.blocks then
        return nil, 'fetch blocks its thread, so it needs executor "threads"'
    elseif wanted == "light" or wanted == "threads" then
        return wanted
    end
    local shown = type(wanted) == "string" and ("%q"):format(wanted) or tostring(wanted)
    return nil, ('executor must be "light" or "threads", got %s'):format(shown)
end

--- Reads what `start` is given.
-- @tparam table given
-- @treturn[1] table fields of `batch.new`, all of them
-- @treturn[1] ?table the functions of the fetch that light threads run; nil: threads do
-- @treturn[2] nil
-- @treturn[2] string what is wrong
local function read(given)
    local fields = {}
    for name, value in pairs(given) do
        fields[name] = value
    end
    local fetch, message = batch._load_fetch(fields.fetch or "batch.fetch")
    if not fetch then
        return nil, message
    end
    fields.executor, message = choose_executor(fields.executor, fetch)
    if not fields.executor then
        return nil, message
    end
    fields.on_restart = fields.on_restart or "resume"
    fields.log = fields.log or write_to_error_log
    fields.store = below_prefix(fields.store or "batch.db")
    local is_light = fields.executor == "light"
    fields.executor = is_light and "manual" or "threads"
    local all
    all, message = batch_fields.check("batch", fields)
    if not all then
        return nil, message
    elseif not is_light then
        return all
    end
    all.fetch = nil
    return all, fetch
end

--- @export
return { read = read, write_to_error_log = write_to_error_log }
