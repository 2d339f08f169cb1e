-- SPDX-License-Identifier: MIT

--- What a run ended with, in short: how many of each kind, the slowest targets, the errors grouped.
-- Its memory does not grow with the number of outcomes. Knows no store and no terminal.

local json = require "batch.json"
local progress = require "batch.cli.progress"

local N_SLOWEST = 5
local N_SHOWN_ERRORS = 10
-- Texts that differ in each target (an address, a number) must not fill the memory.
local MAX_GROUPS = 1000
local OTHER_ERRORS = "other errors"

local methods = {}
local metatable = { __name = "summary", __index = methods }

function metatable.__tostring(self)
    return ("summary (%d done, %d failed of %d)"):format(self.done, self.failed, self.total)
end

--- Makes the summary of a run that has no outcome yet.
-- @tparam number total targets of the run
-- @treturn summary `total`, `done`, `failed`, `fresh` (fetched by this run itself) may be read
local function new(total)
    return setmetatable({
        total = total,
        done = 0,
        failed = 0,
        fresh = 0,
        _slowest = {},
        _groups = {},
        _n_groups = 0,
    }, metatable)
end

local function add_slow(self, outcome, line)
    local seconds = (outcome.finished_at or 0) - (outcome.started_at or 0)
    local slowest = self._slowest
    local place = #slowest + 1
    while place > 1 and slowest[place - 1].seconds < seconds do
        place = place - 1
    end
    if place <= N_SLOWEST then
        table.insert(slowest, place, { seconds = seconds, line = line, url = outcome.url })
        slowest[N_SLOWEST + 1] = nil
    end
end

local function add_error(self, outcome, line)
    local text = outcome.error or "failed"
    if not self._groups[text] and self._n_groups >= MAX_GROUPS then
        text = OTHER_ERRORS
    end
    local group = self._groups[text]
    if not group then
        group = { error = text, hint = outcome.hint, line = line, url = outcome.url, count = 0 }
        self._groups[text] = group
        self._n_groups = self._n_groups + 1
    end
    group.count = group.count + 1
end

--- Counts an outcome.
-- @tparam table outcome
-- @tparam number line of the input that it answers
-- @tparam boolean is_fresh false: the store had it before this run began
function methods:add(outcome, line, is_fresh)
    if outcome.status == "failed" then
        self.failed = self.failed + 1
        add_error(self, outcome, line)
    else
        self.done = self.done + 1
    end
    if is_fresh then
        self.fresh = self.fresh + 1
        add_slow(self, outcome, line)
    end
end

--- @treturn number of targets without an outcome
function methods:pending()
    return self.total - self.done - self.failed
end

local function list_groups(self)
    local groups = {}
    for _, group in pairs(self._groups) do
        groups[#groups + 1] = group
    end
    table.sort(groups, function(one, other)
        if one.count ~= other.count then
            return one.count > other.count
        end
        return one.line < other.line
    end)
    return groups
end

--- The summary as data, for `json.encode`.
-- @tparam number seconds that the run took
-- @treturn table
function methods:report(seconds)
    return {
        targets = self.total,
        done = self.done,
        failed = self.failed,
        pending = self:pending(),
        fetched = self.fresh,
        seconds = math.floor(seconds * 1000 + 0.5) / 1000,
        slowest = json.list(self._slowest),
        errors = json.list(list_groups(self)),
    }
end

local function cut(text, width)
    if #text <= width then
        return text
    end
    -- Between characters: back over continuation bytes.
    local last = width - 3
    while last > 0 and text:find("^[\128-\191]", last + 1) do
        last = last - 1
    end
    return text:sub(1, last) .. "..."
end

local function format_duration(seconds)
    return seconds < 60 and ("%.1f s"):format(seconds) or progress.format_span(seconds)
end

local function add_counts(lines, self, seconds)
    local rate = self.fresh > 0 and seconds > 0 and
        (", " .. progress.format_rate(self.fresh / seconds)) or ""
    local n_ended = self.done + self.failed
    local share = n_ended < self.total and ("%d of "):format(n_ended) or ""
    lines[#lines + 1] = ("%s%d target%s in %s%s"):format(
        share, self.total, self.total == 1 and "" or "s", format_duration(seconds), rate)
    lines[#lines + 1] = ("  done     %9d"):format(self.done)
    lines[#lines + 1] = ("  failed   %9d"):format(self.failed)
    if self:pending() > 0 then
        lines[#lines + 1] = ("  pending  %9d"):format(self:pending())
    end
    local n_old = n_ended - self.fresh
    if n_old > 0 then
        lines[#lines + 1] = ("  %d of these were in the store already"):format(n_old)
    end
end

local function add_slowest(lines, self)
    if #self._slowest == 0 then
        return
    end
    lines[#lines + 1] = "slowest"
    for _, slow in ipairs(self._slowest) do
        lines[#lines + 1] = ("  %8.2f s  line %d: %s"):format(slow.seconds, slow.line, slow.url)
    end
end

local function add_errors(lines, self)
    local groups = list_groups(self)
    if #groups == 0 then
        return
    end
    lines[#lines + 1] = "errors"
    for i = 1, math.min(#groups, N_SHOWN_ERRORS) do
        local group = groups[i]
        local lead = group.count > 1 and "first in line" or "line"
        lines[#lines + 1] = ("  %8d x  %s"):format(group.count, group.error)
        lines[#lines + 1] = ("              %s %d: %s"):format(lead, group.line, group.url)
        if group.hint then
            lines[#lines + 1] = ("              hint: %s"):format(group.hint)
        end
    end
    if #groups > N_SHOWN_ERRORS then
        lines[#lines + 1] = ("  and %d further kinds"):format(#groups - N_SHOWN_ERRORS)
    end
end

--- The summary as a short table for people.
-- @tparam number seconds that the run took
-- @tparam[opt] number width columns that a line is cut to
-- @treturn string lines, each with its end
function methods:text(seconds, width)
    local lines = {}
    add_counts(lines, self, seconds)
    add_slowest(lines, self)
    add_errors(lines, self)
    for i, line in ipairs(lines) do
        line = progress.printable(line):gsub("[\t\n]", " ")
        lines[i] = width and cut(line, width) or line
    end
    return table.concat(lines, "\n") .. "\n"
end

--- @export
return {
    new = new,
}
