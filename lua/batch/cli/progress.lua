-- SPDX-License-Identifier: MIT

--- How far a run is: a bar that redraws itself in place on a terminal, a plain line now and then
-- elsewhere. It owns the last line of the terminal, so whoever else writes there says so first.
-- Knows counts only; the time and the terminal's width are given to it.

local DRAW_SECONDS = 0.1 -- faster than that nobody reads
local LINE_SECONDS = 5
local WINDOW_SECONDS = 20
local WINDOW_OUTCOMES = 5 -- fewer in the window: the rate is that of the whole run

local GAP = "  "
local MIN_BAR_CELLS, MAX_BAR_CELLS = 10, 40
local RED, GREEN, PLAIN = "\27[31m", "\27[32m", "\27[0m"
local ERASE_LINE = "\r\27[K"

local ASCII_CELLS = { full = "#", empty = "-", parts = {} }
local BLOCK_CELLS = {
    full = "\226\150\136",
    empty = "\226\150\145",
    parts = {
        "\226\150\143", "\226\150\142", "\226\150\141", "\226\150\140",
        "\226\150\139", "\226\150\138", "\226\150\137",
    },
}

local function format_span(seconds)
    seconds = math.floor(seconds + 0.5)
    local minutes = math.floor(seconds / 60)
    local hours = math.floor(minutes / 60)
    if hours >= 100 then
        return ("%dd %dh"):format(math.floor(hours / 24), hours % 24)
    elseif hours > 0 then
        return ("%d:%02d:%02d"):format(hours, minutes % 60, seconds % 60)
    end
    return ("%d:%02d"):format(minutes, seconds % 60)
end

local function format_rate(per_second)
    if per_second >= 100 then
        return ("%.0f/s"):format(per_second)
    elseif per_second >= 1 then
        return ("%.1f/s"):format(per_second)
    end
    return ("%.1f/min"):format(per_second * 60)
end

