-- SPDX-License-Identifier: MIT

--- A part of a document as plain text: paragraphs with blank lines between, list items with their
-- marks, the cells of a table's row with tabs.

local blocks = require "batch.html.blocks"
local space = require "batch.html.space"
local tables = require "batch.html.tables"

local concat, find = table.concat, string.find

local MAX_NUMBER = 999999999 -- of an item, up or down: each line of it is indented by its length

local open, close = {}, {}

local function push(self, piece)
    self.n = self.n + 1
    self.pieces[self.n] = piece
end

-- Ends the paragraph, or parts words in the cell of a table.
local function flush(self)
    if self.cell_depth > 0 then
        push(self, " ")
        return
    end
    local text = space.trim(concat(self.pieces, "", 1, self.n))
    self.n = 0
    if text ~= "" then
        self.blocks:add(text)
    end
end

for _, name in ipairs { "address", "article", "aside", "body", "caption", "details", "div", "dt",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr",
    "main", "nav", "p", "section", "summary", "blockquote" } do
    open[name], close[name] = flush, flush
end

function open.br(self)
    push(self, self.cell_depth > 0 and " " or "\n")
end

-- 2 to the 48th is not 248.
function open.sup(self, i)
    local text = self.tree.ends[i] == i + 1 and self.tree.texts[i + 1]
    if text and find(text, "^[%dn+-]+$") and self.n > 0 then
        push(self, "^")
    end
end

local function pushing(piece)
    return function(self)
        push(self, piece)
    end
end

open.q, close.q, open.rt, close.rt = pushing "“", pushing "”", pushing "(", pushing ")"

function open.pre(self, i)
    flush(self)
    local code = space.trim_end(concat(self.tree.texts, "", i + 1, self.tree.ends[i]))
    if find(code, "%S") then
        self.blocks:add(code)
    end
    return true
end

local function start_of(attributes)
    local start = tonumber(attributes and attributes.start)
    return start and math.abs(start) <= MAX_NUMBER and start % 1 == 0 and start or 1
end

local function begin_list(self, i, is_ordered)
    flush(self)
    self.lists[#self.lists + 1] = { number = is_ordered and start_of(self.tree.texts[i]) }
end

function open.ul(self, i)
    begin_list(self, i, false)
end

function open.ol(self, i)
    begin_list(self, i, true)
end

local function end_list(self)
    flush(self)
    self.lists[#self.lists] = nil
end

close.ul, close.ol = end_list, end_list

function open.li(self)
    flush(self)
    local list = self.lists[#self.lists] or {}
    local mark = list.number and ("%.0f. "):format(list.number) or "- "
    list.number = list.number and list.number + 1
    self.blocks:open(mark, (" "):rep(#mark))
    self.blocks:tighten()
end

function close.li(self)
    flush(self)
    self.blocks:loosen()
    self.blocks:close()
end

function open.dd(self)
    flush(self)
    self.blocks:open("  ", "  ")
    self.blocks:tighten()
end

close.dd = close.li

-- A table of data is one block, its rows are lines in it.
function open.table(self, i)
    flush(self)
    if self.cell_depth == 0 and tables.is_data(self.tree, i) then
        self.table_end = self.tree.ends[i]
    end
end

local function in_table(self, i)
    return self.table_end and i <= self.table_end
end

function open.tr(self, i)
    if not in_table(self, i) then
        flush(self)
    elseif self.n > 0 then
        push(self, "\n")
    end
    self.row_start = self.n
end

local function begin_cell(self, i)
    if not in_table(self, i) then
        flush(self)
        return
    end
    push(self, self.n > self.row_start and "\t" or "")
    self.cell_depth = self.cell_depth + 1
    self.cell_start = self.n
end

local function end_cell(self)
    if self.cell_depth > 0 then
        local whole = concat(self.pieces, "", self.cell_start + 1, self.n)
        self.n, self.cell_depth = self.cell_start, self.cell_depth - 1
        push(self, (whole:gsub("%s+", " "):match("^ ?(.-) ?$")))
    else
        flush(self)
    end
end

open.td, open.th, close.td, close.th = begin_cell, begin_cell, end_cell, end_cell

function close.table(self)
    self.table_end = nil
    flush(self)
end

-- Renders the nodes; a list without recursion, for documents are as deep as they like.
local function run(self, part)
    local tree, skips = part.tree, part.skips
    local names, texts, ends = tree.names, tree.texts, tree.ends
    local closers, closes_at, depth = {}, {}, 0
    local i = part.first
    while i <= part.last do
        while depth > 0 and closes_at[depth] < i do
            closers[depth](self)
            depth = depth - 1
        end
        local name = names[i]
        local opener, closer = open[name], close[name]
        if name == "" then
            push(self, texts[i])
        elseif skips[i] or opener and opener(self, i) then
            i = ends[i]
        elseif closer then
            depth = depth + 1
            closers[depth], closes_at[depth] = closer, ends[i]
        end
        i = i + 1
    end
    for d = depth, 1, -1 do
        closers[d](self)
    end
    flush(self)
end

--- Renders a part of a document.
-- @tparam table part `tree`, `first`, `last`, `skips`
-- @treturn string
local function render(part)
    local self = { tree = part.tree, blocks = blocks.new(), pieces = {}, n = 0, lists = {},
        cell_depth = 0, cell_start = 0,
        row_start = 0 }
    run(self, part)
    return self.blocks:text()
end

--- @export
return { render = render }
