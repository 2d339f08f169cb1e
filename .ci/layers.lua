-- SPDX-License-Identifier: MIT
--
-- Checks that the files of csrc keep to their layers: what each one includes, itself or through
-- another header, must be permitted to its layer. Prints each breach as file:line and then fails.
-- Usage: lua .ci/layers.lua csrc

-- A file belongs to the layer that owns its name, or else the first word of it. It may include the
-- headers of its own layer, of the layers that it `sees`, and of the libraries that it `knows`. A
-- header whose name has two words is for the files of its first word alone, unless a layer owns it.
local layers = {
    { name = "base", owns = "status clock buffer targets json figures fault_point allocation",
        sees = "", knows = "" },
    { name = "rules", owns = "job caps rotation canonical", sees = "base", knows = "libcrypto" },
    -- pthread only for its atfork handlers: a lock must not live on in a child.
    { name = "owner", owns = "owner place reserve", sees = "base rules", knows = "pthread" },
    { name = "store", owns = "store rows", sees = "base rules owner", knows = "libcrypto sqlite" },
    { name = "queue", owns = "commit events bell readers threads",
        sees = "base rules owner store", knows = "pthread" },
    { name = "hands", owns = "workers", sees = "base queue", knows = "pthread" },
    { name = "runner", owns = "runner task job_live",
        sees = "base rules owner store queue hands", knows = "pthread" },
    { name = "pattern", owns = "pattern", sees = "base", knows = "libpcre2" },
    { name = "grep", owns = "grep", sees = "base pattern", knows = "" },
    { name = "child", owns = "child", sees = "base", knows = "pthread" },
    { name = "coding", owns = "coding", sees = "base", knows = "codec" },
    { name = "http", owns = "http guard charset hosts", sees = "base coding",
        knows = "libcurl pthread" },
    { name = "html", owns = "html", sees = "base", knows = "gumbo" },
    -- The header that makes the Lua versions alike, and every other file that begins with l. Of the
    -- store they see rows, of the hands what a hand is.
    { name = "lua", owns = "compat",
        sees = "base rules store hands runner pattern grep lua-store lua-http lua-child lua-html",
        knows = "lua" },
    { name = "lua-store", owns = "lstore", sees = "base rules owner store lua", knows = "lua" },
    { name = "lua-http", owns = "lhttp lhosts lcharset", sees = "base http lua",
        knows = "libcurl lua" },
    { name = "lua-child", owns = "lchild", sees = "base child lua", knows = "lua" },
    { name = "lua-html", owns = "lhtml", sees = "base html lua", knows = "lua" },
}

-- Any other system header is the C library's, which everyone may include.
local libraries = {
    ["^openssl/"] = "libcrypto",
    ["^sqlite3"] = "sqlite",
    ["^pthread%.h"] = "pthread",
    ["^threads%.h"] = "pthread",
    ["^semaphore%.h"] = "pthread",
    ["^curl/"] = "libcurl",
    ["^pcre2"] = "libpcre2",
    ["^zlib%.h"] = "codec",
    ["^brotli/"] = "codec",
    ["^zstd%.h"] = "codec",
    ["^gumbo%.h"] = "gumbo",
    ["^lua"] = "lua",
    ["^lauxlib%.h"] = "lua",
}

local function set_of(words)
    local set = {}
    for word in words:gmatch("%S+") do
        set[word] = true
    end
    return set
end

local layer_of_noun, lua_layer = {}, nil
for _, layer in ipairs(layers) do
    lua_layer = layer.name == "lua" and layer or lua_layer
    for noun in pairs(set_of(layer.owns)) do
        layer_of_noun[noun] = layer
    end
    layer.sees, layer.knows = set_of(layer.sees), set_of(layer.knows)
    layer.sees[layer.name] = true
end

local function layer_of(name)
    return layer_of_noun[name:match("^[%w_]+")] or layer_of_noun[name:match("^%a+")]
        or (name:match("^l") and lua_layer)
end

-- Whether the header is for the files of another noun alone.
local function is_private(header, name)
    local noun = header:match("^(%a+)_")
    return noun and not layer_of_noun[header:match("^[%w_]+")] and noun ~= name:match("^%a+")
end

local function library_of(header)
    for pattern, library in pairs(libraries) do
        if header:match(pattern) then
            return library
        end
    end
end

-- The includes of a file, in order: {line =, header =, is_own = in quotes}.
local function includes_of(path)
    local includes, number = {}, 0
    for line in io.lines(path) do
        number = number + 1
        local quote, header = line:match('^%s*#%s*include%s*([<"])([^>"]+)')
        if header then
            includes[#includes + 1] = { line = number, header = header, is_own = quote == '"' }
        end
    end
    return includes
end

local folder = arg[1] or "csrc"
local files, includes = {}, {}
local listing = assert(io.popen("cd '" .. folder:gsub("'", "'\\''") .. "' && ls -- *.c *.h"))
for name in listing:lines() do
    files[#files + 1] = name
    includes[name] = includes_of(folder .. "/" .. name)
end
listing:close()
assert(#files > 0, "no C files in " .. folder)

-- The libraries that whoever includes `name` gets to see, each with the way there.
local function libraries_through(name, seen, found)
    if seen[name] or not includes[name] then
        return found
    end
    seen[name] = true
    for _, include in ipairs(includes[name]) do
        local library = not include.is_own and library_of(include.header)
        if library then
            found[library] = found[library] or ("<%s> through %s"):format(include.header, name)
        elseif include.is_own then
            libraries_through(include.header, seen, found)
        end
    end
    return found
end

local n_breaches = 0

local function breach(name, line, text)
    n_breaches = n_breaches + 1
    print(("%s/%s:%d: %s"):format(folder, name, line, text))
end

local function check_own(name, layer, include)
    local other = layer_of(include.header)
    if not includes[include.header] then
        return breach(name, include.line, ("'%s' is not in %s"):format(include.header, folder))
    elseif other and not layer.sees[other.name] then
        local text = "layer '%s' must not include '%s' of layer '%s'"
        return breach(name, include.line, text:format(layer.name, include.header, other.name))
    elseif is_private(include.header, name) then
        local text = "'%s' is for the files of its noun alone"
        return breach(name, include.line, text:format(include.header))
    end
    for library, way in pairs(libraries_through(include.header, {}, {})) do
        if not layer.knows[library] then
            local text = "layer '%s' must not see %s: %s"
            breach(name, include.line, text:format(layer.name, library, way))
        end
    end
end

local function check_system(name, layer, include)
    local library = library_of(include.header)
    if library and not layer.knows[library] then
        local text = "layer '%s' must not include <%s>"
        breach(name, include.line, text:format(layer.name, include.header))
    end
end

for _, name in ipairs(files) do
    local layer = layer_of(name)
    if not layer then
        breach(name, 1, "belongs to no layer: give its noun to one in .ci/layers.lua")
    else
        for _, include in ipairs(includes[name]) do
            (include.is_own and check_own or check_system)(name, layer, include)
        end
    end
end

os.exit(n_breaches == 0 and 0 or 1)
