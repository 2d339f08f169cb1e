-- SPDX-License-Identifier: MIT

--- The inside of a block as Markdown: pieces of text with the marks around them. A mark is written
-- when it ends, for only then is known whether there is anything to mark.

local escape = require "batch.html.escape"
local space = require "batch.html.space"

local escape_text, trim = escape.text, space.trim
local byte, find, sub = string.byte, string.find, string.sub

local BREAK = "  \n" -- a hard line break

local line = {}
line.__index = line

local function is_word(code)
    return code and (code >= 128 or code >= 97 and code <= 122 or code >= 65 and code <= 90
        or code >= 48 and code <= 57)
end

-- Punctuation as CommonMark's rules for emphasis see it, as far as it is common.
local function ends_in_mark(text)
    return find(text, "%p$") or find(text, "\226\128.$") or find(text, "\227\128.$")
end

local function begins_with_mark(text)
    return find(text, "^%p") or find(text, "^\226\128") or find(text, "^\227\128")
end

local function push(self, piece)
    local n = self.n + 1
    self[n] = piece
    self.n = n
end

-- Ends the line that a break or a block left open, before more comes.
local function settle(self)
    if self.is_broken and self.n > 0 then
        push(self, self.separator or BREAK)
    end
    self.is_broken = false
end

--- Adds text, which becomes harmless; `is_plain`: it is already.
function line:text(text, is_plain)
    if self.is_broken then
        settle(self)
    end
    -- Emphasis that ends in punctuation would not end before a letter.
    if self.fragile then
        if self.fragile == self.n and is_word(byte(text, 1)) then
            self[self.n] = self.fragile_text
        end
        self.fragile = nil
    end
    local n = self.n + 1
    self[n] = is_plain and text or escape_text(text, self.n_links > 0)
    self.n = n
end

--- Says that what stood here was left out, and with it one of the spaces around.
function line:omit()
    local before = self[self.n]
    if self.n > 0 and sub(before, -1) == " " then
        self[self.n] = sub(before, 1, -2)
    end
end

--- Adds Markdown as it is.
function line:markup(markup)
    if self.is_broken then
        settle(self)
    end
    local n = self.n + 1
    self.fragile, self[n], self.n = nil, markup, n
end

--- Adds a code span. One that follows another becomes one with it, for their marks would mix.
function line:code(code)
    settle(self)
    local inner, has_lead, has_trail = trim(code)
    if inner == "" then
        return has_lead and push(self, " ")
    elseif self.last_code and self.last_code_at == self.n and not has_lead then
        inner = self.last_code .. inner
        self.n = self.n - 1
    elseif has_lead then
        push(self, " ")
    end
    self:markup(escape.code(inner))
    self.last_code, self.last_code_at = inner, self.n
    if has_trail then
        push(self, " ")
    end
end

--- Ends the line here, if anything more comes in this block.
-- @treturn boolean false if it had ended here already
function line:line_break()
    if self.is_broken then
        return false
    end
    self.is_broken = self.n > 0
    return true
end

--- Begins what a mark is to stand around. `mark` is a table with a method `wrap(line, text)`, which
-- gives Markdown or nil for the bare text.
function line:open(mark)
    settle(self)
    local marks = self.marks
    mark.at = self.n
    marks[#marks + 1] = mark
    if mark.is_link then
        self.n_links = self.n_links + 1
    end
end

-- Replaces what has come since the mark began.
local function apply(self, mark)
    local at = mark.at
    if at >= self.n then
        local wrapped = mark.wrap(self, "", mark)
        return wrapped and push(self, wrapped)
    end
    local whole = at + 1 == self.n and self[self.n] or table.concat(self, "", at + 1, self.n)
    local inner, has_lead, has_trail = trim(whole)
    self.n = at
    local wrapped = mark.wrap(self, inner, mark)
    if has_lead then
        push(self, " ")
    end
    push(self, wrapped or inner)
    if wrapped and mark.is_emphasis and ends_in_mark(inner) then
        self.fragile, self.fragile_text = self.n, inner
    end
    if has_trail and inner ~= "" then
        push(self, " ")
    end
end

--- Ends the mark opened last.
function line:close()
    local mark = table.remove(self.marks)
    apply(self, mark)
    if mark.is_link then
        self.n_links = self.n_links - 1
    end
end

local function emphasis(fence)
    return function(self, inner)
        local before = self[self.n]
        if inner == "" or before and begins_with_mark(inner) and is_word(byte(before, -1)) then
            return nil
        elseif before and find(before, "%*$") or sub(inner, 1, 1) == fence and #fence == 1 then
            return nil
        end
        return fence .. inner .. fence
    end
end

local EMPHASIS = { em = emphasis "*", strong = emphasis "**", del = emphasis "~~" }

--- Begins `em`, `strong` or `del`; one inside the same says nothing more.
function line:open_emphasis(kind)
    local is_inside = self[kind]
    local wrap = EMPHASIS[kind]
    if is_inside or self.is_plain then
        wrap = function() end
    end
    self[kind] = true
    self:open { wrap = wrap, is_emphasis = true, kind = not is_inside and kind }
end

--- Ends it.
function line:close_emphasis()
    local kind = self.marks[#self.marks].kind
    self:close()
    if kind then
        self[kind] = false
    end
end

--- Takes what the line holds, with the marks around it; they go on behind it.
-- @treturn string without white space around, "" if there is nothing
function line:take()
    local marks = self.marks
    for i = #marks, 1, -1 do
        if marks[i].at < self.n then
            apply(self, marks[i])
        end
        marks[i].at = 0
    end
    local n = self.n
    self.n, self.is_broken, self.fragile, self.last_code = 0, false, nil, nil
    return n == 0 and "" or (trim(n == 1 and self[1] or table.concat(self, "", 1, n)))
end

local function new()
    return setmetatable({ n = 0, marks = {}, n_links = 0, is_broken = false }, line)
end

--- @export
return { new = new }
