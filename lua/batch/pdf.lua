-- SPDX-License-Identifier: MIT

--- The text of PDF documents, by the programs of poppler-utils: in reading order, as UTF-8, a blank
-- line between pages. Which content is a PDF is told by its first bytes, whatever its type says.
-- @module batch.pdf

local child = require "batch.child"
local page_list = require "batch.page_list"

local MIB = 1024 * 1024
local MAX_TEXT = 64 * MIB -- of all ranges of pages together
local MAX_TITLE = 300 -- bytes
local RAW_HINT = "mode 'raw' gives the bytes as they are"
local PART_HINT = "the option 'pages' takes a part of the document"
local OCR_HINT = "its pages may be images; it would need OCR"

--- Whether content is a PDF. Some servers put blanks or a byte order mark before it.
-- @tparam string bytes
-- @treturn boolean
local function is_pdf(bytes)
    return bytes:sub(1, 1024):find("^[%s%z\239\187\191]*%%PDF%-") ~= nil
end

--- Checks the option `pages`, as far as that can be done without the document.
-- @param text
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] ?string a hint
local function check_pages(text)
    if type(text) ~= "string" then
        return nil, "pages must be a string, got a " .. type(text), "such as '1-3,7,10-'"
    end
    local parts, message, hint = page_list.parse(text)
    if not parts then
        return nil, message, hint
    end
    return true
end

-- A document ends with a mark, behind which no object begins. Poppler gives what it finds of one
-- that was cut off, as if that were all.
local function is_cut_off(bytes)
    local stop = bytes:match("^.*()%%%%EOF") or bytes:match("^.*()startxref")
    return not stop or bytes:find("%d%s+obj%f[^%w]", stop) ~= nil
end

local function run(program, arguments, bytes, ctx)
    return child.run({
        program = program,
        package = "poppler-utils",
        arguments = arguments,
        input = bytes,
        seconds = 60,
        memory = 1024 * MIB,
        max_output = MAX_TEXT,
        slow_hint = PART_HINT,
        large_hint = PART_HINT,
    }, ctx)
end

local function explain(result, bytes)
    if result.errors:find("Incorrect password", 1, true) then
        return "the PDF is encrypted", "it cannot be read without its password; " .. RAW_HINT
    elseif result.errors:find("not allowed", 1, true) then
        return "the PDF does not permit its text to be copied", RAW_HINT
    elseif result.signal and result.errors:find("bad_alloc", 1, true)
        or result.errors:find("Out of memory", 1, true) then
        return "the PDF needs more memory than it may have", RAW_HINT
    elseif is_cut_off(bytes) then
        return "the PDF is cut off: its end is missing", RAW_HINT
    end
    return "the PDF is damaged", RAW_HINT
end

local function title_of(info)
    local title = info:match("^Title: *([^\n]*)\n")
    if not title or #title > MAX_TITLE then
        return nil
    end
    return title:gsub("%c+", " "):match("^%s*(.*%S)")
end

-- What poppler says of the document; of the texts in it only the title, which comes first, so that
-- none can pass for the number of pages, which comes last.
local function read_info(bytes, ctx)
    local result, message, hint = run("pdfinfo", { "-enc", "UTF-8", "-" }, bytes, ctx)
    if not result then
        return nil, message, hint
    end
    local total = tonumber(("\n" .. result.output):match("^.*\nPages:%s+(%d+)"))
    if result.status ~= 0 or not total or total == 0 then
        return nil, explain(result, bytes)
    elseif is_cut_off(bytes) then
        return nil, "the PDF is cut off: its end is missing", RAW_HINT
    end
    return { pages_total = total, title = title_of(result.output) }
end

-- Each page ends with a form feed. Other control characters are none of a text's. No pattern here
-- is tried at every place of a long run of blanks: a document may be made of them.
local function clean(output)
    local pages = {}
    for page in output:gsub("[%z\1-\8\11\14-\31\127]", ""):gmatch("[^\f]+") do
        pages[#pages + 1] = page:gsub("^%s*\n", ""):match("^(.*%S)")
    end
    return table.concat(pages, "\n\n")
end

local function read_range(bytes, range, ctx)
    local arguments = {
        "-f", ("%d"):format(range.first), "-l", ("%d"):format(range.last),
        "-enc", "UTF-8", "-eol", "unix", "-", "-",
    }
    local result, message, hint = run("pdftotext", arguments, bytes, ctx)
    if not result then
        return nil, message, hint
    elseif result.status ~= 0 then
        return nil, explain(result, bytes)
    end
    return clean(result.output)
end

local function read_ranges(bytes, ranges, ctx)
    local texts, n_bytes = {}, 0
    for _, range in ipairs(ranges) do
        local text, message, hint = read_range(bytes, range, ctx)
        n_bytes = n_bytes + #(text or "")
        if not text then
            return nil, message, hint
        elseif n_bytes > MAX_TEXT then
            return nil, ("these pages have more than %d MiB of text"):format(MAX_TEXT / MIB),
                PART_HINT
        elseif text ~= "" then
            texts[#texts + 1] = text
        end
    end
    return table.concat(texts, "\n\n")
end

local function ranges_of(pages, total)
    if not pages then
        return { { first = 1, last = total } }
    end
    local parts, message, hint = page_list.parse(pages)
    if not parts then
        return nil, message, hint
    end
    return page_list.choose(parts, total)
end

-- What there is to know without the text, and the ranges of pages that are meant.
local function look_into(bytes, pages, ctx)
    if not is_pdf(bytes) then
        return nil, "the content is no PDF", "the option 'pages' is for PDF documents"
    end
    local facts, message, hint = read_info(bytes, ctx)
    if not facts then
        return nil, message, hint
    end
    local ranges, refusal, why = ranges_of(pages, facts.pages_total)
    if not ranges then
        return nil, refusal, why
    end
    return facts, ranges
end

--- Reads what is known of a document without its text.
-- @tparam string bytes
-- @tparam ?string pages the option `pages`, which must fit the document
-- @tparam ?table ctx `deadline` and `cancel_fd`, either may be nil
-- @treturn[1] table for the result's meta: `pages_total`, and `title` if there is one
-- @treturn[2] nil
-- @treturn[2] string why there is none
-- @treturn[2] ?string a hint
local function info(bytes, pages, ctx)
    local facts, message, hint = look_into(bytes, pages, ctx)
    if not facts then
        return nil, message, hint
    end
    return facts
end

--- Reads a document's text.
-- @tparam string bytes
-- @tparam ?string pages the option `pages`; nil for all
-- @tparam ?table ctx `deadline` and `cancel_fd`, either may be nil
-- @treturn[1] string the text
-- @treturn[1] table as of `info`
-- @treturn[2] nil
-- @treturn[2] string why there is none
-- @treturn[2] ?string a hint
local function text(bytes, pages, ctx)
    local facts, ranges, hint = look_into(bytes, pages, ctx)
    if not facts then
        return nil, ranges, hint
    end
    local found, failure, reason = read_ranges(bytes, ranges, ctx)
    if not found then
        return nil, failure, reason
    elseif found == "" then
        return nil, pages and "these pages of the PDF have no text" or "the PDF has no text",
            OCR_HINT
    end
    return found, facts
end

--- @export
return { text = text, info = info, is_pdf = is_pdf, check_pages = check_pages }
