-- SPDX-License-Identifier: MIT

--- `luabatch submit`: reads a list as `run` does and hands it over as one job. What is wrong with a
-- line is said by file and line, whoever finds it.

local batch = require "batch"
local defaults = require "batch.cli.defaults"
local exits = require "batch.cli.exits"
local json = require "batch.json"
local list = require "batch.cli.list"
local session = require "batch.cli.session"
local settings = require "batch.cli.settings"
local terminal = require "batch.cli.terminal"
local watch = require "batch.cli.watch"

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    command:argument("FILE|URL", "A file with one URL a line or JSON Lines of targets, a URL, or "
        .. "- for standard input; several are read as one list.")
        :target("list"):args("+")
    session.declare_place(command)
    defaults.declare(command)
    command:option("--caller", "With a store: whose job it is. Default: local.")
        :argname("NAME")
    command:option("--class", "With a store: a label that comes back with the job.")
        :argname("C")
    command:option("-c --config", "With a store: a configuration file, which may name another "
        .. "fetch module; its sections [batch] and [fetch] count.")
        :argname("FILE")
    command:flag("--wait", "Show the job's progress until it ends, as watch does.")
    command:flag("--json", "Answer in JSON.")
end

-- The check of a target by what will fetch it; a server checks for itself.
local function find_check(args)
    if args.server then
        return function() return true end
    end
    local fields, check = settings.runner_fields { config = args.config, allow = {},
        mode = args.mode }
    return fields and check, not fields and check or nil
end

local function check_target(text, options, check)
    local target, message = list.parse(text, options)
    local is_fine = target
    if target then
        is_fine, message = check { url = target.url, options = target.options or {} }
    end
    if not is_fine then
        return nil, message
    end
    local key
    key, message = batch.idem_key("", { target })
    if not key then
        return nil, (message:gsub("^target 0: ", ""))
    end
    return target
end

-- Returns the targets as texts of JSON, and for each where it stands.
local function read_list(args, check)
    local texts, places, options = {}, {}, defaults.read(args)
    local is_read, message = list.each(args.list, function(text, _, name, line)
        local target, why = check_target(text, options, check)
        if not target then
            return nil, why
        end
        texts[#texts + 1] = json.encode(target)
        places[#places + 1] = line and { name, line } or { name }
        return true
    end)
    if is_read and #texts == 0 then
        return nil, "no targets in " .. table.concat(args.list, ", "):gsub("^%-$", "stdin")
    end
    return is_read and texts, is_read and places or message
end

-- A refusal that names a target by its idx is about a line of the list.
local function find_line(fault, places)
    local idx, rest = fault.message:match("^target (%d+): (.*)$")
    local place = idx and places[tonumber(idx) + 1]
    if place then
        fault.message = table.concat(place, ":") .. ": " .. rest
    end
    return fault
end

local function submit(at, args, texts, places)
    local answer, fault = at:call {
        method = "POST", path = "/v1/batches",
        body = '{"targets":[' .. table.concat(texts, ",") .. "]}",
    }
    if not answer then
        return at:report(find_line(fault, places))
    end
    local id = answer.id
    if type(id) ~= "string" then
        return at:report(at:fault_without "an id")
    end
    local is_written, exit = terminal.answer((args.json and json.encode(answer) or id) .. "\n")
    if not is_written then
        return exit
    end
    if answer.reused == true and not args.json then
        at.bar:say(("known already: the job is %s"):format(tostring(answer.status)))
    end
    return args.wait and watch.follow(at, id, args.json) or exits.done
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
local function execute(args)
    local check, message = find_check(args)
    local texts, places
    if check then
        texts, places = read_list(args, check)
        message = places
    end
    if not texts then
        terminal.say(message)
        return exits.usage
    end
    args.may_make_store = true
    return session.run(args, function(at) return submit(at, args, texts, places) end)
end

--- @export
return {
    execute = execute,
    declare = declare,
}
