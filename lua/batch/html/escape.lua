-- SPDX-License-Identifier: MIT

--- Text so that Markdown takes it for text: what could become markup gets a backslash, the rest
-- stays as readable as it was.

local has_any = require("batch.core").html.has_any

local byte, find, gsub, sub = string.byte, string.find, string.gsub, string.sub

-- What would end the address of a link, and an escape.
local ENCODED = { [" "] = "%20", ["<"] = "%3C", [">"] = "%3E", ["\\"] = "%5C" }

local function is_word(code)
    return code and (code >= 128 or code >= 97 and code <= 122 or code >= 65 and code <= 90
        or code >= 48 and code <= 57)
end

local function backslashes(text)
    return (gsub(text, "\\()", function(after)
        if after > #text or find(text, "^%p", after) then
            return "\\\\"
        end
    end))
end

local function stars(text)
    return (gsub(text, "()%*+()", function(start, after)
        if sub(text, start - 1, start - 1) ~= " " or sub(text, after, after) ~= " " then
            return (gsub(sub(text, start, after - 1), "%*", "\\*"))
        end
    end))
end

-- Between letters they mean nothing.
local function underscores(text)
    return (gsub(text, "()_+()", function(start, after)
        if not (is_word(byte(text, start - 1)) and is_word(byte(text, after))) then
            return (gsub(sub(text, start, after - 1), "_", "\\_"))
        end
    end))
end

local function tildes(run)
    return (gsub(run, "~", "\\~"))
end

local function brackets(text, in_link)
    if not has_any(text, "[]") then
        return text
    elseif in_link then
        return (gsub(text, "[%[%]]", "\\%0"))
    end
    return (gsub(text, "%](%()", "\\]%1"))
end

--- Escapes a piece of text inside a line.
-- @tparam string text
-- @tparam ?boolean in_link whether brackets would end the link that it is in
-- @treturn string
local function escape_text(text, in_link)
    if not has_any(text, "\\`*_<&~[]") then
        return text
    end
    if find(text, "\\", 1, true) then
        text = backslashes(text)
    end
    if find(text, "`", 1, true) then
        text = gsub(text, "`", "\\`")
    end
    if find(text, "*", 1, true) then
        text = stars(text)
    end
    if find(text, "_", 1, true) then
        text = underscores(text)
    end
    if find(text, "<", 1, true) then
        text = gsub(text, "<%f[%a/!?%z]", "\\<")
    end
    if find(text, "&", 1, true) then
        text = gsub(text, "&(#?%w+;)", "\\&%1")
    end
    if find(text, "~~", 1, true) then
        text = gsub(text, "~~+", tildes)
    end
    return brackets(text, in_link)
end

--- Escapes what would make a heading, a list, a quote or a rule of a line that begins with it.
-- @tparam string line
-- @treturn string
local function line_start(line)
    if not find(line, "^[#+=>%d%[-]") then
        return line
    elseif find(line, "^>") or find(line, "^#+ ") or find(line, "^#+$") or find(line, "^[-+] ")
        or find(line, "^[-+]$") or find(line, "^%-[- ]*$") or find(line, "^=+ *$")
        or find(line, "^%[[^%]]*%]:") then
        return "\\" .. line
    end
    return (gsub(line, "^(%d+)([.)])%f[ %z]", "%1\\%2"))
end

--- Makes a code span.
-- @tparam string code without line ends
-- @treturn string
local function code_span(code)
    if not find(code, "`", 1, true) then
        return "`" .. code .. "`"
    end
    local is_taken, length = {}, 1
    for run in code:gmatch("`+") do
        is_taken[#run] = true
    end
    while is_taken[length] do
        length = length + 1
    end
    local fence = ("`"):rep(length)
    local pad = (find(code, "^`") or find(code, "`$")) and " " or ""
    return fence .. pad .. code .. pad .. fence
end

--- Makes a fenced code block.
-- @tparam string code
-- @tparam ?string language
-- @treturn string
local function code_block(code, language)
    local longest = 2
    if find(code, "```", 1, true) then
        for run in code:gmatch("`+") do
            longest = math.max(longest, #run)
        end
    end
    local fence = ("`"):rep(longest + 1)
    return fence .. (language or "") .. "\n" .. code .. "\n" .. fence
end

local function is_balanced(address)
    local depth = 0
    for parenthesis in address:gmatch("[()]") do
        depth = depth + (parenthesis == "(" and 1 or -1)
        if depth < 0 then
            return false
        end
    end
    return depth == 0
end

--- Makes the address of a link fit for its parentheses.
-- @tparam string address
-- @treturn string
local function destination(address)
    if not has_any(address, " &()<>\\") then
        return address
    end
    if has_any(address, "()") and not is_balanced(address) then
        address = gsub(gsub(address, "%(", "%%28"), "%)", "%%29")
    end
    if find(address, "&", 1, true) and find(address, ";", 1, true) then
        address = gsub(address, "&(#?%w+;)", "&amp;%1")
    end
    return has_any(address, " <>\\") and (gsub(address, "[ <>\\]", ENCODED)) or address
end

--- @export
return {
    text = escape_text,
    line_start = line_start,
    code = code_span,
    code_block = code_block,
    destination = destination,
}
