-- SPDX-License-Identifier: MIT

--- From the answer of a server to the content of a result: decoded, shown as the mode wants it, and
-- then through `jq`, `grep` and `question`, in this order. Each stage takes text and gives text;
-- the first that cannot ends the target with its message and hint. What is wrong with an option
-- whatever the server answers is told before it is asked.

local content = require "batch.content"
local grep = require "batch.grep"
local http = require("batch.core").http
local jq = require "batch.jq"
local modes = require "batch.modes"
local pdf = require "batch.pdf"
local question = require "batch.question"
local target_options = require "batch.target_options"

local option = target_options.read

local OPTIONS_HINT = "headers is an object of names and texts, context and recover are booleans,"
    .. " mode, pages, jq, grep and question are strings, and there are no others"

local IS_TEXT = { html = true, pdf = true, json = true, text = true }

local function add_all(meta, more)
    for name, value in pairs(more or {}) do
        meta[name] = value
    end
end

-- Servers do call JSON a page, so the bytes of one may be it. What was made of a page or a PDF is
-- not, and if it looks so by chance it would be for one page and not for the next.
local function check_json(document, mode)
    if document.kind == "html" and mode ~= "links" and mode ~= "raw" then
        return nil, "jq is for JSON, this is HTML",
            "mode 'links' gives JSON of a page, mode 'raw' what is JSON in spite of its type"
    elseif document.kind == "pdf" then
        return nil, "jq is for JSON, this is a PDF", "grep and question work on the text of a PDF"
    end
    return true
end

-- Bytes pass modes 'auto' and 'raw' alone.
local function check_text(stage, document, mode, text)
    if IS_TEXT[document.kind] and (mode ~= "raw" or document.text == text)
        or http.decode(text, "utf-8") == text then
        return true
    elseif IS_TEXT[document.kind] then
        return nil, ("%s is for text, mode 'raw' gives the bytes of %s"):format(stage,
            content.name(document)), "mode 'auto' gives text in UTF-8"
    end
    return nil, ("%s is for text, this is %s"):format(stage, content.name(document)),
        ("leave %s out; mode 'raw' gives the bytes as they are"):format(stage)
end

-- Whether a stage can do anything with what it gets.
local function check_input(stage, document, mode, text)
    if mode == "meta" then
        return nil, stage .. " needs a content, and mode 'meta' has none", "choose another mode"
    elseif stage == "jq" then
        local is_json, message, hint = check_json(document, mode)
        if not is_json then
            return nil, message, hint
        end
    end
    return check_text(stage, document, mode, text)
end

local stages = {}

function stages.jq(text, filter, run)
    local filtered, message, hint = jq.apply(text, filter, run.ctx)
    return filtered, filtered and {} or message, hint
end

function stages.grep(text, pattern, run)
    local lines, n_matches, hint = grep.lines(text, pattern, option(run.target, "context"),
        run.ctx)
    return lines, lines and { matches = n_matches } or n_matches, hint
end

function stages.question(text, asked, run)
    local answer, message, hint = question.answer(run.llm, text, asked,
        option(run.target, "context"), run.ctx, run.post)
    if not answer then
        return nil, message, hint
    end
    return answer.content, answer.meta
end

-- Servers may write any bytes into their headers; decoded they are text, as meta has to be.
local function describe(answer, document)
    local content_type = answer.content_type and http.decode(answer.content_type, "utf-8")
    return {
        status = answer.status, url = http.decode(answer.url, "utf-8"),
        content_type = content_type, charset = document.charset, bytes = answer.bytes,
        seconds = answer.seconds,
    }
end

-- What can be told of an option's value without the page. Sorted as they are applied.
local checks = {
    { name = "pages", check = pdf.check_pages },
    { name = "mode", check = modes.check },
    { name = "jq", check = jq.check },
    { name = "grep", check = grep.check },
    { name = "question", check = question.check },
}

--- Checks a target before anything is fetched for it.
-- @tparam table target
-- @tparam ?table llm the settings of the model
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string a hint
local function check(target, llm)
    -- Whoever submits by a client of another program has not asked this pipeline.
    local is_known, refusal = target_options.check(target)
    if not is_known then
        return nil, refusal, OPTIONS_HINT
    end
    for _, row in ipairs(checks) do
        local value = option(target, row.name)
        if value then
            local is_fine, message, hint = row.check(value, llm)
            if not is_fine then
                return nil, message, hint
            end
        end
    end
    return true
end

--- Makes the result of an answer.
-- @tparam table answer of the HTTP client
-- @tparam table run `target`, `ctx`, `llm` (the settings of the model), `post` (reaches it)
-- @treturn[1] table `{content =, meta =}`
-- @treturn[2] nil
-- @treturn[2] string|table what is wrong, or a `retry.later`
-- @treturn[2] ?string a hint
local function apply(answer, run)
    local target = run.target
    local content_type = answer.content_type and http.decode(answer.content_type, "utf-8")
    local document = content.identify(answer.body, content_type)
    local mode = option(target, "mode") or "auto"
    local meta = describe(answer, document)
    local text, more, hint = modes.apply(mode, document, {
        url = meta.url, pages = option(target, "pages"), ctx = run.ctx,
    })
    if not text then
        return nil, more, hint
    end
    add_all(meta, more)
    for _, stage in ipairs { "jq", "grep", "question" } do
        local wanted = option(target, stage)
        if wanted then
            local is_text, message, advice = check_input(stage, document, mode, text)
            if not is_text then
                return nil, message, advice
            end
            text, more, hint = stages[stage](text, wanted, run)
            if not text then
                return nil, more, hint
            end
            add_all(meta, more)
        end
    end
    return { content = text, meta = meta }
end

--- @export
return { check = check, apply = apply }
