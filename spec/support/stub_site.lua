-- SPDX-License-Identifier: MIT
--
-- A site for fetches of specs, served by an nginx of its own: it answers everything below /item/
-- after a while, and notes when each address was asked for.

local nginx = require "spec.support.nginx"

local LOCATIONS = [[
location /item/ {
    content_by_lua_block {
        ngx.update_time()
        local moments = ngx.shared.spec:get(ngx.var.request_uri) or ""
        ngx.shared.spec:set(ngx.var.request_uri, moments .. " " .. ngx.now())
        ngx.sleep(tonumber(ngx.var.arg_seconds) or 0.002)
        local text = "content of " .. ngx.var.uri
        ngx.header.content_length = #text
        ngx.print(text)
    }
}
location = /requests {
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

--- When each address was asked for.
-- @treturn {table,...} one for each address: the moments, as seconds since the epoch
function Site:requests()
    local all = {}
    for line in self.server:get("/requests").body:gmatch "[^\n]+" do
        local moments = {}
        for moment in line:match(" .*$"):gmatch "%S+" do
            moments[#moments + 1] = tonumber(moment)
        end
        all[#all + 1] = moments
    end
    return all
end

--- How many addresses were asked for, how many of them more than once, and how often in all.
-- @treturn integer
-- @treturn integer
-- @treturn integer
function Site:counts()
    local all, n_repeated, n_requests = self:requests(), 0, 0
    for _, moments in ipairs(all) do
        n_requests = n_requests + #moments
        n_repeated = n_repeated + (#moments > 1 and 1 or 0)
    end
    return #all, n_repeated, n_requests
end

return { start = start }
