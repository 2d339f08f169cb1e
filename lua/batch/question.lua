-- SPDX-License-Identifier: MIT

--- The option `question`: has the configured language model answer it from a text, over an
-- OpenAI-compatible chat endpoint. How a request is sent is the caller's; the key is read here, for
-- each request anew, and goes nowhere but into its header.

local deadline = require "batch.deadline"
local http = require("batch.core").http
local json = require "batch.json"
local passages = require "batch.question.passages"
local prompt = require "batch.question.prompt"
local reason = require "batch.reason"
local reply = require "batch.question.reply"
local retry = require "batch.retry"

local BUSY = { [429] = true, [503] = true, [529] = true } -- 529: overloaded, as some providers say
local TRY_AGAIN = { [408] = true, [500] = true, [502] = true, [504] = true }
local TRY_AGAIN_KINDS = { connect = true, resolve = true }
local MAX_TRIES = 3
local FIRST_PAUSE = 0.5 -- seconds, doubled from one try to the next
local SHORTEST_TIMEOUT = 0.1 -- seconds; 0 would mean none
local N_BEST = 3 -- passages when the model names none
local MIN_SECRET = 16 -- bytes; shorter keys, like "none", are words that an answer may hold

local ADDRESS_HINT = "check [fetch.llm] url, which goes up to /v1, and whether its server runs"

local function settings_of(llm)
    if not llm or (llm.url or "") == "" then
        return nil, "no language model is configured, so there is no answer to a question",
            "set [fetch.llm] url to an OpenAI-compatible endpoint (\".../v1\") and model to a"
            .. " model's name"
    elseif (llm.model or "") == "" then
        return nil, "the language model has no name", "set [fetch.llm] model"
    end
    return llm
end

-- The key, false if none is needed.
local function key_of(llm)
    local name = llm.api_key_env or ""
    if name == "" then
        return false
    end
    local key = (os.getenv(name) or ""):match "^%s*(.-)%s*$"
    if key == "" then
        return nil, ("the environment variable '%s' does not hold the language model's key"):format(
            name), "set it, or leave [fetch.llm] api_key_env out for a model that needs no key"
    elseif key:find "[%c\127-\255]" then
        return nil, ("the environment variable '%s' holds what is no key"):format(name),
            "[fetch.llm] api_key_env names the variable; its value must be one line of ASCII"
    end
    return key
end

-- Servers may repeat a key in what they say about it.
local function scrub(text, key)
    if not key or not text then
        return text
    end
    return (text:gsub(key:gsub("%W", "%%%0"), "***"))
end

local function hint_for(status, llm)
    local name = llm.api_key_env or ""
    if (status == 401 or status == 403) and name == "" then
        return "the model wants a key: [fetch.llm] api_key_env names its environment variable"
    elseif status == 401 or status == 403 then
        return ("check the key in the environment variable '%s', which [fetch.llm] api_key_env"
            .. " names"):format(name)
    elseif status == 404 or status == 405 or (status >= 300 and status < 400) then
        return "check [fetch.llm] url, which goes up to /v1, and [fetch.llm] model"
    elseif status == 400 or status == 413 or status == 422 then
        return "the model may take less text than [fetch.llm] max_input, or no such request"
    end
    return "the model's server is at fault; try again later"
end

-- What a response means: a content, or error, hint and is_passing.
local function judge(response, llm, key)
    if response.status >= 200 and response.status < 300 then
        local content, message, hint = reply.content(response.body or "")
        local is_secret = key and #key >= MIN_SECRET
        return {
            content = is_secret and scrub(content, key) or content,
            error = scrub(message, key),
            hint = hint,
        }
    end
    local said = scrub(reply.reason(response.body or ""), key)
    local message = "the language model answered " .. reason.words(response.status)
        .. (said and ": " .. said or "")
    if BUSY[response.status] then
        return { error = retry.later(message, response.retry_after) }
    end
    return {
        error = message,
        hint = hint_for(response.status, llm),
        is_passing = TRY_AGAIN[response.status],
    }
end

local function judge_failure(message, hint, kind, key)
    if kind == "cancelled" then
        return { error = "cancelled" }
    elseif kind == "timeout" then
        return {
            error = "the language model did not answer in time",
            hint = "[fetch.llm] timeout is the limit; a smaller max_input is answered sooner",
        }
    end
    return {
        error = "the language model could not be reached: " .. scrub(tostring(message), key),
        hint = hint or ADDRESS_HINT,
        is_passing = TRY_AGAIN_KINDS[kind],
    }
