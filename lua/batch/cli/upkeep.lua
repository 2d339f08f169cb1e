-- SPDX-License-Identifier: MIT

--- `luabatch check`, `backup` and `purge`: the upkeep of a store's file, whoever else has it open.
-- None of them makes a store.

local batch = require "batch"
local core = require "batch.core"
local exits = require "batch.cli.exits"
local json = require "batch.json"
local progress = require "batch.cli.progress"
local settings = require "batch.cli.settings"
local terminal = require "batch.cli.terminal"
local units = require "batch.units"

local function declare_store(command)
    command:option("--store", "The store's file. Default: luabatch.db in the current folder.")
        :argname("F")
    command:flag("--json", "Answer in JSON.")
end

-- Calls work(store), which returns the answer as text, the same as fields for JSON, and the exit
-- code; or nil and what is wrong.
local function with_store(args, work)
    local path, message = settings.existing_store(args)
    local store
    if path then
        store, message = batch.store.open(path)
    end
    if not store then
        terminal.say(message)
        return exits.store
    end
    local text, fields, exit = work(store)
    store:close()
    if not text then
        terminal.say(fields)
        return exit or exits.store
    end
    local is_written, write_exit = terminal.answer(
        args.json and json.encode(fields) .. "\n" or text)
    return is_written and exit or write_exit
end

local check = {}

--- Declares the command's arguments.
-- @param command of argparse
function check.declare(command)
    declare_store(command)
    command:flag("--repair",
        "Mend what can be mended, and say what. Jobs of processes that live are left alone.")
end

-- A line for each sentence.
local function lines_of(sentences, prefix)
    local lines = {}
    for i, sentence in ipairs(sentences) do
        lines[i] = prefix .. progress.printable(sentence):gsub("\n", " ") .. "\n"
    end
    return table.concat(lines)
end

local function prove(store)
    local faults, message = store:check()
    if not faults then
        return nil, message
    elseif faults == true then
        return "ok\n", { ok = true, faults = json.list {} }, exits.done
    end
    return lines_of(faults, ""), { ok = false, faults = json.list(faults) }, exits.failed
end

local function repair(store)
    local mended, left = store:repair()
    if not mended then
        return nil, left
    end
    local is_sound = left == true
    local faults = is_sound and {} or left
    return lines_of(mended, "mended: ") .. (is_sound and "ok\n" or lines_of(faults, "")),
        { ok = is_sound, mended = json.list(mended), faults = json.list(faults) },
        is_sound and exits.done or exits.failed
end

--- Runs the command: prints "ok", or each fault on a line; before that what was mended.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
function check.execute(args)
    return with_store(args, args.repair and repair or prove)
end

local backup = {}

--- Declares the command's arguments.
-- @param command of argparse
function backup.declare(command)
    command:argument("OUT", "The file to make; it must not exist."):target("output")
    declare_store(command)
end

-- The size of a file; nil where there is none.
local function size_of(path)
    local file = io.open(path, "rb")
    local size = file and file:seek("end")
    if file then
        file:close()
    end
    return size
end

--- Runs the command: copies the store as it is at one moment.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
function backup.execute(args)
    local out = args.output
    if size_of(out) then
        terminal.say(("%s exists, and a backup overwrites nothing"):format(out))
        return exits.usage
    end
    return with_store(args, function(store)
        local began_at = core.monotime()
        local is_copied, message = store:backup(out)
        if not is_copied then
            return nil, message
        end
        local seconds, bytes = core.monotime() - began_at, size_of(out) or 0
        return ("%s: %s in %.2f s\n"):format(out, units.format_size(bytes), seconds),
            { path = out, bytes = bytes, seconds = math.floor(seconds * 1000 + 0.5) / 1000 },
            exits.done
    end)
end

local purge = {}

--- Declares the command's arguments.
-- @param command of argparse
function purge.declare(command)
    declare_store(command)
end

--- Runs the command: drops the finished jobs whose lease has lapsed, as runners do now and then.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
function purge.execute(args)
    return with_store(args, function(store)
        local n_dropped, message = store:purge_expired(core.now())
        if not n_dropped then
            return nil, message
        end
        return ("dropped %d job%s\n"):format(n_dropped, n_dropped == 1 and "" or "s"),
            { dropped = n_dropped }, exits.done
    end)
end

--- @export
return {
    check = check,
    backup = backup,
    purge = purge,
}
