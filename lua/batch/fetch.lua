-- SPDX-License-Identifier: MIT

--- The built-in fetch module. As `fetch = "batch.fetch"` it has the defaults; `configure` makes one
-- with the settings of a configuration's [fetch] block. The work is done by batch.pipeline.
-- @module batch.fetch

local fields = require "batch.fields"
local http = require("batch.core").http
local pipeline = require "batch.pipeline"
local target_options = require "batch.target_options"

-- The fields of the block that are those of http.new too.
local CLIENT_FIELDS = {
    "allow", "deny", "timeout", "connect_timeout", "max_body", "max_redirects", "user_agent",
}

-- Tells clients, and the turns at their hosts, apart; the same for the same settings in every
-- state.
local function key_of(client, full)
    local words = { table.concat(client.exempt, ","), full.per_host, full.per_host_delay }
    for i, name in ipairs(CLIENT_FIELDS) do
        local value = client[name]
        words[3 + i] = type(value) == "table" and table.concat(value, ",") or tostring(value)
    end
    return table.concat(words, "\n")
end

-- The operator's own addresses: the guard lets them pass.
local function own_addresses(full)
    local addresses = { full.archive }
    if full.llm.url ~= "" then
        addresses[2] = full.llm.url
    end
    return addresses
end

local function read_settings(options)
    local full, message = fields.check("fetch", options)
    if not full then
        return nil, message
    end
    local client = { exempt = own_addresses(full) }
    for _, name in ipairs(CLIENT_FIELDS) do
        client[name] = full[name]
    end
    return {
        client = client, key = key_of(client, full), attempts = full.attempts,
        per_host = full.per_host, per_host_delay = full.per_host_delay, archive = full.archive,
        llm = full.llm,
    }
end

-- The functions are carried to the states of workers, so they hold plain data and modules only.
local function bind(settings)
    return {
        blocks = true, -- its thread, while it waits for a host: no event loop can run it
        setup = function()
            pipeline.open(settings)
        end,
        fetch = function(target, ctx)
            return pipeline.fetch(settings, target, ctx)
        end,
        teardown = function()
            pipeline.close(settings)
        end,
        check = function(target)
            return target_options.check(target)
        end,
    }
end

--- Makes a fetch table for `batch.new{fetch = …}` with settings of its own.
-- @tparam[opt] table options the fields of a configuration's [fetch] block: durations in seconds or
-- as text, sizes in bytes or as text; 0 and absence take the default
-- @treturn[1] table `{setup, fetch, teardown, check, blocks}`
-- @treturn[2] nil
-- @treturn[2] string which field is wrong, the rule and the value
-- @treturn[2] string `invalid`
-- @function configure
local function configure(options)
    local settings, message = read_settings(options)
    if not settings then
        return nil, message, "invalid"
    end
    -- The client knows its rules best; asked here, so that no worker learns of a wrong one first.
    local client, refusal, code = http.new(settings.client)
    if not client then
        return nil, refusal, code
    end
    client:close()
    return bind(settings)
end

local module = bind(assert(read_settings {}))
module.configure = configure
return module
