-- SPDX-License-Identifier: MIT

--- From the body of an answer to the content of a result: which bodies are text, in which charset,
-- and what the title is. Knows nothing of requests.

local http = require("batch.core").http

local PRESCAN = 1024 -- bytes in which the HTML standard looks for a declared charset
local TITLE_WITHIN = 65536
local MAX_TITLE = 300 -- bytes

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

local ENTITIES = {
    amp = "&", lt = "<", gt = ">", quot = '"', apos = "'", ["#39"] = "'", nbsp = " ",
}

local function media_type(content_type)
    return (content_type or ""):match("^%s*([^;%s]*)"):lower()
end

local function is_html(media)
    return media == "text/html" or media == "application/xhtml+xml"
end

-- A body without a type is text if it has none of the bytes that only binary files have.
local function is_text(media, body)
    if body:sub(1, 5) == "%PDF-" then
        return false
    elseif media == "" then
        return not body:sub(1, PRESCAN):find("[%z\1-\8\14-\26\28-\31]")
    end
    for _, pattern in ipairs(TEXT_TYPES) do
        if media:find(pattern) then
            return true
        end
    end
    return false
end

local function charset_inside(media, body)
    local head = body:sub(1, PRESCAN)
    local label = head:match("^%s*<%?xml[^>]-encoding%s*=%s*[\"']([%w_:.-]+)")
    if is_html(media) and not label then
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

local function title_of(media, text)
    if not is_html(media) then
        return nil
    end
    local head = text:sub(1, TITLE_WITHIN)
    local _, start = head:lower():find("<title[^>]*>")
    local stop = start and head:lower():find("</title", start + 1, true)
    if not stop then
        return nil
    end
    local title = head:sub(start + 1, stop - 1):gsub("&(#?%w+);", ENTITIES):gsub("%s+", " ")
    title = title:match("^ ?(.-) ?$")
    return #title > 0 and #title <= MAX_TITLE and title or nil
end

--- Reads a body as `mode` asks.
-- @tparam string mode `raw`: the bytes; `text`: as UTF-8, or an error; `auto`: as UTF-8 where it is
-- text
-- @tparam string body
-- @tparam ?string content_type as the server named it
-- @treturn[1] string the content
-- @treturn[1] table for the result's meta: `charset` and `title` where there are such
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string a hint
local function read(mode, body, content_type)
    local media = media_type(content_type)
    local label = declared_charset(content_type)
    if mode == "raw" or (mode == "auto" and not is_text(media, body)) then
        return body, { charset = label }
    elseif not is_text(media, body) then
        local shown = body:sub(1, 5) == "%PDF-" and "a PDF" or media == "" and "the body" or media
        return nil, shown .. " is not text", "mode 'raw' gives the bytes as they are"
    end
    local text, charset = http.decode(body, label or charset_inside(media, body))
    if text then
        return text, { charset = charset, title = title_of(media, text) }
    elseif mode == "auto" then
        return body, { charset = label }
    end
    return nil, charset, "mode 'raw' gives the bytes as they are"
end

--- @export
return { read = read }
