-- SPDX-License-Identifier: MIT
--
-- A toy in the place of a language model, which speaks the protocol of one: it answers with the
-- line of the page that shares most words with the question, or that the page has none.

local json = require "cjson"

local NOT_FOUND = "not found in the page"
local EVERYWHERE = {
    the = true, is = true, a = true, of = true, how = true, what = true, which = true, where = true,
    ["in"] = true, does = true, ["do"] = true, when = true, who = true, it = true,
}

local function words_of(text)
    local words = {}
    for word in text:lower():gmatch "%w+" do
        words[word] = not EVERYWHERE[word] or nil
    end
    return words
end

local function best_line(page, question)
    local asked, best, most = words_of(question), nil, 1
    for line in page:gmatch "[^\n]+" do
        local shared = 0
        for word in pairs(words_of(line)) do
            shared = shared + (asked[word] and 1 or 0)
        end
        if shared > most then
            best, most = line, shared
        end
    end
    return best
end

local model = {}

--- Answers a request to /v1/chat/completions.
-- @tparam string body of the request
-- @treturn string body of the answer
function model.answer(body)
    local messages = json.decode(body).messages
    local page, question = messages[2].content:match
        "^<<<PAGE %x+>>>\n(.*)\n<<<END.-Question: (.*)$"
    local line = best_line(page, question)
    local answer = line or NOT_FOUND
    if messages[1].content:find("JSON object", 1, true) then
        answer = json.encode { answer = answer, passages = { line } }
    end
    local message = { role = "assistant", content = answer }
    return json.encode {
        object = "chat.completion",
        choices = { { index = 0, finish_reason = "stop", message = message } },
    }
end

return model
