-- SPDX-License-Identifier: MIT

--- The language of a code block, by the ways in which pages name it.

local find, match = string.find, string.match

-- Said by highlighters that were told nothing.
local NO_LANGUAGE = {
    none = true, default = true, auto = true, plain = true, nohighlight = true, notranslate = true,
    output = true, ["text-primary"] = true,
}

local CLASSES = {
    "%f[%w]language%-([%w+#._-]+)",
    "%f[%w]lang%-([%w+#._-]+)",
    "%f[%w]highlight%-source%-([%w+#._-]+)",
    "%f[%w]highlight%-text%-([%w+#_]+)",
    "%f[%w]highlight%-([%w+#_]+)",
    "%f[%w]brush:%s*([%w+#_]+)",
    "%f[%w]sourceCode%s+([%w+#_]+)",
    "%f[%w]hljs%s+([%w+#_]+)",
}

local function of_class(class)
    for _, pattern in ipairs(CLASSES) do
        local found = match(class, pattern)
        if found and not NO_LANGUAGE[found] then
            return found
        end
    end
end

--- The language that a `pre` names itself or through the `code` in it.
-- @tparam table attributes
-- @treturn ?string
local function of(attributes)
    local named = attributes["data-lang"] or attributes["data-language"] or attributes.lang
    if named and match(named, "^[%w+#._-]+$") then
        return named
    end
    return attributes["code-class"] and of_class(attributes["code-class"])
        or attributes.class and of_class(attributes.class)
end

--- The language that an element around code names.
-- @tparam table attributes
-- @treturn ?string
local function around(attributes)
    local class = attributes.class
    if class and (find(class, "highlight", 1, true) or find(class, "lang", 1, true)
        or find(class, "sourceCode", 1, true)) then
        return of_class(class)
    end
end

--- @export
return { of = of, around = around }
