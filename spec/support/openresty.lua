-- SPDX-License-Identifier: MIT
--
-- nginx with batch.openresty in it, for specs: a store in the test's folder, a fetch that does what
-- its URL says, and the API below /api.

local cjson = require "cjson"
local fresh = require "spec.support.fresh"
local nginx = require "spec.support.nginx"

-- The caller is whoever a header names; nobody is let in without it.
local LOCATIONS = [[
location /api/ {
    client_body_buffer_size 1k;
    client_max_body_size 16m;
    content_by_lua_block {
        require("batch.openresty").serve { prefix = "/api", caller = function()
            return ngx.var.http_x_caller, ngx.var.http_x_class
        end }
    }
}
location = /metrics { content_by_lua_block { require("batch.openresty").metrics() } }
]]

local DEFAULTS = {
    fetch = "spec.support.in_nginx.fetch", workers = 4, durability = "normal",
    jobs_per_caller = 10000, jobs_total = 10000, targets_per_job = 10000,
}

-- The code that starts a runner with the fields given; `raw` ones are code themselves.
local function start_code(config)
    local words, all = {}, { store = fresh.path "batch.db" }
    for _, fields in ipairs { DEFAULTS, config or {} } do
        for name, value in pairs(fields) do
            all[name] = value
        end
    end
    for name, value in pairs(all) do
        if name ~= "raw" then
            words[#words + 1] = ("%s = %s"):format(name,
                type(value) == "string" and ("%q"):format(value) or tostring(value))
        end
    end
    words[#words + 1] = all.raw
    return ('require("batch.openresty").start {\n%s\n}'):format(table.concat(words, ",\n"))
end

-- The parts of nginx's configuration for a test's.
-- @tparam[opt] table parts as for nginx.start; `batch`: fields of the runner
local function parts_of(parts)
    local all = { init_worker = "assert(" .. start_code(parts and parts.batch) .. ")" }
    for name, part in pairs(parts or {}) do
        all[name] = part
    end
    all.locations = LOCATIONS .. (all.locations or "")
    return all
end

--- Starts nginx with a runner in each worker.
local function start(parts)
    return nginx.start(parts_of(parts))
end

--- The body of a submit of targets, by their URLs.
local function body(urls)
    local targets = {}
    for i, url in ipairs(urls) do
        targets[i] = { url = url }
    end
    return cjson.encode { targets = targets }
end

--- Headers of a caller's request.
local function as(caller, more)
    local headers = { ["x-caller"] = caller, ["content-type"] = "application/json" }
    for name, value in pairs(more or {}) do
        headers[name] = value
    end
    return headers
end

return { start = start, start_code = start_code, parts_of = parts_of, body = body, as = as }
