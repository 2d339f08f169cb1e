-- SPDX-License-Identifier: MIT

--- The command line as data: which commands there are, with which options and arguments, and what
-- these take. The completions and the manual page are made of it, so that they say what `--help`
-- says. The only file that reads argparse's own tables.

local target_options = require "batch.target_options"

-- By what a value is called it is known how to complete it.
local FILES = { ["FILE"] = true, ["FILE|URL"] = true, ["F"] = true, ["OUT"] = true }
local WORDS = { MODE = target_options.modes }

local function read_value(name, choices)
    return {
        name = name,
        words = choices or WORDS[name],
        is_file = FILES[name] or false,
    }
end

-- What fits on a line beside the name.
local function first_clause(text)
    return (text:match("^(.-)[.:;]%s") or text:gsub("%.$", ""))
end

local function read_option(option)
    local takes_value = option._maxargs > 0
    local read = {
        spellings = option._public_aliases,
        description = option._description or "",
        is_repeatable = option._maxcount > 1,
        value = takes_value and read_value(option:_get_argname(1), option._choices) or nil,
    }
    read.summary = first_clause(read.description)
    return read
end

local function read_argument(argument)
    local read = read_value(argument._name, argument._choices)
    read.description = argument._description or ""
    read.is_repeatable = argument._maxargs > 1
    return read
end

local function map(elements, read)
    local list = {}
    for _, element in ipairs(elements) do
        if not element._hidden then
            list[#list + 1] = read(element)
        end
    end
    return list
end

--- Reads what a parser declares.
-- @param parser of argparse
-- @treturn table `name`, `summary`, `description`, `epilog`, `usage`; `options`, a list of
-- `{spellings, description, summary, is_repeatable, value}`; `arguments`, a list of values that
-- also have `description` and `is_repeatable`; `commands`, a list of such tables. A value is
-- `{name, words, is_file}`
local function read(parser)
    return {
        name = parser._name,
        summary = (parser._summary or parser._description):gsub("%.$", ""),
        description = parser._description,
        epilog = parser._epilog,
        usage = parser:get_usage():gsub("^Usage: ", ""):gsub("%s+", " "),
        options = map(parser._options, read_option),
        arguments = map(parser._arguments, read_argument),
        commands = map(parser._commands, read),
    }
end

--- @export
return {
    read = read,
}
