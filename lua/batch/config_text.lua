-- SPDX-License-Identifier: MIT

--- The configuration file that `luabatch serve --print-config` prints: every field that a file may
-- hold with its default, its bounds and its sentence. Reads the table of fields alone, so it names
-- nothing that the check would refuse.

local field_types = require "batch.field_types"
local json = require "batch.json"
local sections = require "batch.sections"

local COLUMNS = 100

local INTRODUCTION = [[
The configuration of luabatch: every field with its default, which also holds where a field is left
out or 0. Durations are texts such as "300ms", "1h30m" or "7d", or numbers of seconds; sizes are
texts such as "64MiB", or numbers of bytes.]]

local function add(lines, line)
    lines[#lines + 1] = line
end

-- Adds a comment, wrapped; prefix: "#" or, within what is itself a comment, "# #".
local function add_comment(lines, text, prefix)
    local line = prefix
    for word in text:gmatch "%S+" do
        if #line + 1 + #word > COLUMNS then
            add(lines, line)
            line = prefix
        end
        line = line .. " " .. word
    end
    add(lines, line)
end

--- Writes a value as TOML does.
-- @param value text in UTF-8, an integer, a boolean, or a list of them
-- @treturn string
local function value_text(value)
    if type(value) ~= "table" then
        return json.encode(value) -- its strings are TOML's, too
    end
    local items = {}
    for i, item in ipairs(value) do
        items[i] = value_text(item)
    end
    return "[" .. table.concat(items, ", ") .. "]"
end

local function described(field)
    local allowed = field_types.allowed_in_file(field)
    return ("%s (%s%s)"):format(field.sentence, allowed, field.is_required and ", required" or "")
end

-- A list has no default, so it stands there as a comment; without its first two characters each
-- line is one of the file.
local function add_list(lines, field, path)
    add(lines, "")
    add_comment(lines, field.sentence, "#")
    add(lines, ("# [[%s]]"):format(path))
    for _, item in ipairs(sections[field.section]) do
        add_comment(lines, described(item), "# #")
        add(lines, ("# %s = %s"):format(item.name, value_text(item.example or item.default)))
    end
end

local function add_section(lines, section, path)
    local inner = {}
    for _, field in ipairs(sections[section]) do
        if field.type == "section" or field.type == "list" then
            inner[#inner + 1] = field.only ~= "lua" and field or nil
        elseif field.only ~= "lua" then
            add(lines, "")
            add_comment(lines, described(field), "#")
            add(lines, ("%s = %s"):format(field.name, value_text(field.default)))
        end
    end
    -- Behind the header of an inner section no field of this one could follow.
    for _, field in ipairs(inner) do
        local inner_path = (path and path .. "." or "") .. field.name
        if field.type == "list" then
            add_list(lines, field, inner_path)
        else
            add(lines, "")
            add_comment(lines, field.sentence, "#")
            add(lines, ("[%s]"):format(inner_path))
            add_section(lines, field.section, inner_path)
        end
    end
end

--- Writes a configuration file that says what would hold without it.
-- @treturn string TOML with comments, in lines of at most 100 columns
local function toml()
    local lines = {}
    add_comment(lines, INTRODUCTION, "#")
    add_section(lines, "file", nil)
    return table.concat(lines, "\n") .. "\n"
end

-- "   name = default   sentence", where the sentence fits; else below it.
local function outline_field(field, columns)
    local default = field.default ~= nil and " = " .. value_text(field.default) or ""
    local head = ("   %-25s  "):format(field.name .. default)
    if #head + #field.sentence <= columns then
        return head .. field.sentence
    end
    return head:gsub("%s+$", "") .. "\n" .. (" "):rep(6) .. field.sentence
end

local function outline_section(lines, section, path, columns)
    local inner = {}
    for _, field in ipairs(sections[section]) do
        if field.type == "section" or field.type == "list" then
            inner[#inner + 1] = field.only ~= "lua" and field or nil
        elseif field.only ~= "lua" then
            add(lines, outline_field(field, columns))
        end
    end
    for _, field in ipairs(inner) do
        local inner_path = (path and path .. "." or "") .. field.name
        add(lines, (field.type == "list" and "[[%s]]" or "[%s]"):format(inner_path))
        outline_section(lines, field.section, inner_path, columns)
    end
end

--- Lists every field of a file with its default and its sentence, for `--help`.
-- @tparam integer columns that a line may have
-- @treturn string lines
local function outline(columns)
    local lines = {}
    outline_section(lines, "file", nil, columns)
    return table.concat(lines, "\n")
end

--- @export
return { toml = toml, outline = outline, value_text = value_text }
