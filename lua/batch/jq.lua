-- SPDX-License-Identifier: MIT

--- The option `jq`: a filter of the program jq over JSON content. The filter sees the content and
-- nothing else: no environment, no files, no modules, no network; it has 10 s and 512 MiB.
--
-- Its outputs are compact JSON, one a line, strings with their quotes, so that what a filter gives
-- can always be told apart and read back; no output at all is an empty content. JSON Lines work as
-- they do in jq: the filter runs on each. Numbers are doubles: an integer beyond 2^53 comes out
-- rounded, and one beyond all doubles as the largest of them.
-- @module batch.jq

local child = require "batch.child"

local MAX_FILTER = 64 * 1024 -- bytes; the kernel takes no argument of 128 KiB

-- Before the filter. It cannot be an option of jq's so, and import and include, which jq has at the
-- very beginning only, are no syntax.
local HEAD = ". | "

local NO_FILTER = 3 -- jq's exit code

local JSON_HINT = "jq works on JSON content; leave the option out for other content"

local FILTER_HINT = "jq takes a filter such as '.items[].name'; '.' gives the content as it is"

local function is_blank(text)
    return not text:find("%S")
end

--- Checks what can be told of a filter without running jq, which costs too much to be done for each
-- target of a large job while its submitter waits: whether it is one at all, jq says.
-- @param filter
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what is wrong
-- @treturn[2] string a hint
local function check(filter)
    if type(filter) ~= "string" then
        return nil, "jq must be a string, got a " .. type(filter), FILTER_HINT
    elseif is_blank(filter) then
        return nil, "jq must not be blank", FILTER_HINT
    elseif filter:find("%z") then
        return nil, "jq must not hold NUL", FILTER_HINT
    elseif #filter > MAX_FILTER then
        return nil, ("jq must be at most %d bytes, got %d"):format(MAX_FILTER, #filter),
            FILTER_HINT
    end
    return true
end

-- The first line that is jq's own complaint, without what only a user of a shell could need. What
-- the filter printed by debug or stderr comes before it.
local function complaint(errors)
    local text = ("\n" .. errors):match("\n(jq: error[^\n]*)") or errors:match("[^\n]+") or ""
    text = text:gsub("^jq: error: ", ""):gsub("^jq: error %(at [^)]*%):? *", "")
    text = text:gsub(" %(Unix shell quoting issues%?%)", ""):gsub(" at <top%-level>", "")
    return (text:gsub("%$end", "end of filter"):gsub(":$", ""))
end

local function is_out_of_memory(result)
    return result.signal and result.errors:find("cannot allocate memory", 1, true)
end

local function explain(result)
    local no_json = ("\n" .. result.errors):match("\nparse error: ([^\n]*)")
    local said = complaint(result.errors)
    if is_out_of_memory(result) then
        return "jq ran out of memory", "the filter has 512 MiB; take a smaller part of the content"
    elseif result.signal then
        return ("jq was ended by signal %d"):format(result.signal)
    elseif no_json then
        return "jq: the content is not JSON: " .. no_json, JSON_HINT
    elseif result.status == NO_FILTER then
        return "jq: " .. said, "the filter is not one that jq understands"
    end
    return "jq: " .. (said ~= "" and said or "ended with status " .. result.status),
        "the filter does not fit this content; .name? and // pass over what is not there"
end

--- Applies a filter.
-- @tparam string json_text
-- @tparam string filter
-- @tparam ?table ctx `deadline` and `cancel_fd`, either may be nil
-- @treturn[1] string the outputs, one a line, without a line feed at the end
-- @treturn[2] nil
-- @treturn[2] string why there are none
-- @treturn[2] ?string a hint
local function apply(json_text, filter, ctx)
    local is_fine, message, advice = check(filter)
    if not is_fine then
        return nil, message, advice
    elseif is_blank(json_text) then
        return nil, "jq: the content is empty", JSON_HINT
    end
    local result, reason, hint = child.run({
        program = "jq",
        package = "jq",
        -- The folder for modules is one where none can be.
        arguments = { "-L", "/dev/null", "--compact-output", HEAD .. filter },
        input = json_text,
        seconds = 10,
        memory = 512 * 1024 * 1024,
        max_output = 64 * 1024 * 1024,
        slow_hint = "the filter may never end; limit(n; …) and first(…) end what goes on",
        large_hint = "limit(n; …) gives the first n outputs",
    }, ctx)
    if not result then
        return nil, reason, hint
    elseif result.status == 0 then
        return (result.output:gsub("\n$", ""))
    end
    return nil, explain(result)
end

--- @export
return { apply = apply, check = check }
