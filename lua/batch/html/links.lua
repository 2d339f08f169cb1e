-- SPDX-License-Identifier: MIT

--- Where a document leads: all that a reader could follow, wherever on the page it stands.

local concat = table.concat

-- A link's own words, or those of its images, or how it is described.
local function text_of(tree, i)
    local names, texts, parts, alternatives = tree.names, tree.texts, {}, {}
    for j = i + 1, tree.ends[i] do
        if names[j] == "" then
            parts[#parts + 1] = texts[j]
        elseif names[j] == "img" and texts[j] then
            alternatives[#alternatives + 1] = texts[j].alt
        elseif names[j] ~= "em" and names[j] ~= "strong" and names[j] ~= "code" then
            parts[#parts + 1] = " "
        end
    end
    local attributes = texts[i]
    local description = attributes["aria-label"] or attributes.title or attributes.alt or ""
    for _, text in ipairs { concat(parts), concat(alternatives, " "), description } do
        text = text:gsub("%s+", " "):match("^ ?(.-) ?$")
        if text ~= "" then
            return text
        end
    end
    return ""
end

--- Lists the links in the order of the document, each pair of address and text once.
-- @tparam table tree the flat lists
-- @tparam function resolve from a reference to an address, or nil
-- @treturn table of `{url =, text =}`
local function list(tree, resolve)
    local names, texts, found, is_known = tree.names, tree.texts, {}, {}
    for i = 1, #names do
        local name = names[i]
        local href = (name == "a" or name == "area") and texts[i] and texts[i].href
        local address = href and resolve(href)
        if address and address ~= "" then
            local text = text_of(tree, i)
            local key = address .. "\n" .. text
            if not is_known[key] then
                is_known[key] = true
                found[#found + 1] = { url = address, text = text }
            end
        end
    end
    return found
end

--- @export
return { list = list }
