-- SPDX-License-Identifier: MIT

--- The option `grep`: the lines of a text that a PCRE2 pattern matches. Here are the sentences for
-- what goes wrong; the search is done by batch.core, in bounded time.

local grep = require("batch.core").grep

local N_CONTEXT = 3 -- lines on either side of a match
local CPU_SECONDS = 5 -- for one text

local PATTERN_HINT = "grep takes a PCRE2 regular expression; put a backslash before a character"
    .. " like ( [ * + ? that is meant literally"
local SLOW_HINT = "a repeat within a repeat, like (a+)+, tries very many ways to part a line;"
    .. " leave the outer one out, or make the inner one possessive, like a++; and a line of"
    .. " megabytes, like JSON without line breaks, needs a simple pattern"

local function refuse_pattern(reason)
    return nil, "the grep pattern is wrong: " .. reason, PATTERN_HINT
end

--- Checks a pattern without a text.
-- @tparam string pattern
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what is wrong, and at which byte
-- @treturn[2] string a hint
local function check(pattern)
    local is_fine, _, reason = grep.check(pattern)
    if not is_fine then
        return refuse_pattern(reason)
    end
    return true
end

local function refuse(code, reason, line)
    if code == "timeout" then
        return nil, ("the grep pattern takes too long on line %d"):format(line), SLOW_HINT
    elseif code == "closed" then
        return nil, "cancelled"
    elseif line then
        return nil, ("the grep pattern cannot be matched on line %d: %s"):format(line, reason),
            PATTERN_HINT
    end
    return refuse_pattern(reason)
end

--- Finds lines, each matched for itself: `^` and `$` are its ends, nothing matches across them.
-- @tparam string text read as UTF-8; other bytes are matched by nothing
-- @tparam string pattern
-- @tparam ?boolean has_context with three lines around each match, groups parted by `--`
-- @tparam[opt] table ctx a `cancel_fd` in it ends the search
-- @treturn[1] string the lines, without the last one's end
-- @treturn[1] integer how many matched
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] ?string a hint
local function lines(text, pattern, has_context, ctx)
    local found, matches_or_code, reason, line = grep.lines(text, pattern,
        has_context and N_CONTEXT or 0, CPU_SECONDS, ctx and ctx.cancel_fd)
    if not found then
        return refuse(matches_or_code, reason, line)
    end
    return (found:gsub("\r?\n$", "")), matches_or_code
end

--- @export
return { lines = lines, check = check }
