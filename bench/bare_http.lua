-- SPDX-License-Identifier: MIT
--
-- The floor of the server: lua-http answering every request with so many bytes, and no more.
-- Usage: lua5.4 bare_http.lua BYTES

local headers = require "http.headers"
local server = require "http.server"

local body = ("x"):rep(tonumber(arg[1]))

local listening = assert(server.listen {
    host = "127.0.0.1",
    port = 0,
    tls = false,
    onstream = function(_, stream)
        local request = assert(stream:get_headers())
        if request:get ":method" == "POST" then
            stream:get_body_as_string()
        end
        local answer = headers.new()
        answer:append(":status", "200")
        answer:append("content-type", "application/json")
        answer:append("content-length", ("%d"):format(#body))
        stream:write_headers(answer, false)
        stream:write_chunk(body, true)
    end,
    onerror = function() end,
})
assert(listening:listen())
print(("listening on %s:%d"):format(select(2, listening:localname())))
io.stdout:flush()
listening:loop()
