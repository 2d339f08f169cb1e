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

--- @export
return { declare = declare, read = read }
