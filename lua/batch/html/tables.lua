-- SPDX-License-Identifier: MIT

--- Tables with pipes. Tables that only lay a page out are none.

local has_any = require("batch.core").html.has_any

local concat, find = table.concat, string.find

local MAX_COLUMNS = 200
local MAX_BLANKS = 100000 -- cells that a document gets for those that span others
local LONG_CELL = 1000    -- bytes

-- What is looked at in a table; "no": there is none of it in a table of data.
local WEIGHED = {
    tr = "row", td = "cell", th = "cell", pre = "code",
    table = "no", h1 = "no", h2 = "no", h3 = "no", h4 = "no", h5 = "no", h6 = "no", hr = "no",
    form = "no", blockquote = "no",
}

local function is_presentation(attributes)
    return attributes and (attributes.role == "presentation" or attributes.role == "none")
end

local function judge(tree, i)
    local names, lens = tree.names, tree.lens
    local n_rows, n_columns, widest, has_heading, has_code, is_long = 0, 0, 0, false, false, false
    if is_presentation(tree.texts[i]) then
        return false
    end
    for j = i + 1, tree.ends[i] do
        local name = names[j]
        local what = name ~= "" and WEIGHED[name]
        if what == "row" then
            n_rows, n_columns = n_rows + 1, 0
        elseif what == "cell" then
            n_columns = n_columns + 1
            widest = n_columns > widest and n_columns or widest
            has_heading = has_heading or name == "th"
            is_long = is_long or lens[j] > LONG_CELL
        elseif what == "code" then
            has_code = true
        elseif what then
            return false
        end
    end
    if has_heading then
        return n_rows > 1
    end
    return n_rows > 1 and widest > 1 and not has_code and not is_long
end

--- Whether the table at node i holds data. Asked more than once, and looked at once.
local function is_data(tree, i)
    local known = tree.tables or {}
    tree.tables = known
    if known[i] == nil then
        known[i] = judge(tree, i)
    end
    return known[i]
end

local function span(text)
    local number = text and #text < 6 and tonumber(text)
    return number and number >= 1 and math.min(math.floor(number), MAX_COLUMNS) or 1
end

local function is_gutter(attributes)
    local class = attributes and attributes.class
    return class and (find(class, "gutter", 1, true) or find(class, "lineno", 1, true))
end

local function add_blanks(renderer, row, count)
    for _ = 1, math.min(count, renderer.n_blanks, MAX_COLUMNS - #row) do
        row[#row + 1] = ""
        renderer.n_blanks = renderer.n_blanks - 1
    end
end

-- Columns that a cell of a row above reaches into.
local function skip_spanned(renderer, row, spans)
    while spans[#row + 1] and spans[#row + 1] > 0 and renderer.n_blanks > 0 do
        spans[#row + 1] = spans[#row + 1] - 1
        add_blanks(renderer, row, 1)
    end
end

local function read_cell(renderer, row, spans, i)
    local tree = renderer.tree
    local attributes = tree.texts[i] or nil
    if is_gutter(attributes) or #row >= MAX_COLUMNS then
        return
    end
    skip_spanned(renderer, row, spans)
    local column = #row + 1
    row.is_heading = row.is_heading ~= false and tree.names[i] == "th"
    local text = tree.lens[i] == 0 and tree.ends[i] == i and "" or
        renderer:render_cell(i + 1, tree.ends[i])
    if text and has_any(text, "|\n") then
        text = text:gsub("|", "\\|"):gsub("\n", " ")
    end
    row[column] = text or ""
    row.has_text = row.has_text or row[column] ~= ""
    local width = span(attributes and attributes.colspan)
    add_blanks(renderer, row, width - 1)
    local height = span(attributes and attributes.rowspan)
    for at = column, height > 1 and column + width - 1 or 0 do
        spans[at] = height - 1
    end
end

--- Renders the cells of the table at node i, and its caption as a block before it.
-- @treturn table rows, each a list of texts with `is_heading`
local function read(renderer, i)
    local tree, skips = renderer.tree, renderer.skips
    local names, ends = tree.names, tree.ends
    local rows, row, spans, j = {}, nil, {}, i + 1
    renderer.n_blanks = renderer.n_blanks or MAX_BLANKS
    while j <= ends[i] do
        local name = names[j]
        if skips[j] then
            j = ends[j]
        elseif name == "thead" then
            rows.has_head = true
        elseif name == "tr" then
            row = {}
            rows[#rows + 1] = row
        elseif row and (name == "td" or name == "th") then
            read_cell(renderer, row, spans, j)
            j = ends[j]
        elseif name == "caption" then
            renderer:render(j, ends[j])
            j = ends[j]
        end
        j = j + 1
    end
    return rows
end

local function widest_of(rows)
    local widest = 0
    for _, row in ipairs(rows) do
        widest = math.max(widest, #row)
    end
    return widest
end

--- Writes rows; the first one is the heading if all its cells are.
local function write(rows)
    local lines, widest = {}, widest_of(rows)
    local first = rows[1]
    local heading = (first.is_heading or rows.has_head) and first or { has_text = true }
    for column = #heading + 1, widest do
        heading[column] = ""
    end
    lines[1] = "| " .. concat(heading, " | ") .. " |"
    lines[2] = "|" .. (" --- |"):rep(widest)
    for n = heading == first and 2 or 1, #rows do
        if rows[n].has_text then
            lines[#lines + 1] = "| " .. concat(rows[n], " | ") .. " |"
        end
    end
    return concat(lines, "\n")
end

--- @export
return { is_data = is_data, read = read, write = write }
