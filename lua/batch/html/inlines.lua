-- SPDX-License-Identifier: MIT

--- What stands inside a line of Markdown: emphasis, links, images, code.

local escape = require "batch.html.escape"

local concat, find, sub = table.concat, string.find, string.sub

-- What a link to a heading shows that nobody reads.
local ANCHOR_SIGNS = { ["¶"] = true, ["#"] = true, ["§"] = true, ["🔗"] = true, ["∞"] = true }

local HEADINGS = { h1 = true, h2 = true, h3 = true, h4 = true, h5 = true, h6 = true }

-- The text of the nodes inside i alone.
local function text_inside(tree, i)
    local names, texts, parts = tree.names, tree.texts, {}
    for j = i + 1, tree.ends[i] do
        if names[j] == "" then
            parts[#parts + 1] = texts[j]
        end
    end
    return concat(parts)
end

local function is_anchor(tree, i, href)
    return sub(href, 1, 1) == "#" and tree.lens[i] <= 8
        and ANCHOR_SIGNS[text_inside(tree, i):gsub("%s+", "")]
end

local function has_heading(tree, i)
    local names = tree.names
    for j = i + 1, tree.ends[i] do
        if HEADINGS[names[j]] then
            return true
        end
    end
    return false
end

-- Around blocks a link stands at their heading, or else at the first of them.
local function wrap_link(line, inner, mark)
    if inner == "" then
        inner = mark.label and escape.text(mark.label, true) or ""
    end
    if inner == "" or mark.is_done or mark.wants_heading and not line.in_heading then
        return nil
    end
    mark.is_done = true
    local before = line[line.n]
    if before and sub(before, -1) == "!" then
        line[line.n] = sub(before, 1, -2) .. "\\!"
    end
    return "[" .. inner .. "](" .. mark.destination .. ")"
end

local function plain()
end

local function open_link(self, i)
    local attributes = self.tree.texts[i]
    local href = attributes and attributes.href
    local address = href and self.resolve(href)
    if href and is_anchor(self.tree, i, href) then
        return true
    elseif not address or address == "" then
        return self.line:open { wrap = plain }
    end
    local is_fragment = sub(href, 1, 1) == "#"
    self.line:open {
        wrap = wrap_link, is_link = true, destination = escape.destination(address),
        label = not is_fragment and (attributes["aria-label"] or attributes.title) or nil,
        wants_heading = has_heading(self.tree, i),
    }
end

local function is_pixel(attributes)
    local width = attributes.width
    return (width == "1" or width == "0") and attributes.height == width
end

local function open_image(self, i)
    local attributes = self.tree.texts[i]
    if not attributes or is_pixel(attributes) then
        return true
    end
    local alt = attributes.alt
    local address = attributes.src and self.resolve(attributes.src)
        or attributes["data-src"] and self.resolve(attributes["data-src"])
    alt = alt and alt:gsub("%s+", " ") or attributes.title
    if address and address ~= "" and alt ~= "" then
        self.line:markup("![" .. escape.text(alt or "", true) .. "](" .. escape.destination(address)
            .. ")")
    elseif alt and alt ~= "" then
        self.line:text(alt)
    else
        self.line:omit()
    end
    return true
end

local function open_code(self, i)
    local tree = self.tree
    local inner = i + 1
    -- A link cannot stand inside code, but code inside a link can.
    if tree.names[inner] == "a" and tree.ends[inner] == tree.ends[i] and tree.texts[inner]
        and not open_link(self, inner) then
        self.line:code(text_inside(tree, inner))
        self.line:close()
    else
        self.line:code(text_inside(tree, i))
    end
    return true
end

local function open_break(self)
    if not self.line:line_break() and self.n_single == 0 and #self.line.marks == 0 then
        self:flush()
    end
    return true
end

local function open_superscript(self, i)
    local tree = self.tree
    local text = tree.ends[i] == i + 1 and tree.texts[i + 1]
    if text and find(text, "^[%dn+-]+$") and self.line.n > 0 then
        self.line:text("^" .. text)
        return true
    end
end

local function open_control(self, i)
    local attributes = self.tree.texts[i]
    if attributes and attributes.type == "checkbox" and self.n_single == 0 and #self.items > 0
        and self.line.n == 0 then
        self.line:markup(attributes.checked and "[x] " or "[ ] ")
    end
    return true
end

local function around(before, after)
    return function(self)
        -- A bracket before a parenthesis would make a link.
        if before == "(" and self.line.n > 0 and sub(self.line[self.line.n], -1) == "]" then
            self.line:markup "\\"
        end
        self.line:text(before)
    end, function(self)
        self.line:text(after)
    end
end

--- Adds what the elements do to the tables of functions.
-- @tparam table open
-- @tparam table close
local function install(open, close)
    for _, kind in ipairs { "em", "strong", "del" } do
        open[kind] = function(self)
            self.line:open_emphasis(kind)
        end
        close[kind] = function(self)
            self.line:close_emphasis()
        end
    end
    open.a, open.img, open.code, open.br = open_link, open_image, open_code, open_break
    open.sup, open.input = open_superscript, open_control
    open.q, close.q = around("“", "”")
    open.rt, close.rt = around("(", ")")
    function close.a(self)
        self.line:close()
    end
end

--- @export
return { install = install }
