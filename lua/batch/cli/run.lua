-- SPDX-License-Identifier: MIT

--- `luabatch run`: reads a list, deals it into jobs, submits these to a runner in this process and
-- follows the store until each target has its outcome. Every promise of an interrupted run rests on
-- the store: the same list makes the same submits, and what is printed is what the store holds.

local batch = require "batch"
local core = require "batch.core"
local deal = require "batch.cli.deal"
local defaults = require "batch.cli.defaults"
local exits = require "batch.cli.exits"
local follow = require "batch.cli.follow"
local json = require "batch.json"
local list = require "batch.cli.list"
local output = require "batch.cli.output"
local settings = require "batch.cli.settings"
local summary = require "batch.cli.summary"
local terminal = require "batch.cli.terminal"

local unpack = unpack or table.unpack

local CLOSE_SECONDS = 10
-- Of log lines with the same message, so many are shown.
local MAX_ALIKE = 5

local EXITS = {
    invalid = exits.usage,
    too_many_targets = exits.usage,
    broken_pipe = exits.broken_pipe,
    interrupted = exits.interrupted,
    incomplete = exits.failed,
}

--- Declares the command's arguments.
-- @param command of argparse
local function declare(command)
    command:argument("FILE|URL", "A file with one URL a line or JSON Lines of targets, a URL, or "
        .. "- for standard input; several are read as one list.")
        :target("list"):args("+")
    command:option("-o --output", "Write the outcomes to a file instead of standard output.")
        :argname("OUT")
    command:option("-j --workers", "Fetch so many targets at once, up to 256. Default: 8.")
        :argname("N"):convert(function(text) return tonumber(text) or text end)
    command:option("--store", "The file that keeps the run. Default: luabatch.db beside OUT, or in "
        .. "the current folder.")
        :argname("F")
    command:option("-c --config", "A configuration file; its sections [batch] and [fetch] count.")
        :argname("FILE")
    command:option("--allow", "Fetch from this network, such as 127.0.0.0/8, too. Default: only "
        .. "public addresses are fetched. May be repeated.")
        :argname("CIDR"):count("*"):action("append")
    defaults.declare(command)
    command:flag("--json", "Print the summary as JSON on standard error, and no progress.")
end

-- Returns the dealt list, and a key that names it: another list never shares a job with this one.
local function read_list(args, options, check)
    local hand, key = deal.new(), "luabatch"
    local is_read, message = list.each(args.list, function(text, number)
        local target, why = list.parse(text, options)
        local is_fine = target
        if target then
            is_fine, why = check(target)
        end
        if not is_fine then
            return nil, why
        end
        key, why = batch.idem_key(key, { target })
        if not key then
            return nil, (why:gsub("^target 0: ", ""))
        end
        return hand:add(target, number)
    end)
    if is_read and hand:total() == 0 then
        return nil, "no targets in " .. table.concat(args.list, ", "):gsub("^%-$", "stdin")
    end
    return is_read and hand, is_read and key or message
end

-- Shows that the output can be written before any work is done, without emptying it: it is emptied
-- when the store is open. The handle stays open till then, for a pipe's reader would see an end.
local function probe_output(args)
    if not args.output then
        return true
    end
    for _, path in ipairs { settings.store_path(args), unpack(args.list) } do
        if path:gsub("^%./", "") == args.output:gsub("^%./", "") then
            return nil, ("%s would be overwritten by the output"):format(path)
        end
    end
    local file, message = io.open(args.output, "ab")
    return file, file == nil and "cannot write " .. message or nil
end

local function submit(run)
    for job = 1, run.hand:jobs() do
        if core.caught() then
            return nil, "interrupted", "interrupted"
        end
        -- The job's number is in the caller, for lists like "the same URL a hundred times".
        local caller = ("luabatch/%s/%d"):format(run.key:sub(1, 16), job)
        local id, message, code = run.runner:submit(caller, run.hand:targets(job))
        if not id then
            return nil, message, code
        end
        run.jobs[id] = job
        run.hand:release(job)
    end
    return true
end

