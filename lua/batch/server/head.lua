-- SPDX-License-Identifier: MIT

--- The head of an HTTP/1 request, from text to a table. Refuses whatever two programs could read
-- differently, for that is how requests are smuggled: lines that end in a bare line feed, folded
-- fields, spaces before a colon, lengths given twice. Pure: knows no socket.

local TOKEN = "[%w!#$%%&'*+.^_`|~-]+"
local REQUEST_LINE = "^(" .. TOKEN .. ") ([^%c ]+) HTTP/(%d)%.(%d)\r\n()"
-- In two steps: together, spaces could be of the one or the other, and a line that is none would be
-- tried in all ways. Whatever a stranger sends must match or fail in one pass.
local NAME = "^(" .. TOKEN .. "):[ \t]*()"
local VALUE = "^([^%z\1-\8\10-\31\127]*)\r\n()"
-- Further digits would leave the integers that a double holds.
local MAX_LENGTH_DIGITS = 15
local SPACE, TAB, SLASH = 32, 9, 47

local head = {}

-- Returns the fields by lower-case name, repeated ones joined, as RFC 9110 has it.
local function parse_fields(text, position, max_fields)
    local fields, n_fields = {}, 0
    while true do
        local name, value_position = text:match(NAME, position)
        local value, next_position = text:match(VALUE, value_position or #text + 1)
        if not value then
            break
        end
        n_fields = n_fields + 1
        if n_fields > max_fields then
            return nil, 431, "more than " .. max_fields .. " header fields"
        end
        local last = value:byte(-1)
        if last == SPACE or last == TAB then
            value = value:match("^.*[^ \t]")
        end
        name = name:lower()
        fields[name] = fields[name] and fields[name] .. ", " .. value or value
        position = next_position
    end
    if text:sub(position) ~= "\r\n" then
        return nil, 400, "a header field is malformed"
    end
    return fields
end

--- Splits a target as it may stand in a request line.
-- @tparam string target without spaces and control characters
-- @treturn[1] string path
-- @treturn[1] string|nil query
-- @treturn[2] nil it is malformed
function head.split_target(target)
    if target:byte() ~= SLASH then
        if target == "*" then
            return target
        end
        local rest = target:match("^[hH][tT][tT][pP][sS]?://[^/?#]+(.*)$")
        if not rest then
            return nil
        end
        target = rest:sub(1, 1) == "/" and rest or "/" .. rest
    end
    if target:find("[#\128-\255]") then
        return nil
    end
    local mark = target:find("?", 1, true)
    if mark then
        return target:sub(1, mark - 1), target:sub(mark + 1)
    end
    return target
end

-- Whether a comma-separated list has the word, in any case.
local function has_word(list, word)
    local pattern = "^[ \t]*" .. word:gsub("%-", "%%-") .. "[ \t]*$"
    for element in list:lower():gmatch("[^,]+") do
        if element:find(pattern) then
            return true
        end
    end
    return false
end

local function find_length(request, length)
    if not length:find("^%d+$") or #length > MAX_LENGTH_DIGITS then
        return nil, 400, "content-length must be one number"
    end
    request.body_length = tonumber(length)
    return true
end

local function find_chunked(request, fields, coding)
    if fields["content-length"] then
        return nil, 400, "content-length and transfer-encoding together"
    elseif request.version == "1.0" then
        return nil, 400, "transfer-encoding in an HTTP/1.0 request"
    elseif coding:lower() ~= "chunked" then
        return nil, 501, "transfer-encoding must be chunked"
    end
    request.is_chunked = true
    return true
end

local function find_body(request, fields)
    local coding, length = fields["transfer-encoding"], fields["content-length"]
    if coding then
        return find_chunked(request, fields, coding)
    elseif length then
        return find_length(request, length)
    end
    return true
end

local function find_expectation(request, fields)
    local expect = fields.expect
    if expect and request.version == "1.1" then
        if expect:lower() ~= "100-continue" then
            return nil, 417, "expect must be 100-continue"
        end
        request.expects_continue = request.is_chunked or (request.body_length or 0) > 0
    end
    return true
end

local function find_persistence(request, fields)
    local connection = fields.connection
    if request.version == "1.0" then
        request.is_last = not (connection and has_word(connection, "keep-alive"))
    elseif connection then
        request.is_last = has_word(connection, "close")
    end
end

local function check_host(request, fields)
    local host = fields.host
    if not host and request.version == "1.1" then
        return nil, 400, "the host field is missing"
    elseif host and host:find("[,%s/@?#]") then
        return nil, 400, "the host field must be one host"
    end
    return true
end

local function parse_request_line(text)
    local method, target, major, minor, position = text:match(REQUEST_LINE)
    if not method then
        return nil, 400, "the request line is malformed"
    elseif major ~= "1" then
        return nil, 505, "HTTP/" .. major .. " does not begin like that here"
    end
    local path, query = head.split_target(target)
    if not path then
        return nil, 400, "the request target is malformed"
    end
    return {
        method = method, path = path, query = query, version = minor == "0" and "1.0" or "1.1",
    }, position
end

local checks = { check_host, find_body, find_expectation }

--- Parses a head.
-- @tparam string text from the request line to the empty line that ends it, both included
-- @tparam table limits `head_fields`, `request_line_bytes`
-- @treturn[1] table request: `method`, `path`, `query`, `version` ("1.0" or "1.1"), `fields`,
--   `body_length` or `is_chunked` if there is a body, `expects_continue`, `is_last` (to be closed)
-- @treturn[2] nil
-- @treturn[2] integer status to answer
-- @treturn[2] string what is wrong
-- @treturn[2] table|nil as much of the request as was understood, for the log
function head.parse(text, limits)
    local request, position, message = parse_request_line(text)
    if not request then
        return nil, position, message
    elseif position - 3 > limits.request_line_bytes then
        return nil, 414, "the request line is too long", request
    end
    local fields, status, why = parse_fields(text, position, limits.head_fields)
    if not fields then
        return nil, status, why, request
    end
    request.fields = fields
    for _, check in ipairs(checks) do
        local is_fine, bad_status, bad = check(request, fields)
        if not is_fine then
            return nil, bad_status, bad, request
        end
    end
    find_persistence(request, fields)
    return request
end

--- Looks at the bytes that came so far.
-- @tparam string bytes
-- @tparam table limits `request_line_bytes`, `head_bytes`
-- @treturn[1] integer where the head ends
-- @treturn[2] nil more is needed
-- @treturn[3] nil
-- @treturn[3] integer status: this will be no head that can be taken
-- @treturn[3] string what is wrong
function head.find_end(bytes, limits)
    local _, stop = bytes:find("\r\n\r\n", 1, true)
    if stop and stop <= limits.head_bytes then
        return stop
    end
    local line_end = bytes:find("\r\n", 1, true)
    if (line_end or #bytes) > limits.request_line_bytes then
        return nil, 414, "the request line is longer than " .. limits.request_line_bytes .. " bytes"
    elseif stop or #bytes > limits.head_bytes then
        return nil, 431, "the header fields are larger than " .. limits.head_bytes .. " bytes"
    elseif bytes:find("[^\r]\n") or bytes:find("^\n") then
        return nil, 400, "a line must end in CR LF"
    end
    return nil
end

--- @export
return head
