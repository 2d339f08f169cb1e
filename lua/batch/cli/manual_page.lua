-- SPDX-License-Identifier: MIT

--- `luabatch manual`: the manual page, as roff with the man macros. Commands and options come from
-- the command line's grammar; what belongs to no command is written here.

local exits = require "batch.cli.exits"
local grammar = require "batch.cli.grammar"
local terminal = require "batch.cli.terminal"
local version = require "batch.version"

local INTRODUCTION = {
    "A target is a URL with its options. What becomes of it, a result or an error, is its outcome. "
        .. "A job is a list of targets that are fetched one after another. Jobs and outcomes are "
        .. "kept in a store, which is one file, and every outcome is on the disk before the next "
        .. "target of its job begins.",
    "Results go to standard output, everything else to standard error.",
}

local STATUSES = {
    { "0", "All targets are done." },
    { "1", "Some targets failed, or the job was cancelled; check found a fault; an id is "
        .. "unknown." },
    { "2", "Wrong usage, a wrong list or a wrong configuration; nothing was begun." },
    { "3", "The store or the server could not be reached, or refused for now; or the output "
        .. "could not be written." },
    { "130", "Interrupted." },
}

local FILES = {
    { "luabatch.db", "The store, unless --store names another; serve has batch.db, unless its "
        .. "configuration names another. It is readable for its owner alone. While it is open, "
        .. "luabatch.db-wal and luabatch.db-shm belong to it." },
    { "luabatch.db.owners", "Locks that tell which processes work on the store." },
    { "luabatch.db.reserve", "Space that is given up for cancels when the disk is full." },
}

local ENVIRONMENT = {
    { "NO_COLOR", "If set and not empty, nothing is coloured." },
    { "TERM", "If it is dumb, progress is shown in plain lines." },
    { "LUABATCH_TOKEN", "The token for --server, unless --token gives one." },
    { "SSL_CERT_FILE, SSL_CERT_DIR", "Certificates to trust, in the place of the system's, when "
        .. "--server names an https URL." },
    { "LC_ALL, LC_CTYPE, LANG", "The first that is set tells whether the terminal shows UTF-8; the "
        .. "progress bar is drawn accordingly." },
}

local EXAMPLES = {
    { "Fetch a list with sixteen workers; after an interruption the same command goes on:",
        "luabatch run urls.txt -o pages.jsonl -j 16" },
    { "Try again what failed:",
        "jq -c 'select(.status == \"failed\") | {url, options}' pages.jsonl | luabatch run -" },
    { "Submit a list to a server and watch it:",
        "luabatch submit urls.txt --wait --server https://batch.example.org" },
    { "See why targets of the newest job failed:",
        "luabatch status \"$(luabatch list --json --limit 1 | jq -r .id)\"" },
    { "Copy the store while it is in use:", "luabatch backup /var/backups/luabatch.db" },
}

local LINE_BYTES = 79

-- Text that roff is to print as it is, with hyphens that may be copied.
local function escape(text)
    return (text:gsub("\\", "\\e"):gsub("-", "\\-"))
end

-- A paragraph, broken into lines, none of which looks like one that controls roff.
local function fill(text)
    local lines, line = {}, ""
    for word in escape(text):gmatch("%S+") do
        if line ~= "" and #line + 1 + #word > LINE_BYTES then
            lines[#lines + 1], line = line, ""
        end
        line = line == "" and word:gsub("^[.']", "\\&%0") or line .. " " .. word
    end
    lines[#lines + 1] = line
    return table.concat(lines, "\n")
end

local function bold(text)
    return "\\fB" .. escape(text) .. "\\fR"
end

local function italic(text)
    return "\\fI" .. escape(text) .. "\\fR"
end

local function add_entry(lines, label, text)
    lines[#lines + 1] = ".TP"
    lines[#lines + 1] = label
    lines[#lines + 1] = fill(text)
end

local function add_pairs(lines, title, entries)
    lines[#lines + 1] = ".SH " .. title
    for _, entry in ipairs(entries) do
        add_entry(lines, bold(entry[1]), entry[2])
    end
end

local function option_label(option)
    local spellings = {}
    for i, spelling in ipairs(option.spellings) do
        spellings[i] = bold(spelling)
    end
    local label = table.concat(spellings, ", ")
    return option.value and label .. " " .. italic(option.value.name) or label
end

-- The synopsis of a command with its words set apart: what users type in bold.
local function format_usage(program, command)
    local rest = command.usage:sub(#program.name + #command.name + 3)
    rest = escape(rest):gsub("%f[%w\\](\\%-[%w\\-]*)", "\\fB%1\\fR"):gsub("%.%.%.", "\\&...")
    return bold(program.name .. " " .. command.name) .. " " .. rest
end

local function add_options(lines, options)
    for _, option in ipairs(options) do
        add_entry(lines, option_label(option), option.description)
    end
end

local function add_command(lines, program, command)
    lines[#lines + 1] = ".SS " .. escape(program.name .. " " .. command.name)
    lines[#lines + 1] = format_usage(program, command)
    lines[#lines + 1] = ".PP"
    lines[#lines + 1] = fill(command.description)
    for _, argument in ipairs(command.arguments) do
        add_entry(lines, italic(argument.name), argument.description)
    end
    add_options(lines, command.options)
    if command.epilog then
        lines[#lines + 1] = ".PP"
        lines[#lines + 1] = fill(command.epilog)
    end
end

local function add_synopsis(lines, program)
    lines[#lines + 1] = ".SH SYNOPSIS"
    for i, command in ipairs(program.commands) do
        lines[#lines + 1] = i > 1 and ".br" or nil
        lines[#lines + 1] = format_usage(program, command)
    end
end

local function add_examples(lines)
    lines[#lines + 1] = ".SH EXAMPLES"
    for i, example in ipairs(EXAMPLES) do
        lines[#lines + 1] = i > 1 and ".PP" or nil
        lines[#lines + 1] = fill(example[1])
        lines[#lines + 1] = ".PP\n.RS 4\n.nf"
        lines[#lines + 1] = bold(example[2])
        lines[#lines + 1] = ".fi\n.RE"
    end
end

-- No date: the page of one version is to be the same wherever it is made.
local function write_page(program)
    local lines = {
        (".TH LUABATCH 1 \"\" \"batch %s\" \"User Commands\""):format(version),
        ".SH NAME",
        escape(program.name) .. " \\- " .. escape(program.summary:gsub("^%u", string.lower)),
    }
    add_synopsis(lines, program)
    lines[#lines + 1] = ".SH DESCRIPTION"
    lines[#lines + 1] = fill(program.description)
    for _, paragraph in ipairs(INTRODUCTION) do
        lines[#lines + 1] = ".PP\n" .. fill(paragraph)
    end
    add_options(lines, program.options)
    lines[#lines + 1] = ".SH COMMANDS"
    for _, command in ipairs(program.commands) do
        add_command(lines, program, command)
    end
    add_pairs(lines, "EXIT STATUS", STATUSES)
    add_pairs(lines, "FILES", FILES)
    add_pairs(lines, "ENVIRONMENT", ENVIRONMENT)
    add_examples(lines)
    return table.concat(lines, "\n") .. "\n"
end

--- Declares the command's arguments, of which it has none.
local function declare()
end

--- Runs the command.
-- @tparam table _ args
-- @param parser of the whole command line
-- @treturn number the exit code
local function execute(_, parser)
    local is_written, exit = terminal.answer(write_page(grammar.read(parser)))
    return is_written and exits.done or exit
end

--- @export
return {
    execute = execute,
    declare = declare,
}
