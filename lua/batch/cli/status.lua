-- SPDX-License-Identifier: MIT

--- `luabatch status`: what a job is doing, as a short table, with its failed targets grouped by
-- their errors.

local json = require "batch.json"
local session = require "batch.cli.session"
local summary = require "batch.cli.summary"
local terminal = require "batch.cli.terminal"
local texts = require "batch.cli.texts"
local units = require "batch.units"

local PAGE = 1000
local N_SHOWN_ERRORS = 10
local RED, GREEN, PLAIN = "\27[31m", "\27[32m", "\27[0m"
local COLOURS = { done = GREEN, partial = RED, failed = RED, cancelled = RED }
local TIMES = { "created", "started", "finished", "expires" }

local clean, present = texts.clean, texts.present

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    command:argument("ID", "The job."):target("id")
    session.declare_place(command)
    command:flag("--json", "Print the job as JSON.")
end

local function format_progress(job)
    local text = ("%d of %d"):format(job.targets_done, job.targets_total)
    return job.targets_failed > 0 and ("%s, %d failed"):format(text, job.targets_failed) or text
end

local function describe(job, has_colour)
    local lines = {}
    local function add(name, value)
        if value then
            lines[#lines + 1] = ("%-10s %s"):format(name, value)
        end
    end
    local status = clean(job.status)
    local colour = has_colour and COLOURS[status]
    add("id", clean(job.id))
    add("status", colour and colour .. status .. PLAIN or status)
    add("error", present(job.error) and clean(job.error))
    add("targets", format_progress(job))
    add("caller", present(job.caller) and clean(job.caller))
    add("class", present(job.class) and clean(job.class))
    add("results", units.format_size(job.bytes))
    for _, name in ipairs(TIMES) do
        local text = present(job[name .. "_at"])
        add(name, text and texts.format_time(text) .. " UTC")
    end
    return lines
end

-- Reads failed targets until all that the job counted are known. Returns their groups.
local function group_errors(at, id, job)
    local facts, from = summary.new(job.targets_total), 0
    while facts.failed < job.targets_failed do
        local page, fault = at:call {
            method = "GET", path = at:path(id),
            query = ("results=false&from=%d&limit=%d"):format(from, PAGE),
        }
        if not page then
            return nil, fault
        end
        for _, target in ipairs(type(page.targets) == "table" and page.targets or {}) do
            if target.status == "failed" then
                target.hint = present(target.hint)
                facts:add(target, target.idx, false)
            end
        end
        if type(page.next) ~= "number" or page.next <= from then
            break
        end
        from = page.next
    end
    return facts:report(0).errors
end

local function add_errors(lines, groups)
    lines[#lines + 1] = "failed"
    for i = 1, math.min(#groups, N_SHOWN_ERRORS) do
        local group = groups[i]
        lines[#lines + 1] = ("  %6d x  %s"):format(group.count, clean(group.error))
        lines[#lines + 1] = ("            %sidx %d: %s"):format(
            group.count > 1 and "first at " or "", group.line, clean(group.url))
        if group.hint then
            lines[#lines + 1] = "            hint: " .. clean(group.hint)
        end
    end
    if #groups > N_SHOWN_ERRORS then
        lines[#lines + 1] = ("  and %d further kinds"):format(#groups - N_SHOWN_ERRORS)
    end
end

local function answer(text, job)
    local is_written, exit = terminal.answer(text .. "\n")
    return is_written and session.exit_of(job) or exit
end

local function show(at, args)
    local job, fault = at:job(args.id)
    if not job then
        return at:report(fault)
    elseif args.json then
        return answer(json.encode(job), job)
    end
    local lines = describe(job, terminal.has_colour(1))
    if job.targets_failed > 0 then
        local groups
        groups, fault = group_errors(at, args.id, job)
        if not groups then
            return at:report(fault)
        end
        add_errors(lines, groups)
    end
    return answer(table.concat(lines, "\n"), job)
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @treturn number the exit code: what the job's status means
local function execute(args)
    return session.run(args, function(at) return show(at, args) end)
end

--- @export
return {
    execute = execute,
    declare = declare,

}
