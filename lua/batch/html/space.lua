-- SPDX-License-Identifier: MIT

--- White space at the ends of text. Taken off by looking at the ends alone, for a pattern would
-- look at every character, and many times at every run of white space.

local core = require("batch.core").html

local byte, match = string.byte, string.match

local function is_space(code)
    return code == 32 or code and code >= 9 and code <= 13
end

--- Takes white space off the end.
-- @tparam string text
-- @treturn string
local function trim_end(text)
    if is_space(byte(text, -1)) then
        return match(text, "^.*%S") or ""
    end
    return text
end

--- @export
-- `trim(text)` takes white space off both ends, and tells whether there was any at the beginning
-- and at the end.
return { trim = core.trim, trim_end = trim_end }
