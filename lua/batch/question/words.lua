-- SPDX-License-Identifier: MIT

--- The words of a text, alike where readers would call them the same. No dictionary: what knows
-- more of languages is the model that reads the passages.

-- Dashes, quotes, no-break spaces and the like.
local PUNCTUATION = { "\194[\128-\191]", "\226[\128-\131][\128-\191]", "\227\128[\128-\191]" }

-- Chinese, Japanese and Korean are written without spaces: each two characters count as a word.
local CHARACTER = "[\227-\237][\128-\191][\128-\191]"

-- Capitals of Latin-1 (but ×, which is none) and Cyrillic, by the second of their two bytes.
local function lower_latin(byte)
    return "\195" .. string.char(byte:byte() + 32)
end

local function lower_cyrillic(byte)
    local code = byte:byte()
    return code < 160 and "\208" .. string.char(code + 32) or "\209" .. string.char(code - 32)
end

local function lower(text)
    text = text:lower()
    if text:find "[\195\208]" then
        text = text:gsub("\195([\128-\150\152-\158])", lower_latin)
        text = text:gsub("\208([\144-\175])", lower_cyrillic)
    end
    return text
end

local function without_punctuation(text)
    if text:find "[\194\226\227]" then
        for _, pattern in ipairs(PUNCTUATION) do
            text = text:gsub(pattern, " ")
        end
    end
    return text
end

local function add_pairs(run, words)
    local last, has_pair
    for character in run:gmatch(CHARACTER) do
        has_pair = last ~= nil
        words[#words + 1] = last and last .. character or nil
        last = character
    end
    if not has_pair then
        words[#words + 1] = last
    end
    for rest in run:gsub(CHARACTER, " "):gmatch "%S+" do
        words[#words + 1] = rest
    end
end

-- The commonest ending of plurals, in English and its neighbours.
local function stem(word)
    local before, last = word:byte(-2, -1)
    return #word > 3 and last == 115 and before ~= 115 and word:sub(1, -2) or word
end

--- Parts a text into words.
-- @tparam string text in UTF-8
-- @treturn {string,...} in order, in lower case
local function split(text)
    local words, plain = {}, without_punctuation(lower(text))
    local has_characters = plain:find(CHARACTER) ~= nil
    for run in plain:gmatch "[%w\128-\255]+" do
        if has_characters and run:find(CHARACTER) then
            add_pairs(run, words)
        else
            words[#words + 1] = stem(run)
        end
    end
    return words
end

--- @export
return { split = split }
