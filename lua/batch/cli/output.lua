-- SPDX-License-Identifier: MIT

--- Outcomes as JSON Lines, with their keys in a fixed order, so that two runs can be compared byte
-- by byte. Knows neither the store nor who reads.

local json = require "batch.json"

local BUFFER_BYTES = 64 * 1024
local BROKEN_PIPE = 32 -- EPIPE; the same on every system that has it

-- The well-formed sequences of more than one byte (RFC 3629, section 4), for LuaJIT, which has no
-- utf8 library.
local SEQUENCES = {
    "[\194-\223][\128-\191]",
    "\224[\160-\191][\128-\191]",
    "[\225-\236\238\239][\128-\191][\128-\191]",
    "\237[\128-\159][\128-\191]",
    "\240[\144-\191][\128-\191][\128-\191]",
    "[\241-\243][\128-\191][\128-\191][\128-\191]",
    "\244[\128-\143][\128-\191][\128-\191]",
}

local function is_utf8(text)
    if utf8 then
        -- Lua 5.3 lets surrogates pass.
        local may_have_surrogates = text:find("\237", 1, true)
        return utf8.len(text) ~= nil
            and not (may_have_surrogates and text:find("\237[\160-\191]"))
    end
    if not text:find("[\128-\255]") then
        return true
    end
    -- An ASCII letter in the place of each sequence, lest their neighbours join into a new one.
    for _, sequence in ipairs(SEQUENCES) do
        text = text:gsub(sequence, "x")
    end
    return not text:find("[\128-\255]")
end

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- The two digits of each 12 bits: half of the work of three bytes in one look-up.
local PAIRS = {}
for high = 0, 63 do
    for low = 0, 63 do
        PAIRS[high * 64 + low] = DIGITS:sub(high + 1, high + 1) .. DIGITS:sub(low + 1, low + 1)
    end
end

local function encode_three(bytes)
    local first, second, third = bytes:byte(1, 3)
    local rest = second % 16
    return PAIRS[first * 16 + (second - rest) / 16] .. PAIRS[rest * 256 + third]
end

local function base64(bytes)
    local n_missing = -#bytes % 3
    local digits = (bytes .. ("\0"):rep(n_missing)):gsub("...", encode_three)
    return digits:sub(1, #digits - n_missing) .. ("="):rep(n_missing)
end

local function encode_result(result)
    local content, encoding = result.content, ""
    if not is_utf8(content) then
        content, encoding = base64(content), '"encoding":"base64",'
    end
    return '{"content":' .. json.encode_string(content) .. "," .. encoding
        .. '"meta":' .. (result.meta and json.encode(result.meta) or "{}") .. "}"
end

local FIELDS = {
    { name = "url", key = ',"url":', encode = json.encode_string },
    { name = "options", key = ',"options":', encode = json.encode },
    { name = "status", key = ',"status":', encode = json.encode_string },
    { name = "result", key = ',"result":', encode = encode_result },
    { name = "error", key = ',"error":', encode = json.encode_string },
    { name = "hint", key = ',"hint":', encode = json.encode_string },
    { name = "attempts", key = ',"attempts":', encode = json.encode_number },
    { name = "started_at", key = ',"started_at":', encode = json.encode_time },
    { name = "finished_at", key = ',"finished_at":', encode = json.encode_time },
}

--- Encodes an outcome as one JSON object on one line. Fields that it has not are left out; content
-- that is not UTF-8 becomes base64, with `"encoding":"base64"` beside it.
-- @tparam table outcome a target table with an outcome
-- @tparam number line of the input that it answers, from 1
-- @treturn string without a line's end
local function encode_outcome(outcome, line)
    local parts, n = { '{"line":', json.encode_number(line) }, 2
    for i = 1, #FIELDS do
        local field = FIELDS[i]
        local value = outcome[field.name]
        if value ~= nil then
            parts[n + 1], parts[n + 2] = field.key, field.encode(value)
            n = n + 2
        end
    end
    parts[n + 1] = "}"
    return table.concat(parts)
end

local methods = {}
local metatable = { __name = "output", __index = methods }

function metatable.__tostring(self)
    return ("output to %s"):format(self._name)
end

local function refuse(self, message, number)
    local code = number == BROKEN_PIPE and "broken_pipe" or "output"
    return nil, ("cannot write %s: %s"):format(self._name, message), code
end

--- Begins to write outcomes. A file is emptied.
-- @tparam ?string path nil: standard output
-- @treturn[1] output
-- @treturn[2] nil
-- @treturn[2] string what failed
local function open(path)
    local self = setmetatable({ _name = path or "standard output" }, metatable)
    if not path then
        self._file = io.stdout
    else
        local message
        self._file, message = io.open(path, "wb")
        if not self._file then
            return nil, "cannot write " .. message
        end
    end
    self._file:setvbuf("full", BUFFER_BYTES)
    return self
end

--- Writes one outcome; it may stay in the buffer until `flush`.
-- @tparam table outcome
-- @tparam number line
-- @treturn[1] true
-- @treturn[2] nil
-- @treturn[2] string what failed
-- @treturn[2] string `broken_pipe` when its reader is gone, else `output`
function methods:write(outcome, line)
    return self:write_text(encode_outcome(outcome, line), "\n")
end

--- Writes lines that are encoded already; they may stay in the buffer until `flush`.
-- @tparam string ... texts, together with the ends of the lines
-- @return as `write`
function methods:write_text(...)
    local is_written, message, number = self._file:write(...)
    if not is_written then
        return refuse(self, message, number)
    end
    return true
end

--- Hands all that was written to the operating system.
-- @return as `write`
function methods:flush()
    local is_flushed, message, number = self._file:flush()
    if not is_flushed then
        return refuse(self, message, number)
    end
    return true
end

--- Ends the output. Standard output is only flushed.
-- @return as `write`
function methods:close()
    if self._file == io.stdout then
        return self:flush()
    end
    local is_closed, message, number = self._file:close()
    if not is_closed then
        return refuse(self, message, number)
    end
    return true
end

--- @export
return {
    open = open,
    encode_outcome = encode_outcome,
}
