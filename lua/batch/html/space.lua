-- SPDX-License-Identifier: MIT

--- White space at the ends of text. Taken off by looking at the ends alone, for a pattern would
-- look at every character, and many times at every run of white space.

local byte, find, match, sub = string.byte, string.find, string.match, string.sub

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

--- Takes white space off both ends.
-- @tparam string text
-- @treturn string
-- @treturn boolean whether there was any at the beginning
-- @treturn boolean whether there was any at the end
local function trim(text)
    local has_lead, has_trail = is_space(byte(text, 1)), is_space(byte(text, -1))
    if has_trail then
        text = match(text, "^.*%S") or ""
    end
    if has_lead then
        text = sub(text, find(text, "%S") or #text + 1)
    end
    return text, has_lead, has_trail
end

--- @export
return { trim = trim, trim_end = trim_end }
