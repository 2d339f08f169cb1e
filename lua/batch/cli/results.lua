-- SPDX-License-Identifier: MIT

--- `luabatch results`: the outcomes of a job as JSON Lines, as they are stored, whatever their size
-- and number. Writes whole lines only, so that after a broken answer it can ask for the next one.

local exits = require "batch.cli.exits"
local output = require "batch.cli.output"
local persist = require "batch.cli.persist"
local session = require "batch.cli.session"
local settings = require "batch.cli.settings"
local terminal = require "batch.cli.terminal"
local texts = require "batch.cli.texts"

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    command:argument("ID", "The job."):target("id")
    session.declare_place(command)
    command:option("--from", "Begin with this idx; the first target has 0. Default: 0.")
        :argname("IDX"):convert(texts.count_of("--from"))
    command:flag("--follow", "Go on until the job has ended.")
    command:option("-o --output", "Write the outcomes to a file instead of standard output.")
        :argname("OUT")
    command:flag("--json", "Changes nothing: outcomes are JSON Lines in any case.")
end

local function write_fault(message, code)
    return {
        message = message, is_final = true,
        exit = code == "broken_pipe" and exits.broken_pipe or exits.store,
    }
end

-- Writes the lines that a piece of the stream completes.
local function write_piece(state, piece)
    local stop = piece:match("^.*()\n")
    if not stop then
        state.held[#state.held + 1] = piece
        return true
    end
    state.held[#state.held + 1] = piece:sub(1, stop)
    local text = table.concat(state.held)
    state.held = { piece:sub(stop + 1) }
    state.next = state.next + select(2, text:gsub("\n", ""))
    local is_written, message, code = state.output:write_text(text)
    if is_written then
        is_written, message, code = state.output:flush()
    end
    return is_written, message, code
end

local function has_tail(state)
    return table.concat(state.held) ~= ""
end

-- Opened once somebody has answered, for opening empties a file.
local function open_output(state)
    if state.output then
        return true
    end
    local message
    state.output, message = output.open(state.out)
    return state.output, message, "output"
end

local function read_lines(at, id, state)
    local response, fault = at:open {
        method = "GET", path = at:path(id, "/results"),
        query = ("from=%d%s"):format(state.next, state.is_following and "&follow=true" or ""),
    }
    if not response then
        return nil, fault
    end
    local is_fine, message, code = open_output(state)
    local has_moved, chunk, why = false
    state.held = {}
    while is_fine do
        chunk, why = response.next_chunk()
        if not chunk then
            break
        end
        has_moved = true
        is_fine, message, code = write_piece(state, chunk)
    end
    response.close()
    if not is_fine then
        return nil, write_fault(message, code)
    elseif why or has_tail(state) then
        return nil, { message = why or "the answer broke off", exit = exits.store }, has_moved
    end
    return true
end

local function print_results(at, args)
    local state = {
        next = args.from or 0, held = {}, out = args.output ~= "-" and args.output or nil,
        is_following = args.follow,
    }
    local is_complete, fault = persist.persist(at, function()
        return read_lines(at, args.id, state)
    end)
    if state.output then
        local is_closed, message, code = state.output:close()
        if is_complete and not is_closed then
            is_complete, fault = nil, write_fault(message, code)
        end
    end
    local job
    if is_complete then
        job, fault = at:job(args.id)
    end
    return job and session.exit_of(job) or at:report(fault)
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @treturn number the exit code: what the job's status means
local function execute(args)
    local store = settings.store_path { store = args.store }
    if args.output and not args.server
        and args.output:gsub("^%./", "") == store:gsub("^%./", "") then
        terminal.say(("%s would be overwritten by the output"):format(store))
        return exits.usage
    end
    return session.run(args, function(at) return print_results(at, args) end)
end

--- @export
return {
    execute = execute,
    declare = declare,
}
