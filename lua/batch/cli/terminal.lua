-- SPDX-License-Identifier: MIT

--- How the command line speaks: answers to standard output, everything else to standard error, with
-- colours and a progress bar where somebody looks. Knows the environment, but no command.

local core = require "batch.core"
local exits = require "batch.cli.exits"
local progress = require "batch.cli.progress"

local BROKEN_PIPE = 32 -- EPIPE; the same on every system that has it

-- An empty variable is as if unset: for locales by POSIX, for NO_COLOR by its own rule.
local function environment(name)
    local value = os.getenv(name)
    return value ~= "" and value or nil
end

-- Whether colours, and lines that are drawn over, are fit for a descriptor.
local function is_lively(fd)
    return core.is_terminal(fd) and environment("TERM") ~= "dumb"
end

--- Tells whether a stream may be coloured.
-- @tparam number fd 1 or 2
-- @treturn boolean
local function has_colour(fd)
    return is_lively(fd) and not environment("NO_COLOR")
end

--- Makes the progress display of a command, on standard error.
-- @tparam boolean is_silent for machines: no progress, only what `say` is given
-- @treturn progress
local function make_progress(is_silent)
    local is_terminal = is_lively(2)
    local locale = environment("LC_ALL") or environment("LC_CTYPE") or environment("LANG") or ""
    return progress.new {
        style = is_silent and "none" or is_terminal and "bar" or "lines",
        width = core.terminal_width,
        looks = {
            has_colour = has_colour(2),
            has_blocks = locale:upper():find("UTF%-?8") ~= nil,
        },
    }
end

--- Writes a sentence to standard error.
-- @tparam string text
local function say(text)
    io.stderr:write("luabatch: ", progress.printable(text), "\n")
end

--- Writes an answer to standard output, at once.
-- @tparam string text with the ends of its lines
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] number the exit code for a standard output that cannot be written; if it is not just
-- that its reader has gone away, that was said
local function answer(text)
    local is_written, message, number = io.stdout:write(text)
    if is_written then
        is_written, message, number = io.stdout:flush()
    end
    if is_written then
        return true
    elseif number == BROKEN_PIPE then
        return nil, exits.broken_pipe
    end
    say("cannot write standard output: " .. message)
    return nil, exits.store
end

--- @export
return {
    make_progress = make_progress,
    has_colour = has_colour,
    environment = environment,
    say = say,
    answer = answer,
}
