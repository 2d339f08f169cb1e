-- SPDX-License-Identifier: MIT

--- From the answer of a server to the content of a result: decoded, shown as the mode wants it, and
-- then through `jq`, `grep` and `question`, in this order. Each stage takes text and gives text;
-- the first that cannot ends the target with its message and hint.

local content = require "batch.content"
local grep = require "batch.grep"
local http = require("batch.core").http
local jq = require "batch.jq"
local modes = require "batch.modes"
local option = require("batch.target_options").read
local question = require "batch.question"

local IS_TEXT = { html = true, pdf = true, json = true, text = true }

local function add_all(meta, more)
    for name, value in pairs(more or {}) do
        meta[name] = value
    end
end

-- Whether what a stage gets is text. Bytes pass modes 'auto' and 'raw' alone.
local function check_text(stage, document, mode, text)
    if mode == "meta" then
        return nil, stage .. " needs a content, and mode 'meta' has none", "choose another mode"
    elseif IS_TEXT[document.kind] and (mode ~= "raw" or document.text == text) then
        return true
    elseif http.decode(text, "utf-8") == text then
        return true
    end
    return nil, ("%s is for text, this is %s"):format(stage, content.name(document)),
        document.kind == "pdf" and "mode 'auto' gives the text of a PDF" or nil
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
            local is_text, message, advice = check_text(stage, document, mode, text)
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
return { apply = apply }
