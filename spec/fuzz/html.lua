-- SPDX-License-Identifier: MIT
--
-- Pages of any bytes, in all modes: what comes out is UTF-8, cleaned HTML has nothing in it that
-- acts, and links are addresses. The first line is where the page came from.

local core = require "batch.core"
local html = require "batch.html"

local function check_utf8(text, what)
    assert(core.http.decode(text, "utf-8") == text, what .. " is UTF-8")
end

-- Whatever stands in a text or a quoted value is escaped, so a tag is what begins with "<".
local function check_cleaned(cleaned)
    for tag in cleaned:lower():gmatch "<[^>]*>?" do
        local name, rest = tag:match "^</?([%w-]+)(.*)>$"
        assert(name, "a tag has a name and an end")
        assert(name ~= "script" and name ~= "style" and name ~= "iframe" and name ~= "object",
            "nothing that acts is left")
        assert(not rest:gsub('="[^"]*"', ""):find "%f[%w]on%w+", "no handler is left")
        assert(not rest:find '="%s*javascript:', "no address is a script")
    end
end

return function(input)
    local base, bytes = input:match "^([^\n]*)\n(.*)$"
    local source = core.http.decode(bytes or input, "utf-8")
    local document, message, hint = html.read(source, base and "http://a.example/" .. base
        or "http://a.example/")
    if not document then
        assert(#message > 0 and #hint > 0, "a refusal has a sentence and a hint")
        return
    end
    check_utf8(document.title or "", "a title")
    check_utf8(document:markdown(), "Markdown")
    check_utf8(document:text(), "text")
    local cleaned = document:html()
    check_utf8(cleaned, "HTML")
    check_cleaned(cleaned)
    for _, link in ipairs(document:links()) do
        check_utf8(link.url, "an address")
        check_utf8(link.text, "a link's text")
        assert(link.url:find "^%a[%w+.-]*:", "a link has a whole address")
    end
end
