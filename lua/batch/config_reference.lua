-- SPDX-License-Identifier: MIT

--- The reference of the configuration, `docs/configuration.md`: how values are written, and a table
-- for each section that a file may hold. Reads the table of fields alone.

local config_text = require "batch.config_text"
local field_types = require "batch.field_types"
local sections = require "batch.sections"

local INTRODUCTION = [[
<!-- Made by `make docs` from lua/batch/sections.lua. -->

# Configuration

`luabatch serve -c FILE` and `luabatch run -c FILE` read a file of
[TOML 1.0](https://toml.io/en/v1.0.0), and so does `require("batch.config").load(path)`. Everything
has a default: an empty file will do, and so will none. `luabatch serve --print-config` prints a
file with every default, which is also [examples/luabatch.toml](../examples/luabatch.toml). The
fields of `[batch]` are those of `batch.new`, which takes `hooks` and `log` besides.

- **A duration** is a text of numbers with units, `"300ms"`, `"1h30m"`, `"1.5h"`, or a number of
  seconds. The units are `ns`, `us`, `µs`, `ms`, `s`, `m`, `h` and `d`.
- **A size** is a whole number of bytes, `1048576`, or a text with exactly `KiB`, `MiB` or `GiB`,
  `"64MiB"`. `"64MB"` is none, and neither is `"1.5GiB"`.
- **0 means the default**, as leaving a field out does. Negative numbers are refused.
- **A warning** is all that a text which is no duration leads to: it names field and value, and the
  default holds. So it is for `batch.max_bytes`; any other size that cannot be read is an error.
- **An error** names file, line and field, and nothing starts: a field that nobody knows (with the
  nearest that is known), a value of a wrong type or out of its bounds (with what is allowed).

```
luabatch.toml:2: unknown field 'batch.worker', did you mean 'batch.workers'?
luabatch.toml:3: batch.workers must be an integer from 1 to 256, got 257
luabatch.toml:4: batch.ttl = "soon" is no duration, so the default "24h" holds
```
]]

local function add(lines, text, ...)
    lines[#lines + 1] = text:format(...)
end

local function as_paragraph(sentence)
    return sentence:gsub("^%l", string.upper) .. "."
end

-- A bar would end the cell.
local function cell(text)
    return (text:gsub("|", "\\|"))
end

local function default_cell(field)
    return field.is_required and "required" or "`" .. config_text.value_text(field.default) .. "`"
end

local function add_table(lines, fields)
    add(lines, "")
    add(lines, "| field | default | what it may be | what it is |")
    add(lines, "| --- | --- | --- | --- |")
    for _, field in ipairs(fields) do
        add(lines, "| `%s` | %s | %s | %s |", field.name, cell(default_cell(field)),
            cell(field_types.allowed_in_file(field)), cell(field.sentence))
    end
end

local add_section

-- The part of a section, or of a list's items, with its heading.
local function add_part(lines, part, path)
    add(lines, "")
    add(lines, part.type == "list" and "## `[[%s]]`" or "## `[%s]`", path)
    add(lines, "")
    add(lines, "%s", as_paragraph(part.sentence))
    add_section(lines, part.section, path)
end

function add_section(lines, section, path)
    local plain, parts = {}, {}
    for _, field in ipairs(sections[section]) do
        local is_part = field.type == "section" or field.type == "list"
        if field.only ~= "lua" then
            table.insert(is_part and parts or plain, field)
        end
    end
    if #plain > 0 then
        add_table(lines, plain)
    end
    for _, part in ipairs(parts) do
        add_part(lines, part, (path and path .. "." or "") .. part.name)
    end
end

--- Writes the reference of the configuration.
-- @treturn string Markdown
local function markdown()
    local lines = {}
    add_section(lines, "file", nil)
    return INTRODUCTION .. table.concat(lines, "\n") .. "\n"
end

--- @export
return { markdown = markdown }
