-- SPDX-License-Identifier: MIT
--
-- Tokens for a server under test, made as its operator makes them.

local fresh = require "spec.support.fresh"

local function sha256(text)
    local path = fresh.path "secret"
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
    local pipe = assert(io.popen("openssl dgst -sha256 -r " .. path))
    local hash = pipe:read("*a"):match "^%x+"
    pipe:close()
    os.remove(path)
    return hash
end

--- The lines of a configuration that let callers in.
-- @tparam string ... their names
local function section(...)
    local lines = {}
    for _, name in ipairs { ... } do
        lines[#lines + 1] = ('[[auth.token]]\ncaller = "%s"\nsha256 = "%s"'):format(name,
            sha256("token-of-" .. name))
    end
    return table.concat(lines, "\n")
end

--- What curl sends for a caller.
local function bearer(name)
    return "-H 'authorization: Bearer token-of-" .. name .. "'"
end

return { section = section, bearer = bearer }
