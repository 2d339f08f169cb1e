-- SPDX-License-Identifier: MIT

--- `luabatch cancel`: ends a job early. The target in flight still gets its outcome.

local exits = require "batch.cli.exits"
local json = require "batch.json"
local session = require "batch.cli.session"
local terminal = require "batch.cli.terminal"

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    command:argument("ID", "The job."):target("id")
    session.declare_place(command)
    command:flag("--json", "Answer in JSON.")
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
local function execute(args)
    return session.run(args, function(at)
        local answer, fault = at:call { method = "DELETE", path = at:path(args.id) }
        if not answer then
            return at:report(fault)
        end
        local is_written, exit = terminal.answer(
            (args.json and json.encode(answer) or "cancelled") .. "\n")
        return is_written and exits.done or exit
    end)
end

--- @export
return {
    execute = execute,
    declare = declare,
}
