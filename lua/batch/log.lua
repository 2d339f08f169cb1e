-- SPDX-License-Identifier: MIT

--- Log lines of the server and the command line: time, level, message and fields, as logfmt or as
-- JSON. Whatever stands in a value, a line stays one line and its neighbours' names stay theirs.
-- Knows nothing of what is logged; a runner's own log is the core's.

local core = require "batch.core"
local fields = require "batch.fields"
local json = require "batch.json"
local sections = require "batch.sections"

local RANKS = {}
for _, field in ipairs(sections.log) do
    if field.name == "level" then
        for rank, level in ipairs(field.values) do
            RANKS[level] = rank
        end
    end
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function escape_byte(byte)
    return ESCAPES[byte] or ("\\u%04x"):format(byte:byte())
end

local function code_point_escape(first, rest)
    local second, third = rest:byte(1, 2)
    local code = (first:byte() % 16 * 64 + second % 64) * 64 + third % 64
    return ("\\u%04x"):format(code)
end

-- Outside ASCII: bytes that are no UTF-8 become U+FFFD; the controls of C1, line separators and
-- what turns the direction of writing are escaped, since viewers obey them. Both formats have such
-- bytes only between quotes, of which the first keeps a byte order mark from being taken for one.
local function harmless(quoted_text)
    if not quoted_text:find("[\128-\255]") then
        return quoted_text
    end
    return (core.http.decode(quoted_text, "utf-8")
        :gsub("\194([\128-\159])", escape_byte)
        :gsub("(\226)(\128[\168-\174])", code_point_escape)
        :gsub("(\226)(\129[\166-\169])", code_point_escape))
end

local function quoted(text)
    return harmless('"' .. text:gsub('[%c"\\]', escape_byte) .. '"')
end

-- An error object may have a __tostring that fails.
local function shown(value)
    local is_shown, text = pcall(tostring, value)
    return is_shown and text or "a " .. type(value)
end

local function is_finite(number)
    return number - number == 0
end

local function logfmt_value(value)
    if type(value) == "number" and is_finite(value) then
        return json.encode_number(value)
    end
    local text = type(value) == "string" and value or shown(value)
    return text:find("^[%w._:/+@-]+$") and text or quoted(text)
end

local function json_value(value)
    local kind = type(value)
    if kind == "number" or kind == "boolean" then
        return json.encode(value)
    end
    return harmless(json.encode(shown(value)))
end

-- Used again for each line: a server writes one for each request.
local parts = { "time=", nil, " level=", nil, " message=" }

-- The message is quoted whether it needs it or not: so are those of a runner.
local function logfmt_line(time, level, message, names, values)
    parts[2], parts[4], parts[6] = time, level, quoted(message)
    local n = 6
    for _, name in ipairs(names) do
        parts[n + 1], parts[n + 2], parts[n + 3], parts[n + 4] =
            " ", name, "=", logfmt_value(values[name])
        n = n + 4
    end
    return table.concat(parts, "", 1, n)
end

local function json_line(time, level, message, names, values)
    local members = { ('{"time":"%s","level":"%s","message":'):format(time, level),
        json_value(message) }
    for _, name in ipairs(names) do
        members[#members + 1] = (',"%s":'):format(name) .. json_value(values[name])
    end
    return table.concat(members) .. "}"
end

local LINES = { logfmt = logfmt_line, json = json_line }

local OWN_NAMES = { time = true, level = true, message = true }

-- Names that were looked at and need no care; a program has a few dozen.
local plain_names = {}

local function is_plain(name)
    if plain_names[name] == nil then
        plain_names[name] = type(name) == "string" and not OWN_NAMES[name]
            and name:find("^[%w._-]+$") ~= nil
    end
    return plain_names[name]
end

-- The names of the fields in order, and the values by name; nil if a name needs a closer look.
local function in_plain_order(given)
    local names = {}
    for key in pairs(given) do
        if not is_plain(key) then
            return nil
        end
        names[#names + 1] = key
    end
    table.sort(names)
    return names, given
end

-- The same with names made fit for a line. One that is taken, by the line's own parts for one, gets
-- an underscore behind it.
local function in_order(given)
    local keys, names, values = {}, {}, {}
    for key in pairs(given) do
        keys[#keys + 1] = key
    end
    table.sort(keys, function(a, b) return shown(a) < shown(b) end)
    for i, key in ipairs(keys) do
        local name = shown(key):gsub("[^%w._-]", "_")
        while values[name] ~= nil or OWN_NAMES[name] or name == "" do
            name = name .. "_"
        end
        names[i], values[name] = name, given[key]
    end
    return names, values
end

-- The second that was named last: a busy server logs thousands of lines in one.
local named_second, name_of_second

-- RFC 3339 in UTC with milliseconds.
local function timestamp(seconds)
    local whole = math.floor(seconds)
    if whole ~= named_second then
        named_second, name_of_second = whole, os.date("!%Y-%m-%dT%H:%M:%S", whole)
    end
    return ("%s.%03dZ"):format(name_of_second, math.floor((seconds - whole) * 1000))
end

local function write_to_stderr(line)
    io.stderr:write(line)
end

local function rank_of(level)
    return RANKS[level] or error(("unknown log level '%s'"):format(shown(level)), 3)
end

--- What a line says after its time and level, for hosts whose log has its own of these.
-- @tparam string message
-- @tparam[opt] table given as for `write`
-- @treturn string `message name=value …`
local function describe(message, given)
    local names, values = in_order(given or {})
    local words = { harmless(message:gsub("%c", escape_byte)) }
    for i, name in ipairs(names) do
        words[i + 1] = name .. "=" .. logfmt_value(values[name])
    end
    return table.concat(words, " ")
end

local methods = {}
local metatable = { __name = "batch.log", __index = methods }

function metatable.__tostring(self)
    return ("batch.log (%s from %s)"):format(self._format, self._level)
end

--- Writes one line, if its level is high enough.
-- @tparam string level `debug`, `info`, `warn` or `error`
-- @tparam string message
-- @tparam[opt] table given text, numbers and booleans by name
-- @raise if there is no such level
function methods:write(level, message, given)
    if rank_of(level) < rank_of(self._level) then
        return
    end
    given = given or {}
    local names, values = in_plain_order(given)
    if not names then
        names, values = in_order(given)
    end
    local line = LINES[self._format](timestamp(core.now()), level, shown(message), names, values)
    self._write(line .. "\n")
end

--- Says from which level on lines are written.
-- @tparam string level
-- @raise if there is no such level
function methods:set_level(level)
    rank_of(level)
    self._level = level
end

--- Makes a log.
-- @tparam[opt] table options `level` and `format` as in a file's `[log]`; `write`, a function that
-- gets each line as one text with its newline, and writes to standard error if it is left out
-- @treturn batch.log
-- @raise if an option is wrong
local function new(options)
    options = options or {}
    local full, message = fields.check("log", { level = options.level, format = options.format })
    if not full then
        error(message, 2)
    end
    return setmetatable({
        _level = full.level,
        _format = full.format,
        _write = options.write or write_to_stderr,
    }, metatable)
end

--- @export
return { new = new, describe = describe }
