-- SPDX-License-Identifier: MIT

--- The command line: which commands there are, help and version, and what a wrong word is answered
-- with. What a command does is in batch.cli.<command>. The only part that may be asked to end the
-- process, and even it only returns the exit code.
-- @module batch.cli

local argparse = require "argparse"
local batch = require "batch"
local defaults = require "batch.cli.defaults"
local exits = require "batch.cli.exits"

local HELP_COLUMNS = 80

-- wrong: what a 2 may mean besides wrong usage
local function exits_of_jobs(wrong)
    return "Exit codes: 0 all targets done, or not all yet; 1 some failed, or the job was "
        .. "cancelled or is unknown; 2 wrong usage" .. wrong .. "; 3 the store or the server "
        .. "cannot be reached, or refuses for now; 130 interrupted."
end

-- `module`: for commands that share a file, which then has a table for each; otherwise it is called
-- as the command.
local COMMANDS = {
    {
        name = "run",
        summary = "Fetch a list of URLs in this process.",
        description = "Fetches every target of a list and prints the outcomes as JSON Lines, in "
            .. "the order they end, each with the number of its input line. An interrupted run "
            .. "started again goes on where it stopped. What this list has an outcome of in the "
            .. "store, failed or not, is not fetched again; in another list or with another store "
            .. "it is.",
        epilog = "Exit codes: 0 all done, 1 some failed, 2 wrong usage or a wrong list, 3 store or "
            .. "output cannot be used, 130 interrupted.",
    },
    {
        name = "serve",
        summary = "Serve batches over HTTP.",
        description = "Runs the batch runner of a configuration and serves its HTTP API until "
            .. "SIGTERM or SIGINT; SIGHUP reloads tokens, log level and TLS files. Without a "
            .. "configuration every default holds.",
        epilog = "Exit codes: 0 clean shutdown, 1 the grace ran out or a second signal came, 2 "
            .. "wrong usage or configuration, 3 the address cannot be had.",
    },
    {
        name = "submit",
        summary = "Hand a list to whoever works on a store, or to a server.",
        description = "Submits a list as one job and prints the job's id. Something else works on "
            .. "it: a server, or a program with a runner on the same store. While the job is "
            .. "kept, the same list of the same caller is the same job.",
        epilog = exits_of_jobs ", a wrong list or a wrong token",
    },
    {
        name = "status",
        summary = "Show what a job is doing.",
        description = "Shows a job and why targets of it failed. Times are in UTC.",
        epilog = "Exit codes: 0 the job is done or goes on, 1 it ended otherwise or is unknown, 2 "
            .. "wrong usage or a wrong token, 3 the store or the server cannot be reached.",
    },
    {
        name = "results",
        summary = "Print the outcomes of a job.",
        description = "Prints the outcomes that there are as JSON Lines, in the order of the "
            .. "targets, or with --follow all up to the job's end. Content that is no UTF-8 comes "
            .. "as base64.",
        epilog = exits_of_jobs " or a wrong token",
    },
    {
        name = "watch",
        summary = "Show a job's progress until it ends.",
        description = "Shows how far a job is until it ends, and goes on when the server was "
            .. "away for up to a minute. Ctrl-C ends the watching, not the job.",
        epilog = exits_of_jobs " or a wrong token",
    },
    {
        name = "cancel",
        summary = "Cancel a job.",
        description = "Cancels a job. The target that is being fetched still gets its outcome, "
            .. "no further one is begun.",
        epilog = "Exit codes: 0 cancelled, 1 it had ended already or is unknown, 2 wrong usage or "
            .. "a wrong token, 3 the store or the server cannot be reached.",
    },
    {
        name = "list",
        module = "jobs",
        summary = "List jobs.",
        description = "Lists jobs, newest first: of a store all, of a server those that the token "
            .. "may see. Times are in UTC.",
        epilog = "Exit codes: 0 listed, 2 wrong usage or a wrong token, 3 the store or the server "
            .. "cannot be reached.",
    },
    {
        name = "check",
        module = "upkeep",
        summary = "Check that a store is sound.",
        description = "Reads the whole store and prints ok, or each fault on a line. Others may "
            .. "work on the store meanwhile.",
        epilog = "Exit codes: 0 sound, 1 faults were found, 2 wrong usage, 3 there is no store "
            .. "that can be read.",
    },
    {
        name = "backup",
        module = "upkeep",
        summary = "Copy a store.",
        description = "Copies the store, as it is at one moment, to a new file, and tells the "
            .. "copy's size and how long it took. Others may work on the store meanwhile.",
        epilog = "Exit codes: 0 copied, 2 wrong usage or OUT exists, 3 the store cannot be read "
            .. "or OUT not be written.",
    },
    {
        name = "purge",
        module = "upkeep",
        summary = "Drop the jobs whose lease has lapsed.",
        description = "Drops the finished jobs whose lease has lapsed, with their results, gives "
            .. "the space back to the disk, and tells how many jobs that were. A runner on the "
            .. "store does the same from time to time.",
        epilog = "Exit codes: 0 dropped, 2 wrong usage, 3 there is no store that can be written.",
    },
    {
        name = "completion",
        summary = "Print a script that completes luabatch's words in a shell.",
        description = "Prints what bash, zsh or fish needs to complete luabatch's commands and "
            .. "options. For this shell alone: source <(luabatch completion bash), or: luabatch "
            .. "completion fish | source.",
        epilog = "Exit codes: 0 printed, 2 wrong usage.",
    },
    {
        name = "manual",
        module = "manual_page",
        summary = "Print the manual page.",
        description = "Prints the manual page, for: luabatch manual | man -l -",
        epilog = "Exit codes: 0 printed, 2 wrong usage.",
    },
}

