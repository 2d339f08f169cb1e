-- SPDX-License-Identifier: MIT

--- The nearest known name to a mistyped one, for refusals of fields, options and commands. The
-- distance counts letters put in, left out, changed, and neighbours swapped.

local function is_swap(a, i, b, j)
    return i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j)
end

-- Three rows of the table of distances between the beginnings of a and b are enough.
local function distance(a, b)
    local before, previous = nil, {}
    for j = 0, #b do
        previous[j] = j
    end
    for i = 1, #a do
        local row = { [0] = i }
        for j = 1, #b do
            local change = a:byte(i) == b:byte(j) and 0 or 1
            row[j] = math.min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + change)
            if is_swap(a, i, b, j) then
                row[j] = math.min(row[j], before[j - 2] + 1)
            end
        end
        before, previous = previous, row
    end
    return previous[#b]
end

--- Finds the known name that was probably meant.
-- @tparam string name
-- @tparam {string,...} known_names
-- @treturn ?string the nearest, the first of several; nil if none shares half of its letters
local function nearest(name, known_names)
    local best, best_distance
    for _, known in ipairs(known_names) do
        local longer = math.max(#name, #known)
        -- A name of a wholly different length cannot be near, and need not be measured.
        if math.abs(#name - #known) <= longer / 2 then
            local d = distance(name:lower(), known)
            if d <= longer / 2 and (not best or d < best_distance) then
                best, best_distance = known, d
            end
        end
    end
    return best
end

--- @export
return { nearest = nearest }