end

local function seconds_left(llm, ctx)
    local left = deadline.left(ctx) or llm.timeout
    return math.max(math.min(left, llm.timeout), SHORTEST_TIMEOUT)
end

local function try(llm, key, body, ctx, post)
    local headers = { ["Content-Type"] = "application/json", Accept = "application/json" }
    if key then
        headers.Authorization = "Bearer " .. key
    end
    local response, message, hint, kind = post(llm.url:gsub("/+$", "") .. "/chat/completions", {
        headers = headers,
        body = body,
        timeout = seconds_left(llm, ctx),
        cancel_fd = ctx.cancel_fd,
    })
    if response then
        return judge(response, llm, key)
    end
    return judge_failure(message, hint, kind, key)
end

-- The content of the model's answer, or why there is none.
local function ask(llm, key, body, ctx, post)
    for n = 1, MAX_TRIES do
        local outcome = try(llm, key, body, ctx, post)
        local pause = FIRST_PAUSE * 2 ^ (n - 1)
        local may_wait = pause < (deadline.left(ctx) or math.huge)
        if outcome.content then
            return outcome.content
        elseif not outcome.is_passing or n == MAX_TRIES or not may_wait then
            return nil, outcome.error, outcome.hint
        elseif not ctx:sleep(pause) then
            return nil, "cancelled"
        end
    end
end

local function check_text(text)
    if text:find("\0", 1, true) or http.decode("x" .. text, "utf-8") ~= "x" .. text then
        return nil, "the content is no text, which a question needs",
            "leave mode 'raw' out, or ask about a page, a PDF or another text"
    end
    return true
end

local function is_not_found(answer)
    local length = #prompt.NOT_FOUND
    return answer:sub(1, length):lower() == prompt.NOT_FOUND
        and not answer:find("[^%p%s]", length + 1)
end

-- An empty list has no passage to name, and would be an object in JSON.
local function passages_of(named, page, question, answer)
    if is_not_found(answer) then
        return nil
    elseif #named == 0 then
        named = passages.best(page, question .. "\n" .. answer, N_BEST)
    end
    return #named > 0 and named or nil
end

--- Checks whether there is something to be asked, and a model for it.
-- @tparam string question
-- @tparam ?table llm as for `answer`
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what is missing
-- @treturn[2] string a hint
local function check(question, llm)
    if not question:find "%S" then
        return nil, "question must not be blank", "leave it out to get the content itself"
    end
    local settings, message, hint = settings_of(llm)
    if not settings then
        return nil, message, hint
    end
    local key, key_message, key_hint = key_of(llm)
    if key == nil then
        return nil, key_message, key_hint
    end
    return true
end

--- Answers a question about a text.
-- @tparam ?table llm of [fetch.llm]: `url`, `model`, `api_key_env`, `timeout` in seconds,
-- `max_input` in bytes
-- @tparam string text
-- @tparam string question
-- @tparam ?boolean has_context whether the passages that the answer rests on are wanted
-- @tparam table ctx `sleep`; `deadline` and `cancel_fd` may be nil
-- @tparam function post of (url, {headers, body, timeout, cancel_fd}), gives {status, body,
-- retry_after} or nil, message, hint, kind
-- @treturn[1] table `{content =, meta = {passages =, truncated =}}`
-- @treturn[2] nil
-- @treturn[2] string|table what is wrong, or a `retry.later`
-- @treturn[2] ?string a hint
local function answer(llm, text, question, has_context, ctx, post)
    local settings, message, hint = settings_of(llm)
    if not settings then
        return nil, message, hint
    end
    local is_text, refusal, text_hint = check_text(text)
    if not is_text then
        return nil, refusal, text_hint
    elseif not text:find "%S" then
        return { content = prompt.NOT_FOUND, meta = {} }
    end
    local key, key_message, key_hint = key_of(llm)
    if key == nil then
        return nil, key_message, key_hint
    end
    local page, is_cut = passages.cut(text, question, llm.max_input)
    local body = json.encode {
        model = llm.model,
        messages = json.list(prompt.messages(page, question, has_context, is_cut)),
        temperature = 0,
    }
    local content, why, why_hint = ask(llm, key, body, ctx, post)
    if not content then
        return nil, why, why_hint
    end
    local meta = { truncated = is_cut or nil }
    if has_context then
        local named
        content, named = reply.part(content, page)
        meta.passages = passages_of(named, page, question, content)
    end
    return { content = content, meta = meta }
end

--- @export
return { answer = answer, check = check }
