-- SPDX-License-Identifier: MIT

--- Lists and lists of definitions as Markdown. A definition is an item below its term.

local MAX_NUMBER = 999999999 -- of an item, in CommonMark

local OTHER_MARK = { ["-"] = "*", ["*"] = "-", ["."] = ")", [")"] = "." }

local function whole_number(text)
    local number = text and #text < 12 and tonumber(text)
    if number and number >= 0 and number <= MAX_NUMBER then
        return math.floor(number)
    end
end

local function begin_list(self, kind, start)
    self:flush()
    local mark, ended = kind == "ul" and "-" or ".", self.ended_list
    -- Directly behind a list of its kind, a list would go on with that one's items.
    if ended and ended.mark == mark and ended.n_blocks == self.blocks:count() then
        mark = OTHER_MARK[mark]
    end
    local item = self.items[#self.items]
    self.lists[#self.lists + 1] = {
        kind = kind, mark = mark, number = start,
        -- In CommonMark an ordered list interrupts a paragraph only if it begins with 1.
        is_tight = item and item.n == 1 and not item.is_complex and (kind == "ul" or start == 1),
    }
end

local function end_list(self)
    self:flush()
    local list = table.remove(self.lists)
    self.ended_list = { mark = list.mark, n_blocks = self.blocks:count() }
end

local function mark_of(list, attributes)
    if list.kind == "ul" then
        return list.mark .. " "
    end
    local number = whole_number(attributes and attributes.value) or list.number
    list.number = math.min(number + 1, MAX_NUMBER)
    return ("%d%s "):format(number, list.mark)
end

-- Of an item outside of any list.
local STRAY = { kind = "ul", mark = "-" }

local function begin_item(self, i)
    self:flush()
    if self.n_single > 0 then
        return
    end
    local list = self.lists[#self.lists] or STRAY
    local mark = mark_of(list, self.tree.texts[i])
    self.items[#self.items + 1] = { n = 0, is_complex = false, list = list }
    self.blocks:open(mark, (" "):rep(#mark))
    if list.is_tight then
        self.blocks:tighten()
    end
end

local function end_item(self)
    self:flush()
    if self.n_single > 0 then
        return
    end
    local item = table.remove(self.items)
    local outer = self.items[#self.items]
    self.blocks:loosen()
    self.blocks:close()
    item.list.is_tight = not item.is_complex and (item.n > 0 or item.list.is_tight)
    if outer then
        outer.n = math.max(outer.n, item.n > 0 and 1 or 0)
        outer.is_complex = outer.is_complex or item.is_complex
    end
end

--- Adds what the elements do to the tables of functions.
-- @tparam table open
-- @tparam table close
-- @tparam table with `begin_single` and `end_strong_line`, of the renderer
local function install(open, close, with)
    function open.ul(self)
        begin_list(self, "ul")
    end
    function open.ol(self, i)
        local attributes = self.tree.texts[i]
        begin_list(self, "ol", whole_number(attributes and attributes.start) or 1)
    end
    function open.dl(self)
        begin_list(self, "ul")
    end
    open.li, open.dd, close.li, close.dd = begin_item, begin_item, end_item, end_item
    close.ul, close.ol, close.dl = end_list, end_list, end_list

    function open.dt(self)
        with.begin_single(self, " ")
        local list = self.lists[#self.lists]
        if list then
            list.is_tight = false
        end
    end
    function close.dt(self)
        local text, list = with.end_strong_line(self), self.lists[#self.lists]
        if list then
            list.is_tight = text and text ~= ""
        end
    end
end

--- @export
return { install = install }
