-- SPDX-License-Identifier: MIT

--- The option `pages`: which pages of a document are meant. Parts are parted by commas and are a
-- page, a range, the first pages (`-3`) or those from one on (`10-`); spaces between them do not
-- matter. The pages come in the document's order and each once, in whatever order they are named.
-- Knows nothing of PDF.
-- @module batch.page_list

local MAX_LENGTH = 4096 -- bytes
local MAX_PAGE = 10 ^ 9 -- what is longer is out of any document's range anyway

local HINT = "pages are named as in '1-3,7,10-', '-3' are the first three"

local function number_of(digits)
    return math.min(tonumber(digits), MAX_PAGE)
end

-- A part as {first =, last =, text =}; last is nil for "to the end".
local function parse_part(text)
    local first, dash, last = text:match("^(%d*)%s*(%-?)%s*(%d*)$")
    if text == "" then
        return nil, "pages: a part is empty", HINT
    elseif not first or (first == "" and last == "") or (dash == "" and last ~= "") then
        return nil, ("pages: '%s' is neither a page nor a range"):format(text), HINT
    end
    local part = { text = text, first = first == "" and 1 or number_of(first) }
    part.last = last ~= "" and number_of(last) or dash == "" and part.first or nil
    if part.first == 0 or part.last == 0 then
        return nil, ("pages: '%s': the first page is 1"):format(text), HINT
    elseif part.last and part.last < part.first then
        return nil, ("pages: '%s' runs backwards"):format(text),
            ("did you mean '%d-%d'?"):format(part.last, part.first)
    end
    return part
end

--- Reads the option.
-- @tparam string text
-- @treturn[1] table a list of parts, for `choose`
-- @treturn[2] nil
-- @treturn[2] string which part is wrong, and why
-- @treturn[2] string a hint
local function parse(text)
    if #text > MAX_LENGTH then
        return nil, ("pages must be at most %d bytes, got %d"):format(MAX_LENGTH, #text), HINT
    end
    local parts = {}
    for piece in (text .. ","):gmatch("([^,]*),") do
        local part, message, hint = parse_part(piece:match("^%s*(.-)%s*$"))
        if not part then
            return nil, message, hint
        end
        parts[#parts + 1] = part
    end
    return parts
end

-- Sorted, and those that overlap or touch made one.
local function merge(ranges)
    table.sort(ranges, function(a, b)
        return a.first < b.first
    end)
    local merged = {}
    for _, range in ipairs(ranges) do
        local before = merged[#merged]
        if before and range.first <= before.last + 1 then
            before.last = math.max(before.last, range.last)
        else
            merged[#merged + 1] = range
        end
    end
    return merged
end

--- Finds the pages of a document that the parts name.
-- @tparam table parts of `parse`
-- @tparam number total the document's pages
-- @treturn[1] table a list of ranges `{first =, last =}`, ascending, without overlap
-- @treturn[2] nil
-- @treturn[2] string which part is out of range, be it in part
-- @treturn[2] string a hint with the number of pages
local function choose(parts, total)
    local ranges = {}
    for i, part in ipairs(parts) do
        if part.first > total or (part.last or total) > total then
            return nil, ("pages: '%s' is out of range"):format(part.text),
                ("the document has %d page%s"):format(total, total == 1 and "" or "s")
        end
        ranges[i] = { first = part.first, last = part.last or total }
    end
    return merge(ranges)
end

--- @export
return { parse = parse, choose = choose }