-- What a log line is about; a target by its line, for users know no jobs.
local function list_places(run, fields)
    local job = run.jobs[fields.job]
    if job and fields.idx then
        return { ("line %d"):format(run.hand:line(job, fields.idx)) }
    end
    local places = {}
    for name, value in pairs(fields) do
        if name ~= "detail" then
            places[#places + 1] = ("%s=%s"):format(name, tostring(value))
        end
    end
    table.sort(places)
    return places
end

-- A warning or error of the core as a sentence: what, where, why.
local function sentence(run, message, fields)
    local places = list_places(run, fields)
    local where = #places > 0 and (" (%s)"):format(table.concat(places, ", ")) or ""
    return message .. where .. (fields.detail and ": " .. fields.detail or "")
end

-- A fetch module with a defect raises in every target: the first few say all.
local function log_to(run)
    local counts = {}
    return function(level, message, fields)
        if level ~= "warn" and level ~= "error" then
            return
        end
        local count = (counts[message] or 0) + 1
        counts[message] = count
        if count <= MAX_ALIKE then
            run.bar:say(level .. ": " .. sentence(run, message, fields or {}))
        elseif count == MAX_ALIKE + 1 then
            run.bar:say(("%s: %s: further ones are not shown"):format(level, message))
        end
    end
end

-- Submits, then prints; the store stays as it is whatever happens here.
local function work(run, probe)
    core.catch_signals()
    local is_submitted, message, code = submit(run)
    if not is_submitted then
        return nil, message, code
    end
    run.output, message = output.open(run.out)
    if io.type(probe) == "file" then
        probe:close()
    end
    if not run.output then
        return nil, message, "output"
    end
    local is_complete
    is_complete, message, code = follow.outcomes(run)
    local is_closed, why, close_code = run.output:close()
    if is_complete and not is_closed then
        return nil, why, close_code
    end
    return is_complete, message, code
end

local function report(run, args, is_complete)
    local seconds = core.monotime() - run.began_at
    local facts = run.summary
    if args.json then
        local fields = facts:report(seconds)
        fields.store = run.store
        io.stderr:write(json.encode(fields), "\n")
        return
    end
    run.bar:clear()
    local width = core.is_terminal(2) and core.terminal_width() or nil
    io.stderr:write(facts:text(seconds, width))
    if is_complete and facts.fresh == 0 then
        run.bar:say(("nothing was fetched: %s had every outcome; another --store fetches again")
            :format(run.store))
    elseif facts:pending() > 0 then
        run.bar:say(("%d of %d outcomes are in %s; the same command goes on from there"):format(
            facts.total - facts:pending(), facts.total, run.store))
    end
end

local function finish(run, args, is_complete, message, code)
    run.runner:poll() -- a short run may be over before its log was looked at
    if code == "interrupted" then
        run.bar:say("stopping what is in flight; a second Ctrl-C stops at once")
    elseif message then
        run.bar:say(message)
    end
    run.runner:close(CLOSE_SECONDS)
    local exit = run.summary.failed > 0 and exits.failed or exits.done
    if not is_complete then
        exit = EXITS[code] or exits.store
    end
    if exit ~= exits.usage then
        report(run, args, is_complete)
    end
    return exit
end

--- Runs the command.
-- @tparam table args as argparse returns them
-- @treturn number the exit code
local function execute(args)
    local bar = terminal.make_progress(args.json)
    local function refuse(message, code)
        bar:say(message)
        return code or exits.usage
    end
    if args.output == "-" then
        args.output = nil
    end
    local fields, check, warnings = settings.runner_fields(args)
    if not fields then
        return refuse(check)
    end
    for _, warning in ipairs(warnings) do
        bar:say(warning)
    end
    local options = defaults.read(args)
    local hand, key = read_list(args, options, check)
    if not hand then
        return refuse(key)
    end
    local probe, unwritable = probe_output(args)
    if not probe then
        return refuse(unwritable)
    end
    local run = {
        hand = hand, key = key, out = args.output,
        store = settings.store_path(args), bar = bar, summary = summary.new(hand:total()),
        jobs = {}, started_at = core.now(), began_at = core.monotime(),
    }
    fields.store, fields.log = run.store, log_to(run)
    local message, code
    run.runner, message, code = batch.new(fields)
    if not run.runner then
        return refuse(message, EXITS[code] or exits.store)
    end
    return finish(run, args, work(run, probe))
end

--- @export
return {
    execute = execute,
    declare = declare,
}
