-- SPDX-License-Identifier: MIT

--- What a server or a store says of jobs, made fit to be shown, and what users say in numbers.

local cjson = require "cjson"
local progress = require "batch.cli.progress"

--- Tells whether a field of an answer has a value.
-- @param value as decoded; JSON's null and an empty text are none
-- @return value or nil
local function present(value)
    return value ~= cjson.null and value ~= "" and value or nil
end

--- Makes a text that others wrote one line without control characters.
-- @param value
-- @treturn string
local function clean(value)
    return (progress.printable(tostring(value)):gsub("[\t\n]", " "))
end

--- Makes a moment of the API's easier to read; it stays in UTC.
-- @tparam string text RFC 3339
-- @treturn string without fractions of the second and the name of the zone
local function format_time(text)
    return (clean(text):gsub("^(%d+%-%d+%-%d+)T(%d+:%d+:%d+)[.%d]*Z$", "%1 %2"))
end

--- Makes the converter of an option that counts.
-- @tparam string name of the option
-- @treturn function for argparse
local function count_of(name)
    return function(text)
        if not text:find("^%d+$") or #text > 15 then
            return nil, ("%s must be an integer from 0, got '%s'"):format(name, text)
        end
        return tonumber(text)
    end
end

--- @export
return {
    clean = clean,
    present = present,
    format_time = format_time,
    count_of = count_of,
}
