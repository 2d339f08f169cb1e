-- SPDX-License-Identifier: MIT
--
-- The option `pages`: any text is a list of pages or refused with a hint, and the ranges that are
-- chosen lie in the document, in order, apart from each other.

local page_list = require "batch.page_list"

local TOTALS = { 1, 2, 10, 999, 10 ^ 9 }

local function check_refusal(message, hint)
    assert(type(message) == "string" and message:find "^pages", "a refusal names the option")
    assert(type(hint) == "string" and #hint > 0, "a refusal has a hint")
end

local function check_ranges(ranges, total)
    local last = -1
    for _, range in ipairs(ranges) do
        assert(range.first > last + 1, "ranges are in order and apart")
        assert(range.last >= range.first and range.last <= total, "ranges lie in the document")
        last = range.last
    end
    assert(#ranges > 0, "there are pages")
end

return function(text)
    local parts, message, hint = page_list.parse(text)
    if not parts then
        return check_refusal(message, hint)
    end
    for _, total in ipairs(TOTALS) do
        local ranges
        ranges, message, hint = page_list.choose(parts, total)
        if ranges then
            check_ranges(ranges, total)
        else
            check_refusal(message, hint)
        end
    end
end
