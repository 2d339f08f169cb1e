-- SPDX-License-Identifier: MIT

--- Which hosts are this machine and no other: where a server without tokens may listen, and whom a
-- request must be meant for that nobody vouches for. Goes by spelling alone and asks no resolver.

local field_types = require "batch.field_types"

-- Spelled as addresses are printed: forms such as 127.1 or 0x7f.0.0.1 are not looked into.
local function is_loopback(host)
    if host:lower() == "localhost" or host == "[::1]" then
        return true
    end
    local bytes = { host:match("^127%.(%d+)%.(%d+)%.(%d+)$") }
    for _, byte in ipairs(bytes) do
        if #byte > 3 or tonumber(byte) > 255 or byte:find("^0%d") then
            return false
        end
    end
    return #bytes == 3
end

local HINT = "ask for it as localhost or 127.0.0.1, or configure tokens"

--- Refuses what a page in somebody's browser sends. The page's own name may be made to lead to this
-- machine once the page has been loaded (DNS rebinding); the browser then takes the local server
-- for the page's own, and lets the page read its answers. The Host is still the page's name.
-- @tparam ?string host the request's Host, which every browser sends
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string a sentence
-- @treturn[2] string a hint
local function check_host(host)
    if not host or is_loopback(host:match("^(.-):%d*$") or host) then
        return true
    end
    return nil, "without tokens only requests to this machine's own address are taken, not to "
        .. field_types.shown(host), HINT
end

--- @export
return { is_loopback = is_loopback, check_host = check_host }
