-- SPDX-License-Identifier: MIT

--- The strings of TOML 1.0: four kinds of quotes, escapes, and what a character is. Reads one
-- string at a given place of a text that is known to be UTF-8; lines and keys are toml.lua's
-- matter.

local lpeg = require "lpeg"

local P, R, S, C, Cp, Cs = lpeg.P, lpeg.R, lpeg.S, lpeg.C, lpeg.Cp, lpeg.Cs

local continuation = R "\128\191"
local utf8_character = R "\0\127"
    + R "\194\223" * continuation
    + P "\224" * R "\160\191" * continuation
    + (R "\225\236" + R "\238\239") * continuation * continuation
    + P "\237" * R "\128\159" * continuation
    + P "\240" * R "\144\191" * continuation * continuation
    + R "\241\243" * continuation * continuation * continuation
    + P "\244" * R "\128\143" * continuation * continuation
local utf8_text = utf8_character ^ 0 * Cp()

local function utf8_of(code)
    if code < 0x80 then
        return string.char(code)
    end
    local bytes, first_limit, prefix = {}, 0x40, 0x80
    while code >= first_limit do
        table.insert(bytes, 1, string.char(0x80 + code % 0x40))
        code = math.floor(code / 0x40)
        first_limit, prefix = first_limit / 2, prefix / 2 + 0x80
    end
    return string.char(prefix + code) .. table.concat(bytes)
end

local function escaped_character(hex)
    local code = tonumber(hex, 16)
    if code > 0x10FFFF or code >= 0xD800 and code <= 0xDFFF then
        return nil
    end
    return utf8_of(code)
end

local newline = P "\r" ^ -1 * "\n"
local printable = P(1) - R "\0\8" - R "\10\31" - P "\127"

local hex = R("09", "af", "AF")
local hex4 = hex * hex * hex * hex
local escapes = { b = "\b", t = "\t", n = "\n", f = "\f", r = "\r", ['"'] = '"', ["\\"] = "\\" }
-- A number that is no character fails to match, so that the error stands at the escape.
local escape = P "\\" * C(S 'btnfr"\\') / escapes
    + lpeg.Cmt(P "\\" * ("u" * C(hex4) + "U" * C(hex4 * hex4)), function(_, at, digits)
        local character = escaped_character(digits)
        return character ~= nil and at, character
    end)
local blank = S " \t"
local folded_lines = P "\\" * blank ^ 0 * newline * (blank + newline) ^ 0 / ""

-- At most two quotes more may stand before the three that close a string.
local function closing(quote)
    return P(quote:rep(5)) / quote:rep(2) + P(quote:rep(4)) / quote + P(quote:rep(3)) / ""
end

local function quoted(open, item, close)
    return { open = P(open), body = Cs(item ^ 0) * Cp(), close = close * Cp() }
end

local basic_item = escape + (printable - S '"\\')
local literal_item = printable - P "'"
local basic = quoted('"', basic_item, P '"' / "")
local literal = quoted("'", literal_item, P "'" / "")
local multiline_basic = quoted('"""' * newline ^ -1,
    newline + folded_lines + basic_item + '"' * -P '""', closing '"')
local multiline_literal = quoted("'''" * newline ^ -1,
    newline + literal_item + "'" * -P "''", closing "'")

local in_keys = { basic, literal }
local in_values = { multiline_basic, multiline_literal, basic, literal } -- the longer first

-- The place of the first byte that is no UTF-8, or nil.
local function find_invalid(text)
    local at = utf8_text:match(text)
    return at <= #text and at or nil
end

local function fault_at(text, at)
    local character = text:sub(at, at)
    if character == "\\" then
        return "not an escape"
    elseif character == "" or character == "\n" or character == "\r" then
        return "a string is not closed"
    end
    return "a control character in a string"
end

-- The string of one of the kinds that stands at this place, and where it ends; nil if there is
-- none; nil, a place and a sentence if it is wrong there.
local function read(kinds, text, at)
    for _, kind in ipairs(kinds) do
        local start = kind.open:match(text, at)
        if start then
            local body, body_end = kind.body:match(text, start)
            local quotes, after = kind.close:match(text, body_end)
            if not quotes then
                return nil, body_end, fault_at(text, body_end)
            end
            return body .. quotes, after
        end
    end
    return nil
end

return {
    read = read,
    in_keys = in_keys,
    in_values = in_values,
    find_invalid = find_invalid,
    newline = newline,
    printable = printable,
}
