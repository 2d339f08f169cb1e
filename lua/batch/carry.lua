-- SPDX-License-Identifier: MIT

--- Carries a function, with all that it holds on to, from one Lua state to another of the same VM.
-- `pack` writes what the function reaches as a flat stream of tokens, `unpack` reads it in one
-- loop: neither recurses, so a list of a hundred thousand nodes is no special case. What cannot be
-- carried is refused with the path to it. Knows nothing of threads, runners or fetch.
--
-- The stream is: the nodes to be made (T table, F function, X export of a module, G globals), `e`,
-- what each of them holds up to its own `e`, the root. An r is a reference to a node, a j joins an
-- upvalue that another function has too, all other tokens are scalars.

local exports = require "batch.exports"
local tokens = require "batch.tokens"

local token = tokens.token

local MAX_PATH = 8 -- steps that a refusal shows; a long list must not fill the message

-- Test runners and nginx run each file or request in an environment of its own that falls back to
-- the globals. Globals do not carry over, so such a one stands for the globals of the other side.
local function environment_of(value)
    if type(value) == "table" and debug.getmetatable(value) then
        return _G
    end
    return value
end

local function worded_step(kind, key)
    if kind == "field" and type(key) ~= "string" then
        local is_plain = type(key) == "number" or type(key) == "boolean"
        return ("field [%s]"):format(is_plain and tostring(key) or type(key))
    end
    return key and ("%s '%s'"):format(kind, key:sub(1, 64)) or kind
end

local Packer = {}
Packer.__index = Packer

local function new_packer(name)
    return setmetatable({
        name = name,
        ids = {}, -- object → its number
        objects = {}, -- number → object, in the order of discovery: the work list
        origins = {}, -- number → {number of the object that holds it, kind of step, key}
        makings = {}, -- tokens that make the nodes
        holdings = {}, -- tokens for what they hold
        joins = {}, -- upvalueid → token that joins this upvalue
    }, Packer)
end

