-- SPDX-License-Identifier: MIT

--- HTML documents: what they are called, what they say, where they lead. The parsing is C's and
-- gives flat lists of nodes; here is what is made of them.
-- @module batch.html

local address = require "batch.html.address"
local cleaned = require "batch.html.cleaned"
local core = require("batch.core").html
local links = require "batch.html.links"
local main = require "batch.html.main"
local markdown = require "batch.html.markdown"
local text = require "batch.html.text"

local MAX_TITLE = 300 -- bytes

-- Of the thread's processor time: ordinary pages take a hundredth of this.
local SECONDS_AT_LEAST = 5
local BYTES_A_SECOND = 2e6

local document = {}
document.__index = document
document.__name = "batch.html.document"

function document:__tostring()
    return ("%s (%d nodes)"):format(document.__name, #self._tree.names)
end

local function parse(source, has_hidden, ctx)
    return core.parse(source, {
        max_seconds = SECONDS_AT_LEAST + #source / BYTES_A_SECOND,
        cancel_fd = ctx and ctx.cancel_fd,
        has_hidden = has_hidden,
    })
end

-- White space folded, and cut between characters.
local function shorten(title)
    title = title:gsub("\194\160", " "):gsub("%s+", " "):match("^ ?(.-) ?$")
    if #title <= MAX_TITLE then
        return title
    end
    local stop = MAX_TITLE
    while stop > 0 and title:byte(stop + 1) >= 128 and title:byte(stop + 1) < 192 do
        stop = stop - 1
    end
    return (title:sub(1, stop):gsub(" $", ""))
end

local function first_heading(tree)
    for i, name in ipairs(tree.names) do
        if name == "h1" and tree.lens[i] > 0 then
            local parts = {}
            for j = i + 1, tree.ends[i] do
                parts[#parts + 1] = tree.names[j] == "" and tree.texts[j] or nil
            end
            return table.concat(parts)
        end
    end
end

local function title_of(tree)
    for _, source in ipairs { "title", "og_title" } do
        local title = tree[source] and shorten(tree[source]) or ""
        if title ~= "" then
            return title
        end
    end
    local title = shorten(first_heading(tree) or "")
    return title ~= "" and title or nil
end

--- Reads a document.
-- @tparam string source in UTF-8
-- @tparam ?string base_url the address that it came from, against which its links are resolved
-- @tparam ?table ctx `cancel_fd`: a descriptor that is readable when the reading is to end
-- @treturn[1] document with the field `title` (nil for none)
-- @treturn[2] nil
-- @treturn[2] string why not
-- @treturn[2] string a hint
local function read(source, base_url, ctx)
    local tree, message = parse(source, false, ctx)
    if tree and tree.lens[1] == 0 then
        -- Rather what a script would have shown than nothing.
        tree, message = parse(source, true, ctx)
    end
    if not tree then
        return nil, message, "mode 'raw' gives the bytes as they are"
    end
    local base = base_url
    if tree.base then
        base = address.resolver(base_url)(tree.base) or base_url
    end
    return setmetatable({
        title = title_of(tree), _tree = tree, _resolve = address.resolver(base),
    }, document)
end

function document:_main()
    self._part = self._part or main.find(self._tree)
    return self._part
end

--- The main content as Markdown.
-- @treturn string
function document:markdown()
    return markdown.render(self:_main(), self._resolve)
end

--- The main content as plain text.
-- @treturn string
function document:text()
    return text.render(self:_main())
end

--- The main content as HTML, cleaned.
-- @treturn string
function document:html()
    return cleaned.render(self:_main(), self._resolve)
end

--- The links of the whole page.
-- @treturn table a list of `{url =, text =}`
function document:links()
    return links.list(self._tree, self._resolve)
end

--- @export
return { read = read }
