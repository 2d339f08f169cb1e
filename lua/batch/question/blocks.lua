-- SPDX-License-Identifier: MIT

--- Where a text may be cut: between paragraphs, lists, tables and code blocks, which stay whole as
-- long as they are not too long. Reads Markdown and plain text alike; knows nothing of questions.

local MAX_PROSE = 2000 -- bytes; longer prose is cut between sentences
local MAX_BLOCKS = 20000 -- about: of a very large text the small ones are put together
local BETWEEN = "\n\n"

-- Places to cut behind, the best first.
local CUTS = { "^.*\n()", "^.*[.!?] +()", "^.*。()", "^.*%s()" }

-- Not within a character: a byte that goes on with one is no place to begin.
local function character_start(text, at)
    while at > 1 and text:find("^[\128-\191]", at) do
        at = at - 1
    end
    return at
end

local function place_to_cut(text, from, max_bytes)
    local window = text:sub(from, from + max_bytes - 1)
    for _, pattern in ipairs(CUTS) do
        local behind = window:match(pattern)
        if behind and behind > 1 then
            return from + behind - 1
        end
    end
    local at = character_start(text, from + max_bytes)
    return at > from and at or from + max_bytes
end

local Splitter = {}
Splitter.__index = Splitter

-- Ends the block that pieces are being put into.
function Splitter:flush()
    if #self.pieces > 0 then
        self.blocks[#self.blocks + 1] = table.concat(self.pieces, BETWEEN)
        self.pieces, self.n_bytes = {}, 0
    end
end

function Splitter:put(piece)
    local n_bytes = self.n_bytes + #BETWEEN + #piece
    if self.n_bytes >= self.min_bytes or n_bytes > self.max_bytes then
        self:flush()
        n_bytes = #piece
    end
    self.pieces[#self.pieces + 1], self.n_bytes = piece, n_bytes
end

function Splitter:cut(text, max_bytes)
    local from = 1
    while #text - from + 1 > max_bytes do
        local to = place_to_cut(text, from, max_bytes)
        self:put(text:sub(from, to - 1):match "^.*%S" or "")
        from = to
    end
    self:put(text:sub(from))
end

-- Ends the rows of lines that are being read, if there are any.
function Splitter:close()
    local lines = self.lines
    if #lines > 0 then
        local is_rigid = self.fence or lines[#lines]:find "^%s*|"
        local text = table.concat(lines):match "^.*%S"
        self:cut(text, is_rigid and self.max_bytes or math.min(self.max_bytes, MAX_PROSE))
        self.lines = {}
    end
    self.fence, self.is_heading = nil, false
end

function Splitter:add(line)
    self.lines[#self.lines + 1] = line
end

function Splitter:read_fenced(line, mark)
    self:add(line)
    if mark and mark:sub(1, #self.fence) == self.fence and not line:find "%w" then
        self:close()
    end
end

-- A heading belongs to what follows it, other headings and empty lines between them included.
function Splitter:read(line)
    local mark = line:match "^ ? ? ?(```+)" or line:match "^ ? ? ?(~~~+)"
    if self.fence then
        return self:read_fenced(line, mark)
    end
    local is_empty, is_heading = not line:find "%S", line:find "^#+ " ~= nil
    if (is_empty or is_heading) and not self.is_heading then
        self:close()
    end
    if not is_empty then
        self.is_heading, self.fence = is_heading, mark
    end
    if not is_empty or self.is_heading then
        self:add(line)
    end
end

--- Parts a text into blocks.
-- @tparam string text in UTF-8
-- @tparam integer max_bytes of a block, a code block or a table included
-- @treturn {string,...} in order, without the empty lines between them
local function split(text, max_bytes)
    local splitter = setmetatable({
        blocks = {}, -- that are done
        pieces = {}, -- of the next one,
        n_bytes = 0, -- and their length
        lines = {}, -- of the next piece
        min_bytes = #text / MAX_BLOCKS,
        max_bytes = max_bytes,
    }, Splitter)
    for line in text:gmatch "[^\n]*\n?" do
        if line ~= "" then
            splitter:read(line)
        end
    end
    splitter:close()
    splitter:flush()
    return splitter.blocks
end

--- @export
return { split = split, BETWEEN = BETWEEN }
