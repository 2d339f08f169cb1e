-- SPDX-License-Identifier: MIT

--- Which passages of a text fit a question best, by BM25 over its blocks.

local blocks = require "batch.question.blocks"
local words = require "batch.question.words"

-- After Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009): how soon a word
-- that is said again stops to matter, and how much a long passage is marked down.
local K1, B = 1.2, 0.75

local GAP = "\n\n[…]\n\n" -- where passages are left out

local function set_of(list)
    local set = {}
    for _, word in ipairs(list) do
        set[word] = true
    end
    return set
end

-- How often each of the wanted words stands in a passage, and how many words there are in all.
local function count(passage, wanted)
    local counts, list = {}, words.split(passage)
    for _, word in ipairs(list) do
        if wanted[word] then
            counts[word] = (counts[word] or 0) + 1
        end
    end
    return { counts = counts, n_words = #list }
end

-- A word that few passages have says more than one that all have.
local function weights_of(counted, wanted)
    local weights = {}
    for word in pairs(wanted) do
        local n_with = 0
        for _, passage in ipairs(counted) do
            n_with = n_with + (passage.counts[word] and 1 or 0)
        end
        weights[word] = math.log(1 + (#counted - n_with + 0.5) / (n_with + 0.5))
    end
    return weights
end

local function score_of(passage, weights, mean_words)
    local score, damping = 0, K1 * (1 - B + B * passage.n_words / mean_words)
    for word, n in pairs(passage.counts) do
        score = score + weights[word] * n * (K1 + 1) / (n + damping)
    end
    return score
end

-- The places of the passages in the order of their worth, and the scores by place.
local function rank(list, question)
    local wanted, counted, n_words = set_of(words.split(question)), {}, 0
    for i, passage in ipairs(list) do
        counted[i] = count(passage, wanted)
        n_words = n_words + counted[i].n_words
    end
    local weights, mean_words = weights_of(counted, wanted), math.max(1, n_words / #list)
    local order, scores = {}, {}
    for i, passage in ipairs(counted) do
        order[i], scores[i] = i, score_of(passage, weights, mean_words)
    end
    table.sort(order, function(a, b)
        if scores[a] ~= scores[b] then
            return scores[a] > scores[b]
        end
        return a < b
    end)
    return order, scores
end

local function join(list, is_chosen)
    local parts, last = {}, 0
    for i, passage in ipairs(list) do
        if is_chosen[i] then
            parts[#parts + 1] = i > last + 1 and GAP or #parts > 0 and blocks.BETWEEN or ""
            parts[#parts + 1] = passage
            last = i
        end
    end
    parts[#parts + 1] = last < #list and GAP or ""
    return (table.concat(parts):gsub("^\n+", ""):gsub("\n+$", ""))
end

--- Cuts a text to the passages that fit a question best, in the order of the text.
-- @tparam string text in UTF-8
-- @tparam string question
-- @tparam integer max_bytes of what comes back
-- @treturn string the text as it is if it is short enough
-- @treturn boolean whether anything was left out
local function cut(text, question, max_bytes)
    if #text <= max_bytes then
        return text, false
    end
    -- In the worst case each passage stands between two gaps.
    local list = blocks.split(text, math.max(1, max_bytes - 2 * #GAP))
    local order, is_chosen, left = rank(list, question), {}, max_bytes - #GAP
    -- The beginning says what the text is about.
    table.insert(order, 1, 1)
    for _, i in ipairs(order) do
        local size = #list[i] + #GAP
        if not is_chosen[i] and size <= left then
            is_chosen[i], left = true, left - size
        end
    end
    return join(list, is_chosen), true
end

--- The passages that fit a question best, the best first; none that have no word of it, unless
-- there are no others: what is answered from a text of a few passages rests on these, in whatever
-- words.
-- @tparam string text in UTF-8
-- @tparam string question
-- @tparam integer max_passages
-- @treturn {string,...}
local function best(text, question, max_passages)
    local list = blocks.split(text, math.max(1, #text))
    local order, scores = rank(list, question)
    local found = {}
    for _, i in ipairs(order) do
        if #found == max_passages or scores[i] <= 0 then
            break
        end
        found[#found + 1] = list[i]
    end
    return #found == 0 and #list <= max_passages and list or found
end

--- @export
return { cut = cut, best = best }
