-- SPDX-License-Identifier: MIT

--- References as addresses: what a link means on a page of a given address (RFC 3986, with the
-- lenience of browsers). Knows nothing of documents.

local has_any = require("batch.core").html.has_any

local byte, find, sub = string.byte, string.find, string.sub

local SLASH = byte "/"

-- What gives no address that others could follow.
local EMPTY_SCHEMES = { javascript = true, data = true, vbscript = true, blob = true, about = true }

local function percent(character)
    return ("%%%02X"):format(character:byte())
end

-- Cleans a reference as browsers do; what may not stand in an address is encoded.
local function clean(reference)
    reference = reference:gsub("^[%z\1-\32]+", ""):match("^.*[^%z\1-\32]") or ""
    if reference:find("[\t\r\n]") then
        reference = reference:gsub("[\t\r\n]", "")
    end
    if reference:find("[^!#-;=?-Z%[%]_a-z~]") then
        reference = reference:gsub("[%z\1-\32\"<>\\^`{|}\127-\255]", percent)
    end
    return reference
end

local function split(address)
    local scheme, rest = address:match("^(%a[%w+.-]*):(.*)$")
    rest = rest or address
    local fragment = rest:match("#.*$") or ""
    rest = rest:sub(1, #rest - #fragment)
    local query = rest:match("%?.*$") or ""
    rest = rest:sub(1, #rest - #query)
    local authority, path = rest:match("^(//[^/]*)(.*)$")
    return {
        scheme = scheme and scheme:lower(), authority = authority, path = path or rest,
        query = query, fragment = fragment,
    }
end

local function without_dots(path)
    if not path:find("/.", 1, true) then
        return path
    end
    local kept, is_folder = {}, false
    for segment in (path:sub(2) .. "/"):gmatch("([^/]*)/") do
        is_folder = segment == "." or segment == ".."
        if segment == ".." then
            kept[#kept] = nil
        elseif segment ~= "." then
            kept[#kept + 1] = segment
        end
    end
    return "/" .. table.concat(kept, "/") .. (is_folder and #kept > 0 and "/" or "")
end

local function join(base, path)
    if path:sub(1, 1) == "/" then
        return without_dots(path)
    end
    return without_dots((base.path:match("^.*/") or "/") .. path)
end

local function is_hierarchical(scheme)
    return scheme == "http" or scheme == "https"
end

local function compose(scheme, authority, path, query, fragment)
    if path == "" then
        path = "/"
    end
    return scheme .. ":" .. authority .. path .. query .. fragment
end

local function resolve(base, reference)
    local parts = split(reference)
    local scheme = parts.scheme
    local is_relative = is_hierarchical(scheme) and scheme == base.scheme and not parts.authority
    if scheme and not is_relative then
        if EMPTY_SCHEMES[scheme] then
            return nil
        elseif is_hierarchical(scheme) and parts.authority then
            return compose(scheme, parts.authority, without_dots(parts.path), parts.query,
                parts.fragment)
        end
        return reference
    elseif not base.scheme then
        return reference ~= "" and reference or nil
    elseif parts.authority then
        return compose(base.scheme, parts.authority, without_dots(parts.path), parts.query,
            parts.fragment)
    elseif parts.path == "" then
        local query = parts.query ~= "" and parts.query or base.query
        return compose(base.scheme, base.authority, base.path, query, parts.fragment)
    end
    return compose(base.scheme, base.authority, join(base, parts.path), parts.query,
        parts.fragment)
end

-- Bytes that most references have none of: what has to be cleaned, and colons.
local UNUSUAL = {}
for code = 0, 255 do
    local character = string.char(code)
    UNUSUAL[#UNUSUAL + 1] = not find(character, "[%w/_.=?&%%#+,;~!$'()*@-]") and character or nil
end
UNUSUAL = table.concat(UNUSUAL)

-- Makes a function that gives the address of a usual reference, with no dots to take out either, or
-- nil for any other.
local function shortcut(base)
    local origin = base.scheme and base.scheme .. ":" .. base.authority
    local folder = base.scheme and without_dots(base.path:match("^.*/") or "/")
    return function(reference)
        if find(reference, "/.", 1, true) then
            return nil
        elseif origin and find(reference, "^/?[%w_%%]") and not has_any(reference, UNUSUAL) then
            return (byte(reference, 1) == SLASH and origin or origin .. folder) .. reference
        end
        local _, path_at = find(reference, "^https?://[%w.-]+:?%d*/")
        if path_at and not has_any(sub(reference, path_at), UNUSUAL) then
            return reference
        end
    end
end

local MAX_LENGTH = 16384 -- of a reference that is worth following
local MAX_KNOWN = 1000 -- references remembered for one page

--- Makes a function that resolves the references of one page.
-- @tparam ?string base the page's address; without it relative references stay what they are
-- @treturn function `(reference)` → address, or nil for what leads nowhere (`javascript:`, `data:`)
local function resolver(base)
    local parts = split(clean(base or ""))
    if not parts.authority then
        parts.scheme = nil
    end
    local known, n_known, quick = {}, 0, shortcut(parts)
    return function(reference)
        local address = known[reference]
        if #reference > MAX_LENGTH then
            return nil
        end
        if address == nil then
            address = quick(reference) or resolve(parts, clean(reference)) or false
            n_known = n_known + 1
            if n_known <= MAX_KNOWN then
                known[reference] = address
            end
        end
        return address or nil
    end
end

--- @export
return { resolver = resolver }
