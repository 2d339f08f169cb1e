-- SPDX-License-Identifier: MIT
--
-- Figures of a bench and the table that they are printed in: medians of rounds, ratios of what ran
-- in the same round. Environment: as in bench.lua.

local IS_QUICK = (os.getenv "BENCH_QUICK" or "0") ~= "0"
local ROUNDS = IS_QUICK and 3 or 5

local records = {}  -- for JSON

-- Median, lowest and highest.
local function summary(values)
    local sorted = table.move(values, 1, #values, 1, {})
    table.sort(sorted)
    local n = #sorted
    local middle = (sorted[(n + 1) // 2] + sorted[n // 2 + 1]) / 2
    return { median = middle, min = sorted[1], max = sorted[n], rounds = n }
end

-- Runs both in turns, round by round.
local function compare(measure, measure_base)
    local values, bases, ratios = {}, {}, {}
    for i = 1, ROUNDS do
        bases[i] = measure_base()
        values[i] = measure()
        ratios[i] = values[i] / bases[i]
    end
    return { value = summary(values), base = summary(bases), ratio = summary(ratios) }
end

local function title(text, value, base)
    print(("\n%-34s %25s %25s  %-17s %s"):format(text, value, base, "ratio", "goal"))
end

local function number(value)
    return ("%.0f"):format(value):reverse():gsub("(%d%d%d)", "%1 "):reverse():gsub("^ ", "")
end

local function span(figure)
    return ("%8s (%s–%s)"):format((number(figure.median)), (number(figure.min)),
        (number(figure.max)))
end

-- unit: of value and base, where they are no rates. The dash between two numbers has three bytes
-- and one column.
local function row(section, name, compared, goal, unit)
    local ratio = compared.ratio
    print(("%-34s %27s %27s  %.2f (%.2f–%.2f)  %s"):format(name, span(compared.value),
        span(compared.base), ratio.median, ratio.min, ratio.max, goal or "–"))
    records[#records + 1] = { section = section, name = name, goal = goal, unit = unit,
        value = compared.value, base = compared.base, ratio = ratio }
end

local function row_alone(section, name, value, unit, goal)
    print(("%-34s %22.1f %s  %s"):format(name, value, unit, goal and "goal " .. goal or ""))
    records[#records + 1] = { section = section, name = name, value = value, unit = unit,
        goal = goal }
end

return {
    IS_QUICK = IS_QUICK, ROUNDS = ROUNDS, records = records, summary = summary, compare = compare,
    title = title, row = row, row_alone = row_alone, number = number,
}
