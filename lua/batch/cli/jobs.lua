-- SPDX-License-Identifier: MIT

--- `luabatch list`: the jobs that there are, newest first, as columns or as JSON Lines.

local exits = require "batch.cli.exits"
local json = require "batch.json"
local session = require "batch.cli.session"
local terminal = require "batch.cli.terminal"
local texts = require "batch.cli.texts"
local units = require "batch.units"

local PAGE = 1000
local LIMIT = 100
local STATUSES = { "queued", "running", "done", "partial", "failed", "cancelled" }

-- How a job is shown: a title and its cell; numbers stand on the right.
local COLUMNS = {
    { title = "ID", cell = function(job) return texts.clean(job.id) end },
    { title = "STATUS", cell = function(job) return texts.clean(job.status) end },
    { title = "TARGETS", is_number = true, cell = function(job)
        return ("%d/%d"):format(job.targets_done, job.targets_total)
    end },
    { title = "FAILED", is_number = true, cell = function(job)
        return ("%d"):format(job.targets_failed)
    end },
    { title = "RESULTS", is_number = true, cell = function(job)
        return units.format_size(job.bytes)
    end },
    { title = "CREATED (UTC)", cell = function(job) return texts.format_time(job.created_at) end },
    { title = "CALLER", cell = function(job)
        return texts.present(job.caller) and texts.clean(job.caller) or ""
    end },
}

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    session.declare_place(command)
    command:option("--status", "Only jobs of this status: " .. table.concat(STATUSES, ", ") .. ".")
        :argname("STATUS"):choices(STATUSES)
    command:option("--limit", ("At most so many jobs. Default: %d."):format(LIMIT))
        :argname("N"):convert(texts.count_of("--limit"))
    command:option("--caller", "With a store: only this caller's jobs.")
        :argname("C")
    command:flag("--json", "Print JSON Lines.")
end

local function make_query(args, limit, before)
    local query = { ("limit=%d"):format(limit) }
    if args.status then
        query[#query + 1] = "status=" .. args.status
    end
    if before then
        query[#query + 1] = "before=" .. before
    end
    return table.concat(query, "&")
end

-- Calls visit for each job, of as many pages as it takes.
local function each(at, args, visit)
    local n_left, before = args.limit or LIMIT, nil
    while n_left > 0 do
        local page, fault = at:call {
            method = "GET", path = "/v1/batches",
            query = make_query(args, math.min(n_left, PAGE), before),
        }
        if not page then
            return nil, fault
        end
        if type(page.jobs) ~= "table" then
            return nil, at:fault_without "jobs"
        end
        for _, job in ipairs(page.jobs) do
            if not session.is_job(job) then
                return nil, at:fault_without "jobs"
            end
            visit(job)
        end
        n_left = n_left - #page.jobs
        before = texts.present(page.next)
        if not before or #page.jobs == 0 then
            break
        end
    end
    return true
end

local function align(rows)
    local widths, lines = {}, {}
    for _, row in ipairs(rows) do
        for i, cell in ipairs(row) do
            widths[i] = math.max(widths[i] or 0, #cell)
        end
    end
    for n, row in ipairs(rows) do
        local cells = {}
        for i, cell in ipairs(row) do
            local gap = (" "):rep(widths[i] - #cell)
            cells[i] = COLUMNS[i].is_number and gap .. cell or cell .. gap
        end
        lines[n] = table.concat(cells, "  "):gsub(" +$", "") .. "\n"
    end
    return table.concat(lines)
end

local function make_row(job)
    local row = {}
    for i, column in ipairs(COLUMNS) do
        row[i] = job and column.cell(job) or column.title
    end
    return row
end

local function print_jobs(at, args)
    local rows = {}
    local is_read, fault = each(at, args, function(job)
        rows[#rows + 1] = args.json and json.encode(job) .. "\n" or make_row(job)
    end)
    if not is_read then
        return at:report(fault)
    elseif #rows == 0 then
        at.bar:say((args.status or args.caller) and "there are no such jobs" or "there are no jobs")
        return exits.done
    end
    if not args.json then
        table.insert(rows, 1, make_row())
    end
    local is_written, exit = terminal.answer(args.json and table.concat(rows) or align(rows))
    return is_written and exits.done or exit
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
local function execute(args)
    return session.run(args, function(at) return print_jobs(at, args) end)
end

--- @export
return {
    execute = execute,
    declare = declare,
}
