-- SPDX-License-Identifier: MIT
--
-- TOML and configurations of any bytes: read or refused, and a refusal tells its place in the text.

local config = require "batch.config"
local core = require "batch.core"
local toml = require "batch.toml"

local function n_lines_of(text)
    return 1 + select(2, text:gsub("\n", ""))
end

local function check_sentence(message)
    assert(type(message) == "string" and core.http.decode(message, "utf-8") == message,
        "a sentence is UTF-8")
    return message
end

local function check_place(text, message)
    local line, column = check_sentence(message):match "^line (%d+), column (%d+): ."
    assert(line, "a refusal has line and column")
    assert(tonumber(line) >= 1 and tonumber(line) <= n_lines_of(text), "the line is in the text")
    assert(tonumber(column) >= 1 and tonumber(column) <= #text + 1, "the column is in the text")
end

local function check_lines(text, value, lines)
    for key, child in pairs(value) do
        local line = lines[value] and lines[value][key]
        assert(line and line >= 1 and line <= n_lines_of(text), "each key has a line of the text")
        if type(child) == "table" and getmetatable(child) == nil then
            check_lines(text, child, lines)
        end
    end
end

return function(text)
    local document, lines_or_message = toml.parse(text)
    if document then
        check_lines(text, document, lines_or_message)
    else
        check_place(text, lines_or_message)
    end
    local full, warnings_or_message = config.parse(text)
    if full then
        assert(document, "a configuration is TOML")
        assert(full.batch and full.server and full.log and full.fetch, "defaults are filled in")
        for _, warning in ipairs(warnings_or_message) do
            assert(check_sentence(warning):find "^line %d+: .", "a warning has a line")
        end
    elseif document then
        assert(check_sentence(warnings_or_message):find "^line %d+: .", "a refusal has a line")
    else
        assert(warnings_or_message == lines_or_message, "it is refused for what TOML says")
    end
end
