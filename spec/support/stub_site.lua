-- SPDX-License-Identifier: MIT
--
-- A site for fetches of specs, served by an nginx of its own: it answers everything below /item/
-- after a while, and counts how often each address was asked for.

local nginx = require "spec.support.nginx"

local LOCATIONS = [[
location /item/ {
    content_by_lua_block {
        ngx.shared.spec:incr(ngx.var.request_uri, 1, 0)
        ngx.sleep(tonumber(ngx.var.arg_seconds) or 0.002)
        local text = "content of " .. ngx.var.uri
        ngx.header.content_length = #text
        ngx.print(text)
    }
}
location = /counts {
    content_by_lua_block {
        for _, key in ipairs(ngx.shared.spec:get_keys(0)) do
            ngx.say(key, " ", ngx.shared.spec:get(key))
        end
    }
}
]]

local Site = {}
Site.__index = Site

--- Starts a site.
local function start()
    local server = nginx.start { workers = 1, locations = LOCATIONS,
        http = "keepalive_requests 1000000;" }
    return setmetatable({ server = server }, Site)
end

--- The target of a name, which is answered after some seconds (0.002).
function Site:target(name, seconds)
    local query = seconds and "?seconds=" .. seconds or ""
    return { url = ("http://127.0.0.1:%d/item/%s%s"):format(self.server.port, name, query) }
end

--- How many addresses were asked for, how many of them more than once, and how often in all.
-- @treturn integer
-- @treturn integer
-- @treturn integer
function Site:counts()
    local n_known, n_repeated, n_requests = 0, 0, 0
    for count in self.server:get("/counts").body:gmatch " (%d+)\n" do
        n_known, n_requests = n_known + 1, n_requests + tonumber(count)
        n_repeated = n_repeated + (count ~= "1" and 1 or 0)
    end
    return n_known, n_repeated, n_requests
end

return { start = start }
