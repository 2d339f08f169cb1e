-- SPDX-License-Identifier: MIT

--- The modes of a target: what of a document its result shows. Each takes a document as
-- `batch.content` identifies it and a view (`url`, `pages`, `ctx`), and gives the content and what
-- it adds to meta, or nil, message and hint.

local content = require "batch.content"
local field_types = require "batch.field_types"
local html = require "batch.html"
local json = require "batch.json"
local nearest = require("batch.nearest").nearest
local pdf = require "batch.pdf"
local target_options = require "batch.target_options"

local AS_BYTES = "mode 'raw' gives the bytes as they are"
local AS_IT_IS = "mode 'auto' gives what there is"

local function refuse_kind(mode, wanted, document)
    return nil, ("mode '%s' is for %s, this is %s"):format(mode, wanted, content.name(document)),
        AS_IT_IS
end

local function pdf_text(document, view)
    return pdf.text(document.pdf, view.pages, view.ctx)
end

-- The document's HTML, read once.
local function read_html(document, view)
    local page, message, hint = html.read(document.text, view.url, view.ctx)
    if not page then
        return nil, message, hint or AS_BYTES
    end
    return page, { title = page.title }
end

local function render(document, view, method)
    local page, meta, hint = read_html(document, view)
    if not page then
        return nil, meta, hint
    end
    return page[method](page), meta
end

-- As text, however it came; method: what is made of HTML.
local function text_of(document, view, method)
    if document.kind == "html" then
        return render(document, view, method)
    elseif document.kind == "pdf" then
        return pdf_text(document, view)
    elseif document.kind == "bytes" then
        return nil, document.fault or content.name(document) .. " is not text", AS_BYTES
    end
    return document.text, {}
end

local modes = {}

function modes.raw(document)
    return document.body, {}
end

function modes.auto(document, view)
    if document.kind == "bytes" then
        return document.body, {}
    end
    return text_of(document, view, "markdown")
end

function modes.text(document, view)
    return text_of(document, view, "text")
end

function modes.markdown(document, view)
    return text_of(document, view, "markdown")
end

function modes.html(document, view)
    if document.kind ~= "html" then
        return refuse_kind("html", "HTML", document)
    end
    return render(document, view, "html")
end

function modes.links(document, view)
    if document.kind ~= "html" then
        return refuse_kind("links", "HTML", document)
    end
    local page, meta, hint = read_html(document, view)
    if not page then
        return nil, meta, hint
    end
    return json.encode(json.list(page:links())), meta
end

-- No content, so none has to be there; what can be known without it.
function modes.meta(document, view)
    local meta, message, hint = {}, nil, nil
    if document.kind == "pdf" then
        meta, message, hint = pdf.info(document.pdf, view.pages, view.ctx)
    elseif document.kind == "html" then
        local page
        page, meta, hint = read_html(document, view)
        message = not page and meta or nil
    end
    if message then
        return nil, message, hint
    end
    return "", meta
end

--- Checks the option without a document.
-- @tparam string mode
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string a hint
local function check(mode)
    if modes[mode] then
        return true
    end
    local meant = nearest(mode, target_options.modes)
    local hint = meant and ("did you mean '%s'?"):format(meant)
        or "known are " .. table.concat(target_options.modes, ", ")
    return nil, ("unknown mode '%s'"):format(field_types.shown_key(mode)), hint
end

--- Shows a document as a mode wants it.
-- @tparam string mode one of the names below
-- @tparam table document of batch.content
-- @tparam table view `url` (after redirects), `pages` (nil: all), `ctx` (of the fetch)
-- @treturn[1] string content
-- @treturn[1] table for meta
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string a hint
local function apply(mode, document, view)
    if view.pages and document.kind ~= "pdf" then
        return nil, "pages is for the text of a PDF, this is " .. content.name(document),
            "leave pages out"
    elseif view.pages and mode == "raw" then
        return nil, "pages is for the text of a PDF, mode 'raw' gives its bytes",
            "mode 'auto' gives the text"
    end
    return modes[mode](document, view)
end

--- @export
return { apply = apply, check = check }
