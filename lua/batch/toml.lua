-- SPDX-License-Identifier: MIT

--- A reader of TOML 1.0, complete. LPeg reads words and strings (toml_scalar, toml_string), plain
-- functions the structure, so that each refusal knows its place. Tells the line of each key, for
-- whoever checks the values.

local lpeg = require "lpeg"
local toml_scalar = require "batch.toml_scalar"
local toml_string = require "batch.toml_string"

local P, R, S, C = lpeg.P, lpeg.R, lpeg.S, lpeg.C

local MAX_DEPTH = 100 -- of arrays and inline tables in one another

local byte_order_mark = P "\239\187\191"
local blank = S " \t"
local newline = toml_string.newline
local space = blank ^ 0
local comment = "#" * toml_string.printable ^ 0
local spacing = (blank + newline + comment * #(newline + -P(1))) ^ 0
local line_end = space * comment ^ -1 * (newline + -P(1))

local bare_key = C(R("az", "AZ", "09", "__", "--") ^ 1)
local word = C(toml_scalar.word)

local Reader = {}
Reader.__index = Reader

function Reader:fail(message, at)
    error({ message = message, at = at or self.at }, 0)
end

function Reader:fail_as_defined(keys, n_keys, at)
    self:fail(("'%s' is already defined"):format(table.concat(keys, ".", 1, n_keys)), at)
end

-- Moves past what stands here (without captures); false if it does not.
function Reader:skip(pattern)
    local after = pattern:match(self.text, self.at)
    self.at = after or self.at
    return after ~= nil
end

function Reader:skip_mark(mark)
    local is_here = self.text:sub(self.at, self.at + #mark - 1) == mark
    self.at = is_here and self.at + #mark or self.at
    return is_here
end

function Reader:expect(mark)
    if not self:skip_mark(mark) then
        self:fail(("expected '%s'"):format(mark))
    end
end

function Reader:line()
    local at = self.text:find("\n", self.line_start, true)
    while at and at < self.at do
        self.n_lines, self.line_start = self.n_lines + 1, at + 1
        at = self.text:find("\n", self.line_start, true)
    end
    return self.n_lines
end

function Reader:put(holder, key, value, kind)
    holder[key] = value
    self.lines[holder] = self.lines[holder] or {}
    self.lines[holder][key] = self:line()
    if kind then
        self.kinds[value] = kind
    end
    return value
end

-- The string that stands here, or nil.
function Reader:string(kinds)
    local value, after, message = toml_string.read(kinds, self.text, self.at)
    if message then
        self:fail(message, after)
    end
    self.at = after or self.at
    return value
end

function Reader:key()
    local bare = bare_key:match(self.text, self.at)
    if bare then
        self.at = self.at + #bare
        return bare
    end
    return self:string(toml_string.in_keys) or self:fail "expected a key"
end

function Reader:dotted_key()
    local keys = {}
    repeat
        self:skip(space)
        keys[#keys + 1] = self:key()
        self:skip(space)
    until not self:skip_mark "."
    return keys
end

function Reader:array(depth)
    local list = {}
    self.arrays[list] = true
    self:skip(spacing)
    while not self:skip_mark "]" do
        local index = #list + 1
        self:put(list, index, false)
        list[index] = self:value(depth)
        self:skip(spacing)
        if not self:skip_mark "," then
            self:expect "]"
            break
        end
        self:skip(spacing)
    end
    return list
end

function Reader:inline_table(depth)
    local fields = {}
    self:skip(space)
    if self:skip_mark "}" then
        return fields
    end
    repeat
        self:assignment(fields, depth)
        self:skip(space)
    until not self:skip_mark ","
    self:expect "}"
    return fields
end

function Reader:scalar()
    local bare = word:match(self.text, self.at) or self:fail "expected a value"
    local value, message = toml_scalar.read(bare)
    if value == nil then
        self:fail(("%s: %s"):format(message, bare))
    end
    self.at = self.at + #bare
    return value
end

function Reader:value(depth)
    if depth > MAX_DEPTH then
        self:fail(("more than %d values in one another"):format(MAX_DEPTH))
    elseif self:skip_mark "[" then
        return self:array(depth + 1)
    elseif self:skip_mark "{" then
        return self:inline_table(depth + 1)
    end
    local text = self:string(toml_string.in_values)
    if text then
        return text
    end
    return self:scalar()
end

-- key = value. Dotted keys may only go through tables that dotted keys made.
function Reader:assignment(holder, depth)
    self:skip(space)
    local at, keys = self.at, self:dotted_key()
    for i = 1, #keys - 1 do
        local child = holder[keys[i]]
        if child == nil then
            child = self:put(holder, keys[i], {}, "dotted")
        elseif self.kinds[child] ~= "dotted" then
            self:fail_as_defined(keys, i, at)
        end
        holder = child
    end
    local last = keys[#keys]
    if holder[last] ~= nil then
        self:fail_as_defined(keys, #keys, at)
    end
    self:expect "="
    self:skip(space)
    self:put(holder, last, false) -- notes the line where the value begins
    holder[last] = self:value(depth)
end

function Reader:header_parent(keys, at)
    local holder = self.root
    for i = 1, #keys - 1 do
        local child = holder[keys[i]]
        if child == nil then
            child = self:put(holder, keys[i], {}, "implicit")
        elseif self.kinds[child] == "array" then
            child = child[#child]
        elseif not self.kinds[child] then
            self:fail_as_defined(keys, i, at)
        end
        holder = child
    end
    return holder
end

-- [key] or [[key]]; returns the table that it opens.
function Reader:header()
    local at, is_array = self.at, self:skip_mark "[["
    if not is_array then
        self:expect "["
    end
    local keys = self:dotted_key()
    self:expect(is_array and "]]" or "]")
    local holder, last = self:header_parent(keys, at), keys[#keys]
    local present = holder[last]
    local kind = present ~= nil and self.kinds[present]
    if is_array and (present == nil or kind == "array") then
        local list = present or self:put(holder, last, {}, "array")
        self.arrays[list] = true
        return self:put(list, #list + 1, {}, "header")
    elseif not is_array and (present == nil or kind == "implicit") then
        return self:put(holder, last, present or {}, "header")
    end
    return self:fail_as_defined(keys, #keys, at)
end

function Reader:document()
    local invalid_at = toml_string.find_invalid(self.text)
    if invalid_at then
        self:fail("not UTF-8", invalid_at)
    end
    self:skip(byte_order_mark)
    local holder = self.root
    while self.at <= #self.text do
        self:skip(space)
        if self.text:sub(self.at, self.at) == "[" then
            holder = self:header()
        elseif not line_end:match(self.text, self.at) then
            self:assignment(holder, 1)
        end
        if not self:skip(line_end) then
            self:skip(space)
            self:fail "expected the end of the line"
        end
    end
end

local function place_of(text, at)
    local before = text:sub(1, at - 1)
    local _, n_newlines = before:gsub("\n", "")
    local _, n_characters = before:match("[^\n]*$"):gsub("[^\128-\191]", "")
    return n_newlines + 1, n_characters + 1
end

--- Parses a document.
-- Dates and times become tables that tostring writes as RFC 3339 (see batch.toml_scalar); integers
-- beyond 2^53 are exact where the VM has integers of 64 bits.
-- @tparam string text
-- @treturn[1] table
-- @treturn[1] table lines: `lines[t][key]` is where `key` stands in `t`, a table of the result
-- @treturn[1] table arrays: `arrays[t]` is true if `t` is an array, which an empty table does not
-- tell
-- @treturn[2] nil
-- @treturn[2] string line, column, and what is wrong there
-- @treturn[2] table the same apart, as `line`, `column`, `message`
local function parse(text)
    assert(type(text) == "string", "toml.parse takes a string")
    local reader = setmetatable({
        text = text,
        at = 1,
        n_lines = 1, -- as far as line() has counted
        line_start = 1,
        root = {},
        lines = {},
        arrays = {},
        kinds = {}, -- of tables that later lines may add to: dotted, implicit, header, array
    }, Reader)
    local is_read, fault = pcall(reader.document, reader)
    if is_read then
        return reader.root, reader.lines, reader.arrays
    elseif type(fault) ~= "table" then
        error(fault, 0)
    end
    local line, column = place_of(text, fault.at)
    return nil, ("line %d, column %d: %s"):format(line, column, fault.message),
        { line = line, column = column, message = fault.message }
end

--- @export
return { parse = parse }
