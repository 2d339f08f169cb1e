-- SPDX-License-Identifier: MIT

--- What the body of an answer is: HTML, PDF, JSON, other text, or bytes; and its text as UTF-8.
-- Knows nothing of requests, and nothing of what a user wants to see of it.

local http = require("batch.core").http
local pdf = require "batch.pdf"

local PRESCAN = 1024 -- bytes in which the HTML standard looks for a declared charset

local TEXT_TYPES = {
    "^text/",
    "[/+]json$",
    "[/+]xml$",
    "[/+]ya?ml$",
    "^application/x%-ndjson$",
    "^application/jsonl$",
    "^application/x?%-?javascript$",
    "^application/ecmascript$",
    "^application/toml$",
    "^application/sql$",
    "^application/graphql$",
    "^application/x%-sh$",
    "^application/x%-tex$",
    "^application/x%-www%-form%-urlencoded$",
}

local function media_type(content_type)
    return (content_type or ""):match("^%s*([^;%s]*)"):lower()
end

local PDF_TYPES = { ["application/pdf"] = true, ["application/x-pdf"] = true }

-- Where a PDF begins, or nil. It is one by its content, whatever its type says; but that other
-- bytes precede it is believed only of what is called one, for any text may speak of PDFs.
local function pdf_start(media, body)
    if pdf.is_pdf(body) then
        return 1
    end
    return PDF_TYPES[media] and body:sub(1, PRESCAN):find("%PDF-", 1, true) or nil
end

-- A body without a type is text if it has none of the bytes that only binary files have.
local function is_text(media, body)
    if media == "" then
        return not body:sub(1, PRESCAN):find("[%z\1-\8\14-\26\28-\31]")
    end
    for _, pattern in ipairs(TEXT_TYPES) do
        if media:find(pattern) then
            return true
        end
    end
    return false
end

local function is_html(media, body)
    if media == "" then
        local head = body:sub(1, PRESCAN):lower()
        return head:find("^%s*<!doctype html") ~= nil or head:find("<html[%s>]") ~= nil
    end
    return media == "text/html" or media == "application/xhtml+xml"
end

local function is_json(media)
    return media:find "[/+]json$" ~= nil
end

local function charset_inside(is_markup, body)
    local head = body:sub(1, PRESCAN)
    local label = head:match("^%s*<%?xml[^>]-encoding%s*=%s*[\"']([%w_:.-]+)")
    if is_markup and not label then
        label = head:lower():match("<meta[^>]-charset%s*=%s*[\"']?([%w_:.-]+)")
    end
    -- Whoever could read that declaration was not reading UTF-16.
    if label and label:lower():find("^utf%-?16") then
        return "utf-8"
    end
    return label
end

local function declared_charset(content_type)
    local label = (content_type or ""):lower():match(";%s*charset%s*=%s*[\"']?([^%s;\"']+)")
    return label
end

-- A page with a charset that there is not is read as browsers do it: as if none were named there.
local function decode_page(body, named, inside)
    local text, charset
    if named then
        text, charset = http.decode(body, named)
    end
    if not text and inside then
        text, charset = http.decode(body, inside)
    end
    if not text then
        text, charset = http.decode(body)
    end
    return text, charset
end

-- Other text that cannot be decoded stays bytes, with the reason.
local function decode(document, content_type)
    local is_page = document.kind == "html"
    local inside = charset_inside(is_page, document.body)
    local text, charset
    if is_page then
        text, charset = decode_page(document.body, document.charset, inside)
    else
        text, charset = http.decode(document.body, document.charset or inside)
    end
    if not text then
        return { kind = "bytes", body = document.body, media = document.media, fault = charset,
            charset = declared_charset(content_type) }
    end
    document.text, document.charset = text, charset
    return document
end

--- Tells what a body is.
-- @tparam string body
-- @tparam ?string content_type as the server named it
-- @treturn table `kind` (`html`, `pdf`, `json`, `text`, `bytes`), `body`, `media` ("" when it was
-- not named, or wrongly), `charset` where there is one; `text` in UTF-8 of the first, third and
-- fourth kind; `pdf` of the second: its bytes without others before it; `fault`: why what should be
-- text is bytes
local function identify(body, content_type)
    local media = media_type(content_type)
    local start = pdf_start(media, body)
    if not start and PDF_TYPES[media] then
        media = "" -- a page that says why there is no PDF, as a rule
    end
    local document = { body = body, media = media, charset = declared_charset(content_type) }
    if start then
        document.kind, document.pdf = "pdf", body:sub(start)
        return document
    elseif not is_text(media, body) then
        document.kind = "bytes"
        return document
    end
    document.kind = is_html(media, body) and "html" or is_json(media) and "json" or "text"
    return decode(document, content_type)
end

local NAMES = { html = "HTML", pdf = "a PDF", json = "JSON" }

--- What a document is called in messages.
-- @tparam table document
-- @treturn string
local function name(document)
    if NAMES[document.kind] then
        return NAMES[document.kind]
    end
    return document.media ~= "" and document.media or document.kind == "text" and "text" or "binary"
end

--- @export
return { identify = identify, name = name }
