-- SPDX-License-Identifier: MIT

--- Deals the lines of a list into jobs, in turn, like cards. A job is serial, so their number
-- bounds how many workers are busy; it depends on the list alone, so that a run started again with
-- other workers deals the same jobs and goes on with them. Lines are opaque texts here; a long
-- list rests in temporary files, one for each job, so that a million lines need no memory of their
-- own.

-- Keeps 64 workers busy, and is few enough to hold a file open for each job.
local MAX_JOBS = 64
-- Of one job's lines held in memory before they go to its file.
local MAX_HELD_BYTES = 32 * 1024

local methods = {}
local metatable = { __name = "deal", __index = methods }

function metatable.__tostring(self)
    return ("deal (%d lines, %d jobs)"):format(self._total, self:jobs())
end

local function spill(pile)
    local message
    if not pile.file then
        pile.file, message = io.tmpfile()
    end
    local is_written = pile.file
    if is_written then
        is_written, message = pile.file:write(table.concat(pile.held, "\n"), "\n")
    end
    if not is_written then
        return nil, "cannot keep the list in a temporary file: " .. message
    end
    pile.held, pile.n_held_bytes = {}, 0
    return true
end

--- Makes a deal without lines.
-- @treturn deal
local function new()
    return setmetatable({
        _total = 0,
        _piles = {},
        -- Where the distance between a line's place among the targets and its number in the input
        -- changes: comments and blank lines have numbers, but no place.
        _starts = {},
        _shifts = {},
    }, metatable)
end

--- Adds the next line.
-- @tparam string text a line without its end
-- @tparam number number its number in the input, from 1, ascending
-- @treturn[1] true
-- @treturn[2] nil
-- @treturn[2] string that the temporary file cannot be written, and why
function methods:add(text, number)
    local place = self._total + 1
    self._total = place
    if number - place ~= self._shifts[#self._shifts] then
        self._starts[#self._starts + 1] = place
        self._shifts[#self._shifts + 1] = number - place
    end
    local job = (place - 1) % MAX_JOBS + 1
    local pile = self._piles[job]
    if not pile then
        pile = { held = {}, n_held_bytes = 0 }
        self._piles[job] = pile
    end
    pile.held[#pile.held + 1] = text
    pile.n_held_bytes = pile.n_held_bytes + #text
    if pile.n_held_bytes > MAX_HELD_BYTES then
        return spill(pile)
    end
    return true
end

--- @treturn number of lines
function methods:total()
    return self._total
end

--- @treturn number of jobs: as many as lines, up to 64
function methods:jobs()
    return #self._piles
end

--- The lines of a job, in order.
-- @tparam number job from 1
-- @treturn[1] table list of texts, made anew at each call
-- @treturn[2] nil
-- @treturn[2] string that the temporary file cannot be read, and why
function methods:texts(job)
    local pile = self._piles[job]
    local texts = {}
    if pile.file then
        local is_back, message = pile.file:seek("set")
        while is_back do
            local text
            text, message = pile.file:read("*l")
            if not text then
                break
            end
            texts[#texts + 1] = text
        end
        -- A buffered write that failed late shows as a missing line.
        if not message and (#texts + #pile.held - 1) * #self._piles + job
            ~= self:_last_place(job) then
            message = "it is incomplete"
        end
        if message then
            return nil, "cannot read the list back: " .. message
        end
        pile.file:seek("end")
    end
    for _, text in ipairs(pile.held) do
        texts[#texts + 1] = text
    end
    return texts
end

function methods:_last_place(job)
    local n_jobs = #self._piles
    return self._total - (self._total - job) % n_jobs
end

--- Tells where a target came from.
-- @tparam number job from 1
-- @tparam number idx of the target in its job, from 0
-- @treturn number of the line in the input, from 1
function methods:line(job, idx)
    local place = idx * #self._piles + job
    local low, high = 1, #self._starts
    while low < high do
        local middle = math.floor((low + high + 1) / 2)
        if self._starts[middle] <= place then
            low = middle
        else
            high = middle - 1
        end
    end
    return place + self._shifts[low]
end

--- Lets the lines go. What `total`, `jobs` and `line` say stays true.
function methods:close()
    for _, pile in ipairs(self._piles) do
        if pile.file then
            pile.file:close()
        end
        pile.file, pile.held = nil, {}
    end
end

--- @export
return {
    new = new,
}
