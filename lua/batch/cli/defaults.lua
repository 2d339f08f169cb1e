-- SPDX-License-Identifier: MIT

--- What the command line says for every target of a list that does not say otherwise: the options
-- of the built-in pipeline by the same names.

local OPTIONS = {
    { name = "mode", value = "MODE", sentence = "What to show: auto (HTML as Markdown, a PDF's "
        .. "text, other text as it is, the rest as bytes), raw (bytes), text, markdown, html, "
        .. "links or meta. Default: auto." },
    { name = "pages", value = "PAGES", sentence = "Of a PDF only these, such as 1-3,7,10-." },
    { name = "jq", value = "FILTER", sentence = "Apply a jq filter to JSON." },
    { name = "grep", value = "PATTERN", sentence = "Keep the lines that this PCRE2 pattern "
        .. "matches." },
    { name = "question", value = "TEXT", sentence = "Ask the language model of [fetch.llm] this "
        .. "about each." },
    { name = "context", sentence = "With --grep: three lines around each match; with --question: "
        .. "the passages that the answer rests on." },
    { name = "recover", sentence = "Take the newest archived copy of what is gone, blocked or "
        .. "unreachable." },
}

--- Declares them.
-- @param command of argparse
local function declare(command)
    for _, option in ipairs(OPTIONS) do
        local spelling = "--" .. option.name
        if option.value then
            command:option(spelling, option.sentence .. " For targets that do not say.")
                :argname(option.value)
        else
            command:flag(spelling, option.sentence)
        end
    end
end

--- Reads them.
-- @tparam table args as argparse returns them
-- @treturn table options of a target, maybe none
local function read(args)
    local options = {}
    for _, option in ipairs(OPTIONS) do
        options[option.name] = args[option.name]
    end
    return options
end

local function is_free_text(spelling)
    for _, option in ipairs(OPTIONS) do
        if spelling == "--" .. option.name then
            return option.value ~= nil and option.name ~= "mode"
        end
    end
    return false
end

--- Binds values that begin with a dash to their options, as `--pages -3`, which argparse would take
-- for two options.
-- @tparam {string,...} arguments of the command line
-- @treturn {string,...} the same, with `--pages=-3` in its place
local function bind_dashes(arguments)
    local bound, is_over = {}, false
    for _, word in ipairs(arguments) do
        local last = bound[#bound]
        is_over = is_over or word == "--"
        if not is_over and is_free_text(last) and word:find "^%-[^-]" then
            bound[#bound] = last .. "=" .. word
        else
            bound[#bound + 1] = word
        end
    end
    return bound
end

--- @export
return { declare = declare, read = read, bind_dashes = bind_dashes }
