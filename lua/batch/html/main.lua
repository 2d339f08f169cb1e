-- SPDX-License-Identifier: MIT

--- The main content of a document: which part of it, and what in there is none. By the elements
-- that say so, and without them by where the text is that is not in links. When in doubt rather too
-- much than nothing.

local boilerplate = require "batch.html.boilerplate"
local tables = require "batch.html.tables"

local ENOUGH = 200       -- bytes of text that make an element content on their own
local SHARE = 0.2        -- of all text, that make it so too
local CENTRE = 0.85      -- of the text outside of links has to be in the part that is chosen
local FEW_WORDS = 0.15   -- of the text outside of links: less makes a page of links
local LINK_DENSITY = 0.7 -- of a block that leads elsewhere

local CONTAINERS = {
    body = true, div = true, section = true, article = true, main = true, form = true,
    table = true, tbody = true, tr = true, td = true,
}

local BLOCKS = {
    div = true, section = true, ul = true, ol = true, dl = true, p = true, table = true,
    header = true, address = true,
}

local HEADINGS = { h1 = true, h2 = true, h3 = true, h4 = true, h5 = true, h6 = true }

local function is_main(tree, i)
    local attributes = tree.texts[i]
    return tree.names[i] == "main" or attributes and attributes.role == "main"
end

-- The largest of the nodes that are something, and how many there are.
local function largest(tree, landmarks, is_wanted)
    local lens, best, count = tree.lens, nil, 0
    for _, i in ipairs(landmarks) do
        if is_wanted(tree, i) then
            count = count + 1
            if not best or lens[i] > lens[best] then
                best = i
            end
        end
    end
    return best, count
end

-- The text outside of links and of what is skipped, added up: of node i it is
-- sums[ends[i]] - sums[i - 1].
local function add_up(tree, skips)
    local names, texts, ends, lens = tree.names, tree.texts, tree.ends, tree.lens
    local sums, sum, quiet_until = { [0] = 0 }, 0, 0
    for i = 1, #names do
        if i > quiet_until then
            if names[i] == "" then
                sum = sum + lens[i]
            elseif skips[i] or names[i] == "a" and texts[i] and texts[i].href then
                quiet_until = ends[i]
            end
        end
        sums[i] = sum
    end
    return sums
end

local function has_heading(tree, skips, first, last)
    local names, ends = tree.names, tree.ends
    while first <= last do
        if skips[first] then
            first = ends[first]
        elseif names[first] == "h1" or names[first] == "h2" then
            return true
        end
        first = first + 1
    end
    return false
end

local function is_container(tree, i)
    local name = tree.names[i]
    return CONTAINERS[name] and not (name == "table" and tables.is_data(tree, i))
end

-- The innermost element that still holds nearly all of the text.
local function centre(tree, skips, sums)
    local names, ends = tree.names, tree.ends
    local needed, current, found = CENTRE * sums[#names], 1, 1
    while found do
        current, found = found, nil
        local child = current + 1
        while child <= ends[current] and not found do
            if sums[ends[child]] - sums[child - 1] >= needed and not skips[child]
                and is_container(tree, child) then
                found = child
            end
            child = ends[child] + 1
        end
        if found and has_heading(tree, skips, current + 1, found - 1) then
            return current
        end
    end
    return current
end

local function is_dense(tree, i)
    return tree.lens[i] > 0 and tree.link_lens[i] >= LINK_DENSITY * tree.lens[i]
end

local function leads_elsewhere(tree, i)
    return BLOCKS[tree.names[i]] and is_dense(tree, i)
end

local function is_content(tree, sums, i)
    return HEADINGS[tree.names[i]] or has_heading(tree, {}, i, tree.ends[i])
        or sums[tree.ends[i]] - sums[i - 1] >= 80
end

-- Leaves out the blocks of links at the beginning and at the end of what the element holds.
local function trim(tree, skips, sums, element)
    local children, child = {}, element + 1
    while child <= tree.ends[element] do
        children[#children + 1] = child
        child = tree.ends[child] + 1
    end
    local first, last = 1, #children
    while first <= last and not is_content(tree, sums, children[first]) do
        skips[children[first]] = leads_elsewhere(tree, children[first]) or skips[children[first]]
        first = first + 1
    end
    while last > first and not is_content(tree, sums, children[last]) do
        local is_listed = HEADINGS[tree.names[children[last - 1]]]
        skips[children[last]] = not is_listed and leads_elsewhere(tree, children[last])
            or skips[children[last]]
        last = last - 1
    end
end

-- Leaves out the cells of links that stand beside a text.
local function skip_menus_in_row(tree, skips, sums, row)
    if sums[tree.ends[row]] - sums[row - 1] < ENOUGH then
        return
    end
    local cell = row + 1
    while cell <= tree.ends[row] do
        if tree.names[cell] == "td" and not is_content(tree, sums, cell)
            and is_dense(tree, cell) then
            skips[cell] = true
        end
        cell = tree.ends[cell] + 1
    end
end

-- Pages of the nineties are laid out in tables.
local function skip_menus(tree, skips, sums, element)
    local names, data_end = tree.names, 0
    for i = element, tree.ends[element] do
        if names[i] == "table" and i > data_end and tables.is_data(tree, i) then
            data_end = tree.ends[i]
        elseif names[i] == "tr" and i > data_end then
            skip_menus_in_row(tree, skips, sums, i)
        end
    end
end

local function by_density(tree, skips)
    local sums = add_up(tree, skips)
    local total = sums[#tree.names]
    if total < FEW_WORDS * tree.lens[1] then
        return 1
    end
    local found = centre(tree, skips, sums)
    if total >= ENOUGH then
        trim(tree, skips, sums, found)
        skip_menus(tree, skips, sums, found)
    end
    return found
end

local function is_enough(tree, i)
    return i and (tree.lens[i] >= ENOUGH or tree.lens[i] >= SHARE * tree.lens[1])
end

local function is_article(tree, i)
    return tree.names[i] == "article"
end

-- The root of the main content.
local function choose(tree, skips, landmarks)
    local found = largest(tree, landmarks, is_main)
    if is_enough(tree, found) then
        return found
    end
    local article, n_articles = largest(tree, landmarks, is_article)
    if article and is_enough(tree, article) and (n_articles == 1 or
        tree.lens[article] >= 0.6 * tree.lens[1]) then
        return article
    end
    return by_density(tree, skips)
end

-- The length of the root's text without what is skipped in it.
local function remaining(tree, skips, root)
    local ends, inside, left, at = tree.ends, {}, tree.lens[root], root
    for i in pairs(skips) do
        inside[#inside + 1] = i > root and i <= ends[root] and i or nil
    end
    table.sort(inside)
    for _, i in ipairs(inside) do
        if i > at then
            left, at = left - tree.lens[i], ends[i]
        end
    end
    return left
end

--- Finds the main content.
-- @tparam table tree the flat lists
-- @treturn table `tree`, `first` and `last` of the nodes, and `skips`: a set of those in between
-- that are to be left out with all that is in them
local function find(tree)
    local skips, landmarks = boilerplate.find(tree)
    local root = choose(tree, skips, landmarks)
    local left = remaining(tree, skips, root)
    if left == 0 or left < 100 and left < 0.01 * tree.lens[1] then
        root, skips = 1, {}
    end
    return { tree = tree, first = root, last = tree.ends[root], skips = skips }
end

--- @export
return { find = find }
