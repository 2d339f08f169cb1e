-- SPDX-License-Identifier: MIT
--
-- Draws the ratios of a bench as an SVG: a bar for each row that has something beside it, a line
-- from the lowest to the highest, and a mark where its goal is. Spans of time are left out, for of
-- them less is better. Reads the JSON that bench.lua wrote, of one run or of several.
--
--   plot.lua FILE... >docs/performance.svg

local cjson = require "cjson"

local LEFT, WIDTH, RIGHT = 290, 400, 60 -- of the names, of a ratio of FULL, and of the figures
local FULL = 1.25
local ROW, BAR = 18, 12
local STYLE = [[
text { font: 12px sans-serif; fill: #24292f }
.section { font-weight: bold }
.met { fill: #4f9d69 }
.missed { fill: #c8553d }
.free { fill: #7d8fa9 }
.goal { stroke: #24292f; stroke-width: 2 }
.span { stroke: #24292f; stroke-width: 1 }
.grid { stroke: #8884; stroke-width: 1 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .goal, .span { stroke: #e6edf3 } }
]]

local function escape(text)
    return (text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }))
end

local function width_of(ratio)
    return math.min(ratio, FULL) / FULL * WIDTH
end

local function draw_grid(lines, height)
    for _, ratio in ipairs { 0.25, 0.5, 0.75, 1, 1.25 } do
        local x = LEFT + width_of(ratio)
        lines[#lines + 1] = ('<line class="grid" x1="%.1f" x2="%.1f" y1="20" y2="%d"/>'):format(x,
            x, height)
        lines[#lines + 1] = ('<text x="%.1f" y="14" text-anchor="middle">%g</text>'):format(x,
            ratio)
    end
end

local function draw_row(lines, row, y)
    local ratio, goal = row.ratio.median, tonumber(row.goal)
    local class = not goal and "free" or ratio >= goal and "met" or "missed"
    lines[#lines + 1] = ('<text x="%d" y="%d" text-anchor="end">%s</text>'):format(LEFT - 8,
        y + BAR - 2, escape(row.name))
    lines[#lines + 1] = ('<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>'):format(class,
        LEFT, y, width_of(ratio), BAR)
    lines[#lines + 1] = ('<line class="span" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>'):format(
        LEFT + width_of(row.ratio.min), LEFT + width_of(row.ratio.max), y + BAR // 2, y + BAR // 2)
    if goal then
        local x = LEFT + width_of(goal)
        lines[#lines + 1] = ('<line class="goal" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>'):format(x,
            x, y - 2, y + BAR + 2)
    end
    lines[#lines + 1] = ('<text x="%d" y="%d">%.2f</text>'):format(LEFT + WIDTH + 8, y + BAR - 2,
        ratio)
end

local function draw(figures)
    local lines, y, section = {}, 24, nil
    for _, row in ipairs(figures.rows) do
        if row.ratio and not row.unit then
            if row.section ~= section then
                section = row.section
                lines[#lines + 1] = ('<text class="section" x="4" y="%d">%s</text>'):format(
                    y + BAR, escape(section))
                y = y + ROW
            end
            draw_row(lines, row, y)
            y = y + ROW
        end
    end
    draw_grid(lines, y)
    local width = LEFT + WIDTH + RIGHT
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">'
        .. "\n<title>%s</title>\n<style>\n%s</style>\n%s\n</svg>\n"):format(width, y + 4, width,
        y + 4, escape("Ratios, product to what is beside it: " .. figures.machine), STYLE,
        table.concat(lines, "\n"))
end

local function read(paths)
    local rows, machine = {}, nil
    for _, path in ipairs(paths) do
        local file = assert(io.open(path))
        local figures = cjson.decode(file:read "a")
        file:close()
        table.move(figures.rows, 1, #figures.rows, #rows + 1, rows)
        machine = figures.machine
    end
    return { rows = rows, machine = machine }
end

assert(arg[1], "usage: plot.lua FILE...")
io.write(draw(read(arg)))
