-- SPDX-License-Identifier: MIT

--- Blocks of text on their way into a document of lines: inside quotes and list items each line
-- gets what stands before it there. Knows nothing of what the blocks are.

local MAX_DEPTH = 24 -- of what nests; deeper it goes on at that depth

local blocks = {}
blocks.__index = blocks

--- Opens a container: `first` stands before its first line, `rest` before the others.
function blocks:open(first, rest)
    local depth = self._depth + 1
    self._depth = depth
    self._outer[depth] = {
        prefix = self._prefix, pending = self._pending, n_before = self._n, is_loose = false,
    }
    if depth <= MAX_DEPTH then
        self._pending = (self._pending or self._prefix) .. first
        self._prefix = self._prefix .. rest
    end
end

--- Closes the container opened last; one that holds nothing leaves no trace.
function blocks:close()
    local outer = self._outer[self._depth]
    self._outer[self._depth] = nil
    self._depth = self._depth - 1
    self._prefix = outer.prefix
    self._pending = self._n == outer.n_before and outer.pending or nil
    self._gap_prefix = outer.prefix
end

--- Asks for no blank line before the next block.
function blocks:tighten()
    self._is_tight = true
end

--- Takes that back.
function blocks:loosen()
    self._is_tight = false
end

--- @treturn integer how many blocks there are
function blocks:count()
    return self._count
end

--- Whether the next block comes directly behind a list item's mark.
function blocks:is_pending()
    return self._pending ~= nil
end

local function trimmed(prefix)
    return prefix == "" and "" or (prefix:gsub(" +$", ""))
end

-- Puts the prefix before each line but the first.
local function indent(text, prefix)
    if prefix == "" or not text:find("\n", 1, true) then
        return text
    end
    text = text:gsub("\n([^\n]+)", "\n" .. prefix .. "%1")
    local blank = trimmed(prefix)
    if blank ~= "" then
        local with_blank = "\n" .. blank .. "\n"
        text = text:gsub("\n\n", with_blank):gsub("\n\n", with_blank)
    end
    return text
end

--- Adds a block of one line or more.
function blocks:add(text)
    local parts, n = self._parts, self._n
    if n > 0 then
        parts[n + 1] = self._is_tight and "\n" or "\n" .. trimmed(self._gap_prefix) .. "\n"
        n = n + 1
    end
    parts[n + 1] = self._pending or self._prefix
    parts[n + 2] = indent(text, self._prefix)
    self._n, self._count = n + 2, self._count + 1
    self._pending, self._is_tight, self._gap_prefix = nil, false, self._prefix
end

--- @treturn string all of it, ended by a line end unless there is nothing
function blocks:text()
    local parts, n = self._parts, self._n
    if n == 0 then
        return ""
    end
    parts[n + 1] = "\n"
    return table.concat(parts, "", 1, n + 1)
end

local function new()
    return setmetatable({
        _parts = {}, _n = 0, _count = 0,
        _prefix = "", _gap_prefix = "", _pending = nil, _outer = {},
        _depth = 0, _is_tight = false,
    }, blocks)
end

--- @export
return { new = new }
