-- SPDX-License-Identifier: MIT
--
-- Makes PDF documents: one page for each text, which may have lines. A page that is false has a
-- drawing and no text, as one that was scanned.

local pdf = {}

-- Windows-1252 within a string of PDF's.
local function quote(text)
    return "(" .. text:gsub("[()\\]", "\\%0") .. ")"
end

local function content_of(text)
    if not text then
        return "0 0 200 200 re f"
    end
    local lines = { "BT /F1 12 Tf 14 TL 72 720 Td" }
    for line in (text .. "\n"):gmatch("(.-)\n") do
        lines[#lines + 1] = quote(line) .. " Tj T*"
    end
    return table.concat(lines, "\n") .. "\nET"
end

local PAGE = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
    .. "/Resources << /Font << /F1 3 0 R >> >> >>"

local function objects_of(texts, title)
    local objects, kids = {}, {}
    objects[1] = "<< /Type /Catalog /Pages 2 0 R >>"
    objects[3] = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    objects[4] = ("<< /Title %s >>"):format(quote(title or ""))
    for i, text in ipairs(texts) do
        local content = content_of(text)
        objects[3 + 2 * i] = PAGE:format(4 + 2 * i)
        objects[4 + 2 * i] = ("<< /Length %d >>\nstream\n%s\nendstream"):format(#content, content)
        kids[i] = ("%d 0 R"):format(3 + 2 * i)
    end
    objects[2] = ("<< /Type /Pages /Kids [%s] /Count %d >>"):format(
        table.concat(kids, " "), #texts)
    return objects
end

--- The bytes of a document.
-- @tparam table texts
-- @tparam[opt] string title
function pdf.make(texts, title)
    local out, places, length = { "%PDF-1.4\n" }, {}, 9
    local function add(text)
        out[#out + 1] = text
        length = length + #text
    end
    local objects = objects_of(texts, title)
    for number, object in ipairs(objects) do
        places[number] = ("%010d 00000 n \n"):format(length)
        add(("%d 0 obj\n%s\nendobj\n"):format(number, object))
    end
    local start = length
    add(("xref\n0 %d\n0000000000 65535 f \n%s"):format(#objects + 1, table.concat(places)))
    add(("trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\n"):format(#objects + 1))
    add(("startxref\n%d\n%%%%EOF\n"):format(start))
    return table.concat(out)
end

return pdf
