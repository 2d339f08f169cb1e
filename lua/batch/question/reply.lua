-- SPDX-License-Identifier: MIT

--- Reads what a chat endpoint sent: the answer in it, the passages that it names, or what it says
-- went wrong. Models and servers may send anything, so nothing here is taken for granted.

local cjson = require("cjson").new()

local core = require "batch.core"
local json = require "batch.json"

local MAX_REASON = 300 -- bytes of a server's own words in an error
local MAX_PASSAGES = 10

local PROTOCOL_HINT = "[fetch.llm] url must lead to an OpenAI-compatible endpoint, up to /v1"

local function decode(text)
    local is_fine, value = pcall(cjson.decode, text)
    return is_fine and type(value) == "table" and value or nil
end

-- A field of what may be no table at all.
local function field(value, name)
    return type(value) == "table" and value[name] or nil
end

local function text_of(value)
    return type(value) == "string" and core.http.decode(value, "utf-8") or nil
end

local function fold(text)
    return (text:gsub("%s+", " "):match "^ ?(.-) ?$")
end

--- The server's own words for a failure, on one line.
-- @tparam string body
-- @treturn ?string nil if there are none
local function reason(body)
    local object = decode(body)
    local fault = field(object, "error")
    local words = text_of(field(fault, "message")) or text_of(fault)
        or text_of(field(object, "message")) or text_of(field(object, "detail"))
    words = words and fold(words:gsub("%c", " "))
    if words and #words > MAX_REASON then
        words = words:sub(1, MAX_REASON):gsub("[\192-\255]?[\128-\191]*$", "") .. "…"
    end
    return words ~= "" and words or nil
end

-- Some servers part an answer as they part a question: into a list of pieces.
local function content_of(message)
    local content = field(message, "content")
    if type(content) ~= "table" then
        return text_of(content)
    end
    local pieces = {}
    for _, piece in ipairs(content) do
        pieces[#pieces + 1] = text_of(field(piece, "text"))
    end
    return table.concat(pieces)
end

-- Models that think aloud do so in front of their answer. Some fill it with white space, at which
-- a pattern for both ends would look again and again.
local function trim(text)
    return (core.html.trim((text:gsub("^%s*<think>.-</think>", ""))))
end

local function refuse(words)
    local said = words and words ~= "" and ": " .. fold(words):sub(1, MAX_REASON) or ""
    return nil, "the language model refused to answer" .. core.http.decode(said, "utf-8"),
        "ask in other words, or leave the question out to get the page itself"
end

--- The text of the answer.
-- @tparam string body of a successful response
-- @treturn[1] string
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string a hint
local function content(body)
    local object = decode(body)
    if not object then
        return nil, "the language model's answer is not JSON", PROTOCOL_HINT
    end
    local choice = field(object.choices, 1)
    local message = field(choice, "message")
    local refusal, ending = text_of(field(message, "refusal")), field(choice, "finish_reason")
    if (refusal and refusal ~= "") or ending == "content_filter" then
        return refuse(refusal)
    elseif not message then
        local words = reason(body)
        return nil, "the language model's answer holds no choice"
            .. (words and ": " .. words or ""), PROTOCOL_HINT
    end
    local answer = trim(content_of(message) or "")
    if ending == "length" then
        return nil, "the language model's answer was cut off",
            "ask a narrower question, or raise the number of tokens that the model's server permits"
    elseif answer == "" then
        return nil, "the language model's answer is empty", "ask in other words, or try another"
            .. " [fetch.llm] model"
    end
    return answer
end

-- Those of the passages that really are in the page, each once.
local function verify(named, page)
    local passages, is_known, folded = {}, {}, fold(page)
    for _, passage in ipairs(type(named) == "table" and named or {}) do
        passage = fold(text_of(passage) or "")
        local is_new = passage ~= "" and not is_known[passage]
        if is_new and #passages < MAX_PASSAGES and folded:find(passage, 1, true) then
            passages[#passages + 1], is_known[passage] = passage, true
        end
    end
    return passages
end

--- Parts an answer that was to be a JSON object into answer and passages.
-- @tparam string text as `content` gave it
-- @tparam string page that the passages must stand in, up to white space
-- @treturn string the answer: the whole text, if the model did not do as it was told
-- @treturn {string,...} the passages that it named rightly
local function part(text, page)
    local object = decode(text) or decode(text:match "{.*}" or "")
    local answer = field(object, "answer")
    local is_scalar = type(answer) == "number" or type(answer) == "boolean"
    answer = trim(is_scalar and json.encode(answer) or text_of(answer) or "")
    if answer == "" then
        return text, {}
    end
    return answer, verify(object.passages, page)
end

--- @export
return { content = content, part = part, reason = reason }