function Packer:refusal(reason, owner, kind, key)
    local backwards = { kind and worded_step(kind, key) }
    while owner and self.origins[owner][1] do
        local origin = self.origins[owner]
        backwards[#backwards + 1] = worded_step(origin[2], origin[3])
        owner = origin[1]
    end
    local words = { self.name }
    for i = #backwards, 1, -1 do
        local from_root = #backwards - i + 1
        if i < MAX_PATH / 2 or from_root <= MAX_PATH / 2 then
            words[#words + 1] = backwards[i]
        elseif i == MAX_PATH / 2 then
            words[#words + 1] = "…"
        end
    end
    return ("%s: %s"):format(table.concat(words, " "), reason)
end

-- Where a module exports a function, that is what is meant, unless the function was given directly:
-- then its own upvalues count.
function Packer:export_of(value, owner)
    self.exports = self.exports or exports.index()
    local is_given = owner == nil or (owner == 1 and type(self.objects[1]) == "table")
    if type(value) == "function" and is_given and not exports.is_c(value) then
        return nil
    end
    return self.exports[value]
end

-- The token that makes `value` on the other side, or nil and why there is none.
function Packer:making(value, owner)
    if rawequal(value, _G) then
        return token("G", "")
    end
    local path = self:export_of(value, owner)
    if path then
        local words = { token("X", tostring(#path)) }
        for i, name in ipairs(path) do
            words[i + 1] = token("s", name)
        end
        return table.concat(words)
    elseif type(value) == "table" then
        if debug.getmetatable(value) then
            return nil, "cannot carry a table with a metatable"
        end
        return token("T", "")
    elseif exports.is_c(value) then
        return nil, "cannot carry a C function that no loaded module exports"
    end
    local is_dumped, bytes = pcall(string.dump, value)
    if not is_dumped then
        return nil, "cannot carry a function: " .. bytes
    end
    return token("F", bytes)
end

-- The token for a value that object `owner` holds; a new object joins the work list.
function Packer:value(value, owner, kind, key)
    local scalar = tokens.scalar(value)
    if scalar then
        return scalar
    elseif type(value) ~= "table" and type(value) ~= "function" then
        return nil, self:refusal("cannot carry a " .. type(value), owner, kind, key)
    end
    if not self.ids[value] then
        local making, reason = self:making(value, owner)
        if not making then
            return nil, self:refusal(reason, owner, kind, key)
        end
        local id = #self.objects + 1
        self.ids[value], self.objects[id], self.makings[id] = id, value, making
        self.origins[id] = { owner, kind, key }
    end
    return token("r", tostring(self.ids[value]))
end

function Packer:hold(...)
    local held, message = self:value(...)
    self.holdings[#self.holdings + 1] = held
    return held ~= nil, message
end

function Packer:hold_table(id)
    for key, value in next, self.objects[id] do
        local is_held, message = self:hold(key, id, "key")
        if is_held then
            is_held, message = self:hold(value, id, "field", key)
        end
        if not is_held then
            return nil, message
        end
    end
    return true
end

function Packer:hold_upvalue(id, index, name, value)
    local identity = debug.upvalueid(self.objects[id], index)
    if self.joins[identity] then
        self.holdings[#self.holdings + 1] = self.joins[identity]
        return true
    end
    self.joins[identity] = token("j", id .. " " .. index)
    if name == "_ENV" then
        value = environment_of(value)
    end
    return self:hold(value, id, "upvalue", name)
end

function Packer:hold_function(id)
    local object = self.objects[id]
    local environment = debug.getfenv and environment_of(debug.getfenv(object))
    local is_held, message = self:hold(environment, id, "environment")
    local index = 1
    local name, value = debug.getupvalue(object, index)
    while is_held and name do
        is_held, message = self:hold_upvalue(id, index, name, value)
        index = index + 1
        name, value = debug.getupvalue(object, index)
    end
    return is_held, message
end

local holders = { T = Packer.hold_table, F = Packer.hold_function }

function Packer:hold_all()
    local id = 1
    while self.objects[id] do
        local hold = holders[self.makings[id]:sub(1, 1)]
        if hold then
            local is_held, message = hold(self, id)
            if not is_held then
                return nil, message
            end
            self.holdings[#self.holdings + 1] = token("e", "")
        end
        id = id + 1
    end
    return true
end

--- Packs a function, or a table of functions and plain data, for `unpack` in another state.
-- Carried along: plain data (shared tables and cycles kept), Lua functions (shared upvalues kept),
-- functions that a loaded module exports, required modules, the globals table, `cjson.null`.
-- @param value what to carry
-- @tparam string name what a refusal calls it, such as `fetch`
-- @treturn[1] string bytes that only the same VM understands
-- @treturn[2] nil
-- @treturn[2] string the path to what cannot be carried, and what it is
local function pack(value, name)
    local packer = new_packer(name)
    local root, message = packer:value(value)
    if not root then
        return nil, message
    end
    local is_held
    is_held, message = packer:hold_all()
    if not is_held then
        return nil, message
    end
    return table.concat(packer.makings) .. token("e", "") .. table.concat(packer.holdings) .. root
end

local makers = {
    T = function() return {} end,
    F = function(bytes) return load(bytes, "=carried", "b") end,
    G = function() return _G end,
    X = function(n_names, read)
        local path = {}
        for i = 1, tonumber(n_names) do
            local _, name = read()
            path[i] = name
        end
        return exports.resolve(path)
    end,
}

local function value_of(letter, payload, nodes)
    if letter == "r" then
        return nodes[tonumber(payload)]
    end
    return tokens.scalar_value(letter, payload)
end

local fillers = {}

function fillers.table(object, read, nodes)
    local letter, payload = read()
    while letter ~= "e" do
        local key = value_of(letter, payload, nodes)
        letter, payload = read()
        rawset(object, key, value_of(letter, payload, nodes))
        letter, payload = read()
    end
end

-- Sets every upvalue, nil ones too: a loaded function has the globals in its first.
fillers["function"] = function(object, read, nodes)
    local letter, payload = read()
    if letter ~= "n" then
        debug.setfenv(object, value_of(letter, payload, nodes))
    end
    local index = 1
    letter, payload = read()
    while letter ~= "e" do
        if letter == "j" then
            local id, other = payload:match("(%d+) (%d+)")
            debug.upvaluejoin(object, index, nodes[tonumber(id)], tonumber(other))
        else
            debug.setupvalue(object, index, value_of(letter, payload, nodes))
        end
        index = index + 1
        letter, payload = read()
    end
end

--- Rebuilds in this state what `pack` wrote in another.
-- @tparam string packed
-- @return[1] the value
-- @treturn[2] nil
-- @treturn[2] string which module could not be loaded here, and why
local function unpack(packed)
    local read, nodes, to_fill = tokens.reader(packed), {}, {}
    local letter, payload = read()
    while letter ~= "e" do
        local node, message = makers[letter](payload, read)
        if node == nil then
            return nil, message
        end
        nodes[#nodes + 1] = node
        to_fill[#nodes] = letter == "T" or letter == "F"
        letter, payload = read()
    end
    for id, node in ipairs(nodes) do
        if to_fill[id] then
            fillers[type(node)](node, read, nodes)
        end
    end
    letter, payload = read()
    return value_of(letter, payload, nodes)
end

--- @export
return { pack = pack, unpack = unpack }
