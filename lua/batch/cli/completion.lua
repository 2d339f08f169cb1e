-- SPDX-License-Identifier: MIT

--- `luabatch completion`: what a shell needs to complete luabatch's commands, options and values,
-- made of the command line's grammar. argparse's own scripts take a command's name for the command
-- wherever it stands, break file names at blanks, and offer files for every value.

local exits = require "batch.cli.exits"
local grammar = require "batch.cli.grammar"
local terminal = require "batch.cli.terminal"

local function quote(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function all_spellings(options)
    local all = {}
    for _, option in ipairs(options) do
        for _, spelling in ipairs(option.spellings) do
            all[#all + 1] = spelling
        end
    end
    return all
end

local function names_of(commands)
    local names = {}
    for i, command in ipairs(commands) do
        names[i] = command.name
    end
    return names
end

-- The option's values as words of compgen; nothing for values that nobody can guess.
local function bash_candidates(value)
    if value.words then
        return ("words=%s"):format(quote(table.concat(value.words, " ")))
    end
    return value.is_file and "files=yes" or ":"
end

local function bash_cases(command)
    local values, lines = {}, {}
    for _, option in ipairs(command.options) do
        if option.value then
            local patterns = {}
            for i, spelling in ipairs(option.spellings) do
                patterns[i] = command.name .. ":" .. spelling
            end
            values[#values + 1] = ("        %s) %s ;;"):format(
                table.concat(patterns, " | "), bash_candidates(option.value))
        end
    end
    lines[1] = ("        %s:-*) words=%s ;;"):format(
        command.name, quote(table.concat(all_spellings(command.options), " ")))
    local argument = command.arguments[1]
    lines[2] = ("        %s:*) %s ;;"):format(
        command.name, argument and bash_candidates(argument) or ":")
    return values, lines
end

local BASH = [=[
# bash completion for luabatch

_luabatch() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command= words= files= i
    # Bash takes --option=value for three words.
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]} && break; }
    done
    case $command:$previous in
%s
        *) case $command:$current in
        :-*) words=%s ;;
        :*) words=%s ;;
%s
        esac ;;
    esac
    COMPREPLY=()
    if [[ $files ]]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    elif [[ $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    fi
}

complete -F _luabatch luabatch
]=]

local function bash(program)
    local values, lines = {}, {}
    for _, command in ipairs(program.commands) do
        local of_values, of_words = bash_cases(command)
        values[#values + 1] = #of_values > 0 and table.concat(of_values, "\n") or nil
        lines[#lines + 1] = table.concat(of_words, "\n")
    end
    return BASH:format(table.concat(values, "\n"),
        quote(table.concat(all_spellings(program.options), " ")),
        quote(table.concat(names_of(program.commands), " ")), table.concat(lines, "\n"))
end

-- "name:action" of zsh's _arguments.
local function zsh_value(value)
    local action = value.is_file and "_files" or " "
    if value.words then
        action = "(" .. table.concat(value.words, " ") .. ")"
    end
    return ":" .. value.name .. ":" .. action
end

local function zsh_option(option)
    local summary = option.summary:gsub("[%[%]\\]", "\\%0")
    local rest = "[" .. summary .. "]" .. (option.value and zsh_value(option.value) or "")
    local others = option.is_repeatable and "*"
        or "(" .. table.concat(option.spellings, " ") .. ")"
    local specs = {}
    for i, spelling in ipairs(option.spellings) do
        local joint = option.value and (#spelling > 2 and "=" or "+") or ""
        specs[i] = quote(others .. spelling .. joint .. rest)
    end
    return table.concat(specs, " ")
end

local function zsh_arguments(command)
    local specs = {}
    for _, option in ipairs(command.options) do
        specs[#specs + 1] = zsh_option(option)
    end
    for i, argument in ipairs(command.arguments) do
        specs[#specs + 1] = quote((argument.is_repeatable and "*" or i) .. zsh_value(argument))
    end
    return specs
end

local ZSH = [=[
#compdef luabatch
# zsh completion for luabatch

_luabatch() {
    local curcontext="$curcontext" state line
    local -a commands
    local -A opt_args
    commands=(
%s
    )
    _arguments -C %s \
        '1: :->command' '*:: :->arguments' && return
    if [[ $state == command ]]; then
        _describe -t commands command commands
        return
    fi
    case $line[1] in
%s
    esac
}

if [[ $funcstack[1] == _luabatch ]]; then
    _luabatch "$@"
else
    compdef _luabatch luabatch
fi
]=]

local function zsh(program)
    local summaries, cases, options = {}, {}, {}
    for i, command in ipairs(program.commands) do
        summaries[i] = "        " .. quote(command.name .. ":" .. command.summary)
        cases[i] = ("        %s) _arguments -s \\\n            %s ;;"):format(
            command.name, table.concat(zsh_arguments(command), " \\\n            "))
    end
    for i, option in ipairs(program.options) do
        options[i] = zsh_option(option)
    end
    return ZSH:format(table.concat(summaries, "\n"), table.concat(options, " "),
        table.concat(cases, "\n"))
end

-- fish escapes within single quotes with a backslash.
local function fish_quote(text)
    return "'" .. text:gsub("[\\']", "\\%0") .. "'"
end

local function fish_value(value)
    if value.words then
        return " -x -a " .. fish_quote(table.concat(value.words, " "))
    end
    return value.is_file and " -r -F" or " -x"
end

-- How a line begins that counts after a command's name, or before any.
local function fish_begin(command)
    local condition = command and fish_quote("__luabatch_is " .. command) or "__luabatch_is"
    return "complete -c luabatch -n " .. condition
end

local function fish_option(command, option)
    local words = { fish_begin(command) }
    for _, spelling in ipairs(option.spellings) do
        words[#words + 1] = #spelling > 2 and "-l " .. spelling:sub(3) or "-s " .. spelling:sub(2)
    end
    return table.concat(words, " ") .. (option.value and fish_value(option.value) or "")
        .. " -d " .. fish_quote(option.summary)
end

local function fish_argument(command, argument)
    local values = argument.words and " -a " .. fish_quote(table.concat(argument.words, " "))
        or argument.is_file and " -F"
    return values and fish_begin(command) .. values or nil
end

local FISH = [=[
# fish completion for luabatch

function __luabatch_is -a command
    for word in (commandline -opc)[2..-1]
        if not string match -q -- '-*' $word
            test "$word" = "$command"
            return
        end
    end
    test -z "$command"
end

complete -c luabatch -f
%s
]=]

local function fish(program)
    local lines = {}
    for _, option in ipairs(program.options) do
        lines[#lines + 1] = fish_option(nil, option)
    end
    for _, command in ipairs(program.commands) do
        lines[#lines + 1] = ("%s -a %s -d %s"):format(
            fish_begin(), command.name, fish_quote(command.summary))
    end
    for _, command in ipairs(program.commands) do
        for _, option in ipairs(command.options) do
            lines[#lines + 1] = fish_option(command.name, option)
        end
        for _, argument in ipairs(command.arguments) do
            lines[#lines + 1] = fish_argument(command.name, argument)
        end
    end
    return FISH:format(table.concat(lines, "\n"))
end

local SCRIPTS = { bash = bash, zsh = zsh, fish = fish }

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    command:argument("SHELL", "bash, zsh or fish."):target("shell")
        :choices { "bash", "zsh", "fish" }
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @param parser of the whole command line
-- @treturn number the exit code
local function execute(args, parser)
    local is_written, exit = terminal.answer(SCRIPTS[args.shell](grammar.read(parser)))
    return is_written and exits.done or exit
end

--- @export
return {
    execute = execute,
    declare = declare,
}