-- What ends the parsing early: a text and the code to exit with. Raised, because argparse only
-- knows handlers that do not return.
local ending = { __name = "ending" }

local function finish(stream, text, code)
    error(setmetatable({ stream = stream, text = text, code = code }, ending))
end

-- more: gives what is to be said below argparse's own text; nil: nothing.
local function add_help(parser, more)
    parser:add_help(false)
    parser:flag("-h --help", "Show this help."):action(function()
        local text = parser:get_help() .. (more and "\n\n" .. more(HELP_COLUMNS) or "")
        finish(io.stdout, text, exits.done)
    end)
end

-- "-o, --output OUT" on one line, where argparse would take one for each spelling.
local function join_spellings(parser)
    local function label_lines(option)
        local words = option:_get_argument_list()
        table.insert(words, 1, table.concat(option._public_aliases, ", "))
        return { table.concat(words, " ") }
    end
    for _, option in ipairs(parser._options) do
        option._get_label_lines = label_lines
    end
end

local function answer_wrong_usage(parser, message)
    local name = parser:_get_fullname()
    finish(io.stderr, ("%s: %s\n%s\nTry '%s --help'."):format(
        name, message, parser:get_usage(), name), exits.usage)
end

-- What a command is: its `declare` and `execute`.
local function part_of(name)
    for _, command in ipairs(COMMANDS) do
        if command.name == name then
            local module = require("batch.cli." .. (command.module or name))
            return module[name] or module
        end
    end
end

local function add_command(parser, command)
    local sub = parser:command(command.name, command.description)
    sub:summary(command.summary):epilog(command.epilog)
    local part = part_of(command.name)
    add_help(sub, part.more_help)
    part.declare(sub)
    join_spellings(sub)
end

local function make_parser()
    local parser = argparse("luabatch", "Fetches lists of URLs, keeps every outcome in a "
        .. "file, and goes on where it was interrupted; in a shell, or as a server.")
    parser:command_target("command"):help_max_width(HELP_COLUMNS)
    add_help(parser)
    parser:flag("--version", "Show the version."):action(function()
        finish(io.stdout, "lua" .. batch._VERSION, exits.done)
    end)
    for _, command in ipairs(COMMANDS) do
        add_command(parser, command)
    end
    parser.error = answer_wrong_usage
    return parser
end

local function execute(arguments)
    local parser = make_parser()
    local args = parser:parse(defaults.bind_dashes(arguments))
    return part_of(args.command).execute(args, parser)
end

local function explain(fault)
    if getmetatable(fault) == ending then
        return fault
    end
    return setmetatable({
        stream = io.stderr,
        text = debug.traceback("luabatch: internal error: " .. tostring(fault), 2),
        code = exits.fault,
    }, ending)
end

--- Runs the command line.
-- @tparam {string,...} arguments without the program's name, as `arg` holds them
-- @treturn number the exit code
local function main(arguments)
    local is_answered, code = xpcall(function() return execute(arguments) end, explain)
    if is_answered then
        return code
    end
    code.stream:write(code.text, "\n")
    return code.code
end

--- @export
return {
    main = main,
}
