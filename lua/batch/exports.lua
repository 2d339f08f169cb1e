-- SPDX-License-Identifier: MIT

--- What the loaded modules export: finds, for a function or a table, the path by which another Lua
-- state reaches its own copy of the same thing. Only reads package.loaded; loads nothing.

local STANDARD = {
    "string", "table", "math", "io", "os", "coroutine", "debug", "utf8", "package", "bit", "bit32",
    "jit", "ffi",
}
local MAX_PATH = 4 -- names in a path, the module's included; deeper lie data, not exports

local function is_c(value)
    return debug.getinfo(value, "S").what == "C"
end

-- Whether another state would find the module's file; one that was put into package.loaded by hand
-- exists only here.
local function is_on_path(name)
    return package.searchpath(name, package.path) ~= nil
        or package.searchpath(name, package.cpath) ~= nil
end

-- The names of loaded modules, those first whose names shall win where two export the same. The
-- globals come after the libraries, because a program may have put a library's function there.
local function loaded_names()
    local ranks, names = {}, {}
    for name in pairs(package.loaded) do
        if type(name) == "string" then
            ranks[name] = name == "_G" and 3 or is_on_path(name) and 2 or 4
            names[#names + 1] = name
        end
    end
    for _, name in ipairs(STANDARD) do
        ranks[name] = ranks[name] and 1
    end
    table.sort(names, function(a, b)
        if ranks[a] ~= ranks[b] then
            return ranks[a] < ranks[b]
        end
        return a < b
    end)
    return names, ranks
end

local function extended(path, name)
    local longer = { (unpack or table.unpack)(path) }
    longer[#longer + 1] = name
    return longer
end

-- Enters what `value` gives access to. A Lua function of a module that only this state knows is
-- left out: it can be carried itself, while its module could not be loaded.
local function enter(index, seen, value, path, rank)
    local kind = type(value)
    if kind == "function" and not index[value] and (rank <= 2 or is_c(value)) then
        index[value] = path
    elseif kind == "table" and not seen[value] then
        seen[value] = true
        if rank == 1 then
            index[value] = path
        end
        if #path < (rank == 3 and 2 or MAX_PATH) then
            for key, item in next, value do
                if type(key) == "string" then
                    enter(index, seen, item, extended(path, key), rank)
                end
            end
        end
    end
end

--- Indexes all that the loaded modules export.
-- @treturn table object → path: the module's name, then the names of fields
local function index()
    local names, ranks = loaded_names()
    -- The lists of modules differ from state to state: what stands in them is no export.
    local found = { [package.loaded] = { "package", "loaded" } }
    local seen = { [package.loaded] = true, [package.preload] = true }
    for _, name in ipairs(names) do
        local module = package.loaded[name]
        if type(module) == "table" then
            found[module] = found[module] or { name }
            seen[module] = true
        end
    end
    for _, name in ipairs(names) do
        local module = package.loaded[name]
        if type(module) == "table" then
            seen[module] = nil
        end
        enter(found, seen, module, { name }, ranks[name])
    end
    return found
end

--- Follows a path of `index` in this state, loading its module.
-- @tparam {string,...} path
-- @return[1] what it leads to
-- @treturn[2] nil
-- @treturn[2] string why it leads nowhere
local function resolve(path)
    local is_loaded, value = pcall(require, path[1])
    if not is_loaded then
        return nil, value
    end
    for i = 2, #path do
        value = type(value) == "table" and value[path[i]] or nil
    end
    if value == nil then
        return nil, ("there is no '%s'"):format(table.concat(path, "."))
    end
    return value
end

--- @export
return { index = index, resolve = resolve, is_c = is_c }
