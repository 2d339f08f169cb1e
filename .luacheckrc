-- The Lua files run on 5.3, 5.4 and LuaJIT, so a name that any of these has is known.
std = "max"
max_line_length = 100
-- A method need not use self, and _ is there to be ignored.
self = false

files["spec/**/*_spec.lua"] = { std = "+busted" }
files["lua/batch/openresty.lua"] = { std = "+ngx_lua" }
files["lua/batch/openresty/*.lua"] = { std = "+ngx_lua" }
files["examples/openresty/*.lua"] = { std = "+ngx_lua" }
files["spec/support/in_nginx/*.lua"] = { std = "+ngx_lua" }
files["bench/nginx_load.lua"] = { std = "+ngx_lua" }
files["**/*.rockspec"] = { std = "+rockspec" }
