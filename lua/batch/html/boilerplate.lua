-- SPDX-License-Identifier: MIT

--- What stands on a page around its content: navigation, banners, forms. Known by the elements,
-- roles and names that authors use, with a look at how much it is and how much of it is links, for
-- a section about cookies is no cookie banner.

local find = string.find

local function set_of(words)
    local set = {}
    for word in words:gmatch("%S+") do
        set[word] = true
    end
    return set
end

local ROLES = set_of [[navigation contentinfo search dialog alertdialog complementary menu menubar
    toolbar]]

-- Words in a class or id. SURE ones stand for themselves unless they name most of the page, the
-- others only with links.
local SURE = set_of [[cookie cookies consent gdpr breadcrumb breadcrumbs sidebar sphinxsidebar
    navbar nav navigation navheader navfooter navbox catlinks printfooter editsection pagination
    pager share sharing social newsletter subscribe advert advertisement sponsored promo popup
    modal disqus footer masthead noprint]]
local WITH_LINKS = set_of [[menu header top bottom related toolbar topbar links widget ad
    ads banner prev next panel]]

-- What the words of a name say of cookie banners; one that says two of the three is one, even if it
-- is most of a short page.
local BANNER = {}
for says, words in pairs {
    cookies = "cookie cookies onetrust cookiebot",
    consent = "consent gdpr",
    shape = "banner bar notice notification popup modal overlay dialog message alert prompt",
} do
    for word in words:gmatch("%S+") do
        BANNER[word] = says
    end
end

local NAMED = set_of "div section ul ol dl p table header td li"
local HEADINGS = set_of "h1 h2 h3 h4 h5 h6"
local SCOPES = set_of "article main blockquote figure"

local MOST = 0.35       -- of all text: nothing that large is left out for its name
local NEARLY_ALL = 0.8  -- of all text: the same for cookie banners
local DENSE = 0.5       -- of a text that is in links
local SMALL_FORM = 200  -- bytes
local LARGE_FORM = 0.2  -- of all text

-- Names may be of words in one, as in CookieBanner.
local function is_banner(name)
    local first
    for word in name:gsub("(%l)(%u)", "%1 %2"):lower():gmatch("%w+") do
        local says = BANNER[word]
        if says and first and says ~= first then
            return true
        end
        first = first or says
    end
    return false
end

local function kind_of(name)
    if is_banner(name) then
        return "banner"
    end
    local kind
    for word in name:lower():gmatch("%w+") do
        if SURE[word] then
            return "sure"
        end
        kind = kind or WITH_LINKS[word] and "with_links"
    end
    return kind or false
end

local function is_dense(tree, i)
    return tree.link_lens[i] >= DENSE * tree.lens[i]
end

-- An id may be the anchor of a section of that title.
local function names_of(tree, i)
    local attributes = tree.texts[i]
    local class, id = attributes.class, attributes.id
    if id and HEADINGS[tree.names[i + 1]] and not is_dense(tree, i) then
        id = nil
    end
    return class and id and class .. " " .. id or class or id
end

local function is_named_so(self, i)
    local tree = self.tree
    local name = names_of(tree, i)
    if not name then
        return false
    end
    local kind = self.kinds[name]
    if kind == nil then
        kind = kind_of(name)
        self.kinds[name] = kind
    end
    local most = kind == "banner" and NEARLY_ALL or MOST
    if not kind or tree.lens[i] > most * self.total then
        return false
    end
    return kind ~= "with_links" or is_dense(tree, i)
end

local function has_inside(tree, i, name)
    for j = i + 1, tree.ends[i] do
        if tree.names[j] == name then
            return true
        end
    end
    return false
end

local function class_has(tree, i, ...)
    local class = tree.texts[i] and tree.texts[i].class or ""
    for _, word in ipairs { ... } do
        if find(class, word, 1, true) then
            return true
        end
    end
    return false
end

local by_name = {}

function by_name.nav()
    return true
end

function by_name.footer(self, i)
    return i > self.scope_end and not class_has(self.tree, i, "footnote", "reference")
end

function by_name.header(self, i)
    return i > self.scope_end and not has_inside(self.tree, i, "h1")
end

-- Notes to the text are marked up so as well.
function by_name.aside(self, i)
    return not class_has(self.tree, i, "note", "tip", "warn", "admonition", "callout", "info",
        "caution", "important", "danger", "alert", "example")
end

function by_name.form(self, i)
    local len = self.tree.lens[i]
    return len < SMALL_FORM or len < LARGE_FORM * self.total
end

-- Elements that matter without attributes.
local KNOWN = {}
for _, names in ipairs { by_name, SCOPES } do
    for name in pairs(names) do
        KNOWN[name] = true
    end
end

local function is_boilerplate(self, i, name, attributes)
    local judge = by_name[name]
    if judge and judge(self, i) then
        return true
    elseif not attributes then
        return false
    end
    return ROLES[attributes.role] or NAMED[name] and is_named_so(self, i)
end

--- Finds what is no content.
-- @tparam table tree the flat lists
-- @treturn table a set of nodes, each with all that is in it
-- @treturn table a list of the other nodes that say by name or role what they are
local function find_all(tree)
    local names, texts, ends = tree.names, tree.texts, tree.ends
    local self = { tree = tree, total = tree.lens[1], kinds = {}, scope_end = 0 }
    local skips, landmarks, i, last = {}, { 1 }, 2, #names
    while i <= last do
        local name, attributes = names[i], texts[i]
        if name == "" or not attributes and not KNOWN[name] then
            -- A text, or an element that says nothing: most of them.
            i = i + 1
        elseif is_boilerplate(self, i, name, attributes) then
            skips[i] = true
            i = ends[i] + 1
        else
            if SCOPES[name] or attributes and attributes.role then
                landmarks[#landmarks + 1] = i
            end
            if SCOPES[name] and ends[i] > self.scope_end then
                self.scope_end = ends[i]
            end
            i = i + 1
        end
    end
    return skips, landmarks
end

--- @export
return { find = find_all }
