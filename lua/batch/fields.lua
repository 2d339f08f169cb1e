-- SPDX-License-Identifier: MIT

--- Checks given values against the table of fields and fills in the defaults: what a program gives
-- to `batch.new`, and what stands in a configuration file. Both get the same sentences.

local field_types = require "batch.field_types"
local nearest = require "batch.nearest"
local sections = require "batch.sections"

-- A refusal also says which table holds the value, and by which key, for whoever knows the lines.
local function refusal(message, holder, key)
    return nil, { message = message, holder = holder, key = key }
end

-- The nearest of the known names, or all of them if none is near.
local function hint_at(key, names, prefix)
    local near = nearest.nearest(tostring(key), names)
    if near then
        return ("did you mean '%s%s'?"):format(prefix, near)
    elseif #names == 1 then
        return ("known is '%s'"):format(names[1])
    end
    local first = table.concat(names, "', '", 1, #names - 1)
    return ("known are '%s' and '%s'"):format(first, names[#names])
end

local function refuse_unknown(source, section, given, prefix)
    local known, names = {}, {}
    for _, field in ipairs(sections[section]) do
        known[field.name] = true
        if not field.only or field.only == source.kind then
            names[#names + 1] = field.name
        end
    end
    local unknown = {}
    for key in pairs(given) do
        if not known[key] then
            unknown[#unknown + 1] = key
        end
    end
    if #unknown == 0 then
        return true
    end
    table.sort(unknown, function(a, b) return tostring(a) < tostring(b) end)
    local message = ("unknown field '%s%s', %s"):format(prefix, field_types.shown_key(unknown[1]),
        hint_at(unknown[1], names, prefix))
    return refusal(message, given, unknown[1])
end

local function read_default(field, name)
    if field.default == nil then
        return nil
    end
    return (field_types.read(field, field.default, name))
end

-- Whether the value is a table of a file that is of the other sort: arrays, or tables of keys.
local function is_misshapen(source, value, is_array)
    return source.kind == "file" and type(value) == "table"
        and (getmetatable(value) ~= nil or (source.arrays[value] or false) ~= is_array)
end

local function read_value(source, field, given, name)
    local value = given[field.name]
    if not field.is_required and (value == nil or field_types.is_zero(field, value)) then
        return read_default(field, name)
    end
    local is_lenient = field.type == "duration" or field.is_lenient
    if source.kind == "file" and is_lenient and field_types.is_unreadable(field, value) then
        table.insert(source.warnings, {
            message = ("%s = %s is no %s, so the default %s holds"):format(name,
                field_types.shown(value), field.type, field_types.shown(field.default)),
            holder = given,
            key = field.name,
        })
        return read_default(field, name)
    end
    local type_name = source.kind == "file" and field.file_type or field.type
    local read, message
    if is_misshapen(source, value, true) then
        message = field_types.refusal(field, value, name, type_name)
    else
        read, message = field_types.read(field, value, name, type_name)
    end
    if message then
        return refusal(message, given, field.name)
    end
    return read
end

-- What the other source alone may give: its default does no harm, so that the `batch` of a loaded
-- file can be handed to `batch.new` as it is.
local function refuse_foreign(field, given, name)
    local value = given[field.name]
    if value == nil or value == field.default then
        return nil
    end
    local place = field.only == "lua" and "in Lua" or "in a file"
    return refusal(("%s can only be given %s"):format(name, place), given, field.name)
end

local read_section

local function read_list(source, field, given, name)
    local items, list = given[field.name], {}
    if items == nil then
        return list
    elseif type(items) ~= "table" or is_misshapen(source, items, true) then
        return refusal(("%s must be a list of tables"):format(name), given, field.name)
    end
    for i = 1, #items do
        local item, fault = read_section(source, field.section, items, i, name)
        if not item then
            return nil, fault
        end
        list[i] = item
    end
    return list
end

local function read_field(source, field, given, name)
    if field.only and field.only ~= source.kind then
        return refuse_foreign(field, given, name)
    elseif field.type == "section" then
        return read_section(source, field.section, given, field.name, name)
    elseif field.type == "list" then
        return read_list(source, field, given, name)
    end
    return read_value(source, field, given, name)
end

-- Reads holder[key] as a section; `name` is what messages call it, "" for the outermost.
function read_section(source, section, holder, key, name)
    local given = holder[key]
    if given == nil then
        given = {}
    elseif type(given) ~= "table" or is_misshapen(source, given, false) then
        local got = type(given) == "table" and source.arrays[given] and "a list"
            or field_types.shown(given)
        local message = ("%s must be a table, got %s"):format(name == "" and section or name, got)
        return refusal(message, holder, key)
    end
    local prefix = name == "" and "" or name .. "."
    local full, fault = {}
    local is_known, unknown = refuse_unknown(source, section, given, prefix)
    if not is_known then
        return nil, unknown
    end
    for _, field in ipairs(sections[section]) do
        full[field.name], fault = read_field(source, field, given, prefix .. field.name)
        if fault then
            return nil, fault
        end
    end
    return full
end

--- Checks a section as a program gives it, to `batch.new` for one.
-- @tparam string section such as `batch`
-- @tparam ?table given
-- @treturn[1] table every field with its value or default, durations in seconds, sizes in bytes
-- @treturn[2] nil
-- @treturn[2] string field, rule and value
-- @treturn[2] string `invalid`
local function check(section, given)
    local full, fault = read_section({ kind = "lua" }, section, { given }, 1, "")
    if not full then
        return nil, fault.message, "invalid"
    end
    return full
end

--- Checks a whole configuration file.
-- @tparam table given as parsed
-- @tparam table arrays which of its tables are arrays, as batch.toml tells
-- @treturn[1] table every section with every field
-- @treturn[1] {table,...} warnings, each with `message`, and the `holder` and `key` of the value
-- @treturn[2] nil
-- @treturn[2] table the fault, with the same fields
local function check_file(given, arrays)
    local source = { kind = "file", arrays = arrays, warnings = {} }
    local full, fault = read_section(source, "file", { given }, 1, "")
    if not full then
        return nil, fault
    end
    return full, source.warnings
end

--- @export
return { check = check, check_file = check_file }
