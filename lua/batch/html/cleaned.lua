-- SPDX-License-Identifier: MIT

--- A part of a document as HTML again: its structure, its addresses made absolute, and nothing that
-- could run, style or track.

local language = require "batch.html.language"

local concat, gsub = table.concat, string.gsub

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

-- What an element becomes, where it is not itself.
local RENAMED = {
    body = "div", main = "div", section = "div", nav = "div", header = "div", footer = "div",
    aside = "div", form = "div", address = "div", details = "div", summary = "p", rt = "span",
}

local STANDS_ALONE = { article = true, table = true } -- of what the main content may be
local LEFT_OUT = { area = true, input = true }
local VOID = { br = true, hr = true, img = true }
local MAY_BE_EMPTY = { td = true, th = true, br = true, hr = true, img = true }

local ENDS_LINE = {
    p = true, div = true, li = true, ul = true, ol = true, tr = true, table = true, pre = true,
    blockquote = true, hr = true, dt = true, dd = true, dl = true, h1 = true, h2 = true, h3 = true,
    h4 = true, h5 = true, h6 = true, article = true, figure = true, figcaption = true,
    thead = true, tbody = true, caption = true,
}

local function escape(text)
    return (gsub(text, '[&<>"]', ENTITIES))
end

local function attribute(name, value)
    return value and (' %s="%s"'):format(name, escape(value)) or ""
end

local function number(name, value)
    return value and value:find("^%d+$") and #value < 10 and attribute(name, value) or ""
end

local write_attributes = {}

function write_attributes.a(attributes, resolve)
    local address = attributes.href and resolve(attributes.href)
    return attribute("href", address ~= "" and address or nil)
end

function write_attributes.img(attributes, resolve)
    local source = attributes.src and resolve(attributes.src)
        or attributes["data-src"] and resolve(attributes["data-src"])
    return attribute("src", source) .. attribute("alt", attributes.alt)
end

function write_attributes.td(attributes)
    return number("colspan", attributes.colspan) .. number("rowspan", attributes.rowspan)
end

write_attributes.th = write_attributes.td

function write_attributes.ol(attributes)
    return number("start", attributes.start)
end

function write_attributes.li(attributes)
    return number("value", attributes.value)
end

local function write_code(self, i)
    local tree = self.tree
    local found = language.of(tree.texts[i] or {})
    local code = concat(tree.texts, "", i + 1, tree.ends[i])
    return "<pre><code" .. attribute("class", found and "language-" .. found) .. ">" .. escape(code)
        .. "</code></pre>\n"
end

local function has_content(tree, i)
    if tree.lens[i] > 0 or MAY_BE_EMPTY[tree.names[i]] then
        return true
    end
    for j = i + 1, tree.ends[i] do
        if MAY_BE_EMPTY[tree.names[j]] then
            return true
        end
    end
    return false
end

-- Writes an element's beginning and gives its end; nil for one that is complete already.
local function open(self, i, name)
    local write, given = write_attributes[name], self.tree.texts[i]
    local shown = RENAMED[name] or name
    if i == self.first and not STANDS_ALONE[name] then
        write, shown = nil, "div"
    end
    local attributes = write and given and write(given, self.resolve) or ""
    if name == "a" and attributes == "" then
        return ""
    end
    self[#self + 1] = "<" .. shown .. attributes .. ">"
    local line_end = ENDS_LINE[shown] and "\n" or ""
    if VOID[name] then
        self[#self + 1] = line_end
        return nil
    end
    return "</" .. shown .. ">" .. line_end
end

local function run(self, part)
    local tree, skips = part.tree, part.skips
    local names, texts, ends = tree.names, tree.texts, tree.ends
    local closers, closes_at, depth, i = {}, {}, 0, part.first
    while i <= part.last do
        while depth > 0 and closes_at[depth] < i do
            self[#self + 1] = closers[depth]
            depth = depth - 1
        end
        local name = names[i]
        if name == "" then
            self[#self + 1] = escape(texts[i])
        elseif skips[i] or LEFT_OUT[name] or tree.lens[i] == 0 and not has_content(tree, i) then
            i = ends[i]
        elseif name == "pre" then
            self[#self + 1] = write_code(self, i)
            i = ends[i]
        else
            local closer = open(self, i, name)
            if closer then
                depth = depth + 1
                closers[depth], closes_at[depth] = closer, ends[i]
            end
        end
        i = i + 1
    end
    for d = depth, 1, -1 do
        self[#self + 1] = closers[d]
    end
end

--- Renders a part of a document.
-- @tparam table part `tree`, `first`, `last`, `skips`
-- @tparam function resolve from a reference to an address, or nil
-- @treturn string
local function render(part, resolve)
    local self = { tree = part.tree, first = part.first, resolve = resolve }
    run(self, part)
    return concat(self)
end

--- @export
return { render = render }
