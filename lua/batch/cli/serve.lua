-- SPDX-License-Identifier: MIT

--- `luabatch serve`: reads the configuration and hands over to the service.

local config = require "batch.config"
local config_text = require "batch.config_text"
local exits = require "batch.cli.exits"
local log = require "batch.log"
local settings = require "batch.cli.settings"

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    command:option("-c --config", "A configuration file. Default: every default.")
        :argname("FILE")
    command:flag("--print-config", "Print a configuration file with every default, and end.")
end

local function load_config(path)
    if path then
        return config.load(path)
    end
    return config.parse("")
end

-- What `--help` says below the options.
local function more_help(columns)
    return "Fields of FILE, with their defaults:\n\n" .. config_text.outline(columns)
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
local function execute(args)
    if args.print_config then
        io.stdout:write(config_text.toml())
        return exits.done
    end
    local given, warnings = load_config(args.config)
    local fields, message
    if given then
        fields, message = settings.server_fields(given)
    end
    if not fields then
        io.stderr:write("luabatch: ", message or warnings, "\n")
        return exits.usage
    end
    local logger = log.new { level = given.log.level, format = given.log.format }
    for _, warning in ipairs(warnings) do
        logger:write("warn", warning)
    end
    return require("batch.service").run(given, {
        fields = fields,
        log = logger,
        load = function() return load_config(args.config) end,
    })
end

--- @export
return { declare = declare, execute = execute, more_help = more_help }
