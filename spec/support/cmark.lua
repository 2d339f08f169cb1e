-- SPDX-License-Identifier: MIT
--
-- Markdown read by the reference parsers: of CommonMark, and of GitHub's dialect for tables.

local cmark = {}

local function pipe_through(command, text)
    local path = os.tmpname()
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
    local pipe = assert(io.popen(command .. " <" .. path))
    local output = pipe:read "*a"
    pipe:close()
    os.remove(path)
    return output
end

--- The HTML that CommonMark makes of Markdown.
function cmark.html(markdown)
    return pipe_through("cmark --unsafe", markdown)
end

--- The HTML that GitHub's dialect makes of it.
function cmark.github_html(markdown)
    return pipe_through("cmark-gfm --unsafe -e table -e strikethrough", markdown)
end

return cmark
