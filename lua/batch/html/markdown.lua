-- SPDX-License-Identifier: MIT

--- A part of a document as Markdown. Goes through the flat list of nodes once; what an element does
-- when it begins and ends is in two tables of functions. Knows nothing of what is worth reading.

local blocks = require "batch.html.blocks"
local escape = require "batch.html.escape"
local language = require "batch.html.language"
local line = require "batch.html.line"
local space = require "batch.html.space"
local tables = require "batch.html.tables"

local concat, find = table.concat, string.find

local open, close = {}, {}
local markdown = {}
markdown.__index = markdown

-- Adds a block and tells the list item around it; `is_plain` is a paragraph.
local function add(self, text, is_plain)
    local item = self.items[#self.items]
    if item then
        item.n = item.n + 1
        item.is_complex = item.is_complex or not is_plain or item.n > 1
    end
    self.blocks:add(text)
end

local function finish_paragraph(self, text)
    if find(text, "\n", 1, true) then
        local lines = {}
        for part in text:gmatch("[^\n]+") do
            lines[#lines + 1] = escape.line_start(part)
        end
        text = concat(lines, "\n")
    else
        text = escape.line_start(text)
    end
    add(self, text, true)
end

--- Ends the paragraph; what has to be a single line gets a separator instead.
function markdown:flush()
    local inside = self.line
    if self.n_single > 0 then
        inside:line_break()
    elseif inside.n > 0 then
        local text = inside:take()
        if text ~= "" then
            finish_paragraph(self, text)
        end
    else
        inside.is_broken = false
    end
end

local function begin_single(self, separator)
    if self.n_single == 0 then
        self:flush()
        self.line.separator = separator
    end
    self.n_single = self.n_single + 1
end

-- Ends it and returns the line, or nil inside of another.
local function end_single(self)
    self.n_single = self.n_single - 1
    if self.n_single > 0 then
        self.line:line_break()
        return nil
    end
    self.line.separator = nil
    return self.line:take()
end

--- Renders the nodes from first to last. What lies deeper than a handler cares for comes back here.
function markdown:render(first, last)
    local tree, skips, inside = self.tree, self.skips, self.line
    local names, texts, ends, signs = tree.names, tree.texts, tree.ends, tree.link_lens
    local level = self.level + 1
    local stack = self.stacks[level] or { closers = {}, closes_at = {} }
    self.level, self.stacks[level] = level, stack
    local closers, closes_at, depth, i = stack.closers, stack.closes_at, 0, first
    while i <= last do
        while depth > 0 and closes_at[depth] < i do
            closers[depth](self)
            depth = depth - 1
        end
        local name = names[i]
        if name == "" then
            inside:text(texts[i], signs[i] == 0)
            i = i + 1
        elseif skips[i] then
            i = ends[i] + 1
        else
            local opener, closer = open[name], close[name]
            local is_done = opener and opener(self, i)
            if is_done then
                i = ends[i] + 1
            else
                if closer then
                    depth = depth + 1
                    closers[depth], closes_at[depth] = closer, ends[i]
                end
                i = i + 1
            end
        end
    end
    for d = depth, 1, -1 do
        closers[d](self)
    end
    self.level = level - 1
end

for _, name in ipairs { "address", "article", "aside", "body", "details", "div", "figcaption",
    "figure", "footer", "form", "header", "main", "nav", "p", "section", "tbody", "thead", "tr",
    "td", "th" } do
    open[name], close[name] = markdown.flush, markdown.flush
end

local function note_language(self, i)
    local attributes = self.tree.texts[i]
    local found = attributes and language.around(attributes)
    if found then
        self.language, self.language_end = found, self.tree.ends[i]
    end
end

function open.div(self, i)
    self:flush()
    note_language(self, i)
end

for level = 1, 6 do
    local hashes = ("#"):rep(level) .. " "
    open["h" .. level] = function(self)
        begin_single(self, " ")
        self.line.in_heading = true
        self.line.strong = self.n_single == 1 or self.line.strong
    end
    close["h" .. level] = function(self)
        local text = end_single(self)
        self.line.in_heading = false
        if text then
            self.line.strong = false
        end
        if text and text ~= "" then
            add(self, hashes .. text:gsub("^#+$", "\\%0"):gsub(" (#+)$", " \\%1"))
        end
    end
end

local function end_strong_line(self)
    local text = end_single(self)
    if text and text ~= "" then
        add(self, find(text, "*", 1, true) and escape.line_start(text) or "**" .. text .. "**")
    end
    return text
end

for _, name in ipairs { "summary", "caption" } do
    open[name] = function(self)
        begin_single(self, " ")
    end
    close[name] = end_strong_line
end

function open.blockquote(self)
    self:flush()
    if self.n_single == 0 then
        self.blocks:open("> ", "> ")
    end
end

function close.blockquote(self)
    self:flush()
    if self.n_single == 0 then
        self.blocks:close()
    end
end

function open.hr(self)
    self:flush()
    if self.n_single == 0 then
        -- Behind a list item's mark, dashes would make one rule with it.
        add(self, self.blocks:is_pending() and "___" or "---")
    end
    return true
end

function open.pre(self, i)
    local tree = self.tree
    local code = space.trim_end(concat(tree.texts, "", i + 1, tree.ends[i]))
    self:flush()
    if not find(code, "%S") then
        return true
    elseif self.n_single > 0 then
        for part in code:gmatch("[^\n]+") do
            self.line:code(part)
            self.line:line_break()
        end
        return true
    end
    local around = self.language_end and self.language_end >= i and self.language
    local found = language.of(tree.texts[i] or {}) or around or nil
    add(self, escape.code_block(code, found))
    return true
end

local lists = require "batch.html.lists"
lists.install(open, close, { begin_single = begin_single, end_strong_line = end_strong_line })
require("batch.html.inlines").install(open, close)

function open.table(self, i)
    self:flush()
    if self.n_single > 0 or not tables.is_data(self.tree, i) then
        return false
    end
    local rows = tables.read(self, i)
    if #rows > 0 then
        add(self, tables.write(rows))
    end
    return true
end

close.table = markdown.flush

--- Renders one cell of a table: a single line, in which line breaks are `<br>`.
function markdown:render_cell(first, last)
    local tree = self.tree
    if first == last and tree.names[first] == "" and tree.link_lens[first] == 0
        and self.n_single == 0 and #self.line.marks == 0 then
        return (space.trim(tree.texts[first])) -- plain text, as most cells are
    end
    begin_single(self, "<br>")
    self:render(first, last)
    return end_single(self)
end

--- Renders a part of a document.
-- @tparam table part `tree` (the flat lists), `first` and `last` of the nodes, `skips` (a set of
-- nodes to leave out)
-- @tparam function resolve from a reference to an address, or nil
-- @treturn string
local function render(part, resolve)
    local self = setmetatable({
        tree = part.tree, skips = part.skips, resolve = resolve,
        blocks = blocks.new(), line = line.new(), n_single = 0, lists = {}, items = {},
        level = 0, stacks = {}, -- of elements that are to be closed; one for each call of render
    }, markdown)
    for i = 1, part.first - 1 do
        if part.tree.ends[i] >= part.last and part.tree.names[i] == "div" then
            note_language(self, i)
        end
    end
    self:render(part.first, part.last)
    self:flush()
    return self.blocks:text()
end

--- @export
return { render = render }
