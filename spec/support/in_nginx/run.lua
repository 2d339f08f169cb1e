-- SPDX-License-Identifier: MIT
--
-- Runs the chunk of Lua that a request's body is, and answers with what it returns.

local cjson = require "cjson"

-- The values by the texts of their numbers: a list of JSON has no room for nil.
local function named(is_fine, ...)
    if not is_fine then
        return { raised = tostring((...)) }
    end
    local values = { n = select("#", ...) }
    for i = 1, values.n do
        values[tostring(i)] = (select(i, ...))
    end
    return values
end

local function answer()
    ngx.req.read_body()
    local chunk, message = loadstring(ngx.req.get_body_data(), "@run")
    if not chunk then
        return ngx.print(cjson.encode { raised = message })
    end
    ngx.print(cjson.encode(named(pcall(chunk))))
end

return { answer = answer }