-- Ranked by what a narrow terminal can do without: the highest goes first.
local function list_parts(counts, rate)
    local n_ended = counts.done + counts.failed
    local share = counts.total > 0 and n_ended / counts.total or 1
    local parts = {
        { rank = 4, text = ("%3d%%"):format(math.floor(share * 100)) },
        { rank = 1, text = ("%d/%d"):format(n_ended, counts.total) },
        { rank = 7, text = ("done %d"):format(counts.done) },
        { rank = 2, text = ("failed %d"):format(counts.failed),
            colour = counts.failed > 0 and RED },
    }
    if counts.busy then
        parts[#parts + 1] = { rank = 5, text = ("busy %d"):format(counts.busy) }
    end
    if rate then
        parts[#parts + 1] = { rank = 6, text = format_rate(rate) }
        local left = (counts.total - n_ended) / rate
        parts[#parts + 1] = { rank = 3, text = format_span(left) .. " left" }
    end
    return parts, share
end

local function parts_width(parts)
    local width = -#GAP
    for _, part in ipairs(parts) do
        width = width + #GAP + #part.text
    end
    return width
end

local function drop_to_fit(parts, width)
    while #parts > 1 and parts_width(parts) > width do
        local least = 1
        for i, part in ipairs(parts) do
            if part.rank > parts[least].rank then
                least = i
            end
        end
        table.remove(parts, least)
    end
end

local function draw_cells(share, n_cells, cells)
    local n_steps = #cells.parts + 1
    local steps = math.floor(share * n_cells * n_steps)
    local n_full = math.floor(steps / n_steps)
    local part = cells.parts[steps - n_full * n_steps] or ""
    local n_empty = n_cells - n_full - (part == "" and 0 or 1)
    return cells.full:rep(n_full) .. part, cells.empty:rep(n_empty)
end

--- Draws the bar as one line that fits.
-- @tparam table counts `total`, `done`, `failed`, and `busy` if that is known
-- @tparam ?number rate outcomes a second, nil while unknown
-- @tparam number width columns to stay within
-- @tparam table looks `has_colour`, `has_blocks`: booleans
-- @treturn string without control characters but those of colours
local function draw(counts, rate, width, looks)
    local parts, share = list_parts(counts, rate)
    local bar_room = MIN_BAR_CELLS + #GAP
    local has_bar = width >= 4 * MIN_BAR_CELLS
    drop_to_fit(parts, has_bar and width - bar_room or width)
    local words = {}
    if has_bar then
        local n_cells = math.min(MAX_BAR_CELLS, width - parts_width(parts) - #GAP)
        local cells = looks.has_blocks and BLOCK_CELLS or ASCII_CELLS
        local full, empty = draw_cells(share, n_cells, cells)
        words[1] = looks.has_colour and GREEN .. full .. PLAIN .. empty or full .. empty
    end
    for _, part in ipairs(parts) do
        local text = part.text:sub(1, width)
        words[#words + 1] = looks.has_colour and part.colour and part.colour .. text .. PLAIN
            or text
    end
    return table.concat(words, GAP)
end

local methods = {}
local metatable = { __name = "progress", __index = methods }

function metatable.__tostring(self)
    return ("progress (%s)"):format(self._style)
end

--- Makes a progress display. It shows nothing before its first `update`.
-- @tparam table settings
-- @tparam string settings.style `bar`, `lines`, or `none`, which shows only what `say` is given
-- @tparam function settings.width returns the terminal's columns, or nil
-- @tparam table settings.looks as for `draw`
-- @tparam[opt] file settings.stream default: standard error
-- @treturn progress
local function new(settings)
    return setmetatable({
        _style = settings.style,
        _width = settings.width,
        _looks = settings.looks,
        _stream = settings.stream or io.stderr,
        _samples = {},
        _shown = nil, -- what the terminal's last line holds
        _due_at = nil,
    }, metatable)
end

local function rate_between(old, new_sample)
    local seconds = new_sample.at - old.at
    local n_outcomes = new_sample.fresh - old.fresh
    return seconds > 0 and n_outcomes > 0 and n_outcomes / seconds or nil
end

local function sample(self, counts, now)
    local samples = self._samples
    local latest = { at = now, fresh = counts.fresh }
    self._first = self._first or latest
    samples[#samples + 1] = latest
    while now - samples[1].at > WINDOW_SECONDS do
        table.remove(samples, 1)
    end
    if latest.fresh - samples[1].fresh >= WINDOW_OUTCOMES then
        return rate_between(samples[1], latest)
    end
    return rate_between(self._first, latest)
end

local function show_bar(self, counts, rate)
    -- A cell in the last column would make some terminals wrap.
    local line = draw(counts, rate, (self._width() or 80) - 1, self._looks)
    if line ~= self._shown then
        self._stream:write("\r", line, "\27[K")
        self._stream:flush()
        self._shown = line
    end
end

local function show_line(self, counts, rate)
    local words = {}
    for _, part in ipairs((list_parts(counts, rate))) do
        words[#words + 1] = part.text:match("^ *(.*)")
    end
    self._stream:write("luabatch: ", table.concat(words, ", "), "\n")
    self._stream:flush()
end

--- Shows the counts if it is time to.
-- @tparam table counts as for `draw`, and `fresh`: the outcomes that this run made itself, which
-- the rate counts
-- @tparam number now seconds
function methods:update(counts, now)
    local is_bar = self._style == "bar"
    if not self._due_at then
        -- The first line waits its turn, so that a short run has none.
        self._due_at = is_bar and now or now + LINE_SECONDS
        sample(self, counts, now)
    end
    if self._style == "none" or now < self._due_at then
        return
    end
    self._due_at = now + (is_bar and DRAW_SECONDS or LINE_SECONDS)
    local show = is_bar and show_bar or show_line
    show(self, counts, sample(self, counts, now))
end

--- Takes the bar off the terminal, so that others may write there; the next `update` puts it back.
function methods:clear()
    if self._shown then
        self._stream:write(ERASE_LINE)
        self._stream:flush()
        self._shown, self._due_at = nil, 0
    end
end

--- What others wrote, made fit for a terminal, which it must not steer: without C0 controls other
-- than tabs and ends of lines, DEL and C1 controls.
-- @tparam string text
-- @treturn string
local function printable(text)
    return (text:gsub("[%z\1-\8\11-\31\127]", " "):gsub("\194[\128-\159]", " "))
end

--- Writes a text, above the bar.
-- @tparam string text
function methods:say(text)
    self:clear()
    self._stream:write("luabatch: ", printable(text), "\n")
    self._stream:flush()
end

--- @export
return {
    new = new,
    draw = draw,
    printable = printable,
    format_span = format_span,
    format_rate = format_rate,
}
