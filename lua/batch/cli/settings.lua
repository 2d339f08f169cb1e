-- SPDX-License-Identifier: MIT

--- What the command line's words and the configuration file mean for a runner: the fields that it
-- is made with, and where its store is. Makes nothing.
-- @module batch.cli.settings

local sections = require "batch.sections"

local BUILT_IN_FETCH = "batch.fetch"
local STORE_NAME = "luabatch.db"
local WORKERS = 8

-- They exist for servers; a list that its user wrote stands for itself.
local CAPS = { targets_per_job = true, jobs_per_caller = true, jobs_total = true }
-- What is evicted before it is printed would be lost, so no size is too large.
local MAX_BYTES = 2 ^ 53

local function copy(fields)
    local twin = {}
    for name, value in pairs(fields or {}) do
        twin[name] = value
    end
    return twin
end

local function lift_caps(fields)
    for _, field in ipairs(sections.batch) do
        if CAPS[field.name] then
            fields[field.name] = field.max
        end
    end
end

local function configure_fetch(section, allow)
    local fields = copy(section)
    fields.allow = {}
    for _, networks in ipairs { section and section.allow or {}, allow } do
        for _, network in ipairs(networks) do
            table.insert(fields.allow, network)
        end
    end
    return require(BUILT_IN_FETCH).configure(fields)
end

local function is_built_in(fetch)
    return (fetch or BUILT_IN_FETCH) == BUILT_IN_FETCH
end

local function accept()
    return true
end

-- A list would fail as a whole by it. A fetch module of the user's own may have other modes.
local function check_mode(mode)
    if (mode or "") == "" then
        return true
    end
    return require("batch.modes").check(mode)
end

-- The check of a fetch module of the user's own. One that does not load is batch.new's to refuse.
local function module_check(name)
    local is_loaded, module = pcall(require, name)
    return is_loaded and type(module) == "table" and module.check or accept
end

-- The command line's word goes before the file's, and this before the default, which is not the
-- library's: a list is to be drained, not to be shared. 0 is as if it were not said.
local function count_workers(args, given)
    for _, said in ipairs { args.workers or 0, given.batch and given.batch.workers or 0 } do
        if said ~= 0 then
            return said
        end
    end
    return WORKERS
end

--- Makes the fields of `batch.new`, but for the store and the log.
-- @tparam table args of the command line: `config`, `allow`, `workers`, `mode`
-- @treturn[1] table the fields
-- @treturn[1] function the check of a target, which returns true, or nil and a message
-- @treturn[1] {string,...} warnings about the configuration
-- @treturn[2] nil
-- @treturn[2] string what is wrong with the configuration
local function runner_fields(args)
    local config, warnings, given = {}, {}, {}
    if args.config then
        config, warnings, given = require("batch.config").load(args.config)
        if not config then
            return nil, warnings
        end
    end
    local fields = copy(config.batch)
    fields.disabled = nil -- about the endpoints of a server
    fields.executor = "threads"
    fields.workers = count_workers(args, given)
    fields.on_restart = "resume"
    fields.max_bytes = MAX_BYTES
    lift_caps(fields)
    local check
    if is_built_in(fields.fetch) then
        local fetch, message = configure_fetch(config.fetch, args.allow)
        local is_fine, why, hint = check_mode(args.mode)
        if not fetch or not is_fine then
            return nil, message or ("%s, %s"):format(why, hint)
        end
        fields.fetch, check = fetch, fetch.check or accept
    elseif #args.allow > 0 then
        return nil, ("--allow is for %s, but %s names %s"):format(
            BUILT_IN_FETCH, args.config, fields.fetch)
    else
        check = module_check(fields.fetch)
    end
    return fields, check, warnings
end

--- Makes the fields of `batch.new` for a server, but for the log.
-- @tparam table config as batch.config gives it
-- @treturn[1] table
-- @treturn[2] nil
-- @treturn[2] string what is wrong
local function server_fields(config)
    local fields = copy(config.batch)
    fields.disabled = nil
    if fields.executor ~= "threads" then
        return nil, ('batch.executor must be "threads" for a server, got "%s"'):format(
            fields.executor)
    end
    if is_built_in(fields.fetch) then
        local fetch, message = configure_fetch(config.fetch, {})
        if not fetch then
            return nil, message
        end
        fields.fetch = fetch
    end
    return fields
end

--- Tells where a run is kept.
-- @tparam table args `store`, `output`
-- @treturn string a path
local function store_path(args)
    local out = args.output
    -- Beside a device is no place for a file.
    if args.store or not out or out:find("^/dev/") then
        return args.store or STORE_NAME
    end
    return (out:match("^(.*/)[^/]*$") or "") .. STORE_NAME
end

--- Tells where a store is that must be there already, for opening a missing one would make it.
-- @tparam table args `store`
-- @treturn[1] string a path
-- @treturn[2] nil
-- @treturn[2] string that it cannot be read, and why
local function existing_store(args)
    local path = store_path { store = args.store }
    local file, message = io.open(path, "rb")
    if not file then
        local hint = args.store and "" or " (--store names another)"
        return nil, "cannot open the store " .. message .. hint
    end
    file:close()
    return path
end

--- @export
return {
    runner_fields = runner_fields,
    server_fields = server_fields,
    store_path = store_path,
    existing_store = existing_store,
}
