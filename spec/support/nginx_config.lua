-- SPDX-License-Identifier: MIT
--
-- The nginx.conf of a spec: everything below one folder, and what every test wants to ask of it.

local MODULES = "/usr/lib/nginx/modules"

-- What the new master of an upgrade has to find in its environment again: nginx empties it.
local KEPT = "env LD_PRELOAD;\nenv ASAN_OPTIONS;\nenv UBSAN_OPTIONS;\nenv TSAN_OPTIONS;"

local CONFIG = [[
load_module ${modules}/ndk_http_module.so;
load_module ${modules}/ngx_http_lua_module.so;
${user}
${kept}
daemon on;
worker_processes ${workers};
worker_rlimit_nofile 4096;
pid ${folder}/nginx.pid;
lock_file ${folder}/nginx.lock;
error_log ${folder}/error.log info;
${main}
events { worker_connections 2048; }
http {
    access_log off;
    default_type text/plain;
    client_body_temp_path ${folder}/body;
    proxy_temp_path ${folder}/proxy;
    fastcgi_temp_path ${folder}/fastcgi;
    uwsgi_temp_path ${folder}/uwsgi;
    scgi_temp_path ${folder}/scgi;
    lua_package_path "${folder}/?.lua;${root}/lua/?.lua;${root}/?.lua;;";
    lua_package_cpath "${build}/?.so;;";
    lua_shared_dict spec 4m;
    ${http}
    ${init}
    ${init_worker}
    server {
        listen 127.0.0.1:${port} backlog=2048;
        location = /pid { content_by_lua_block { ngx.print(ngx.worker.pid()) } }
        location = /hello { content_by_lua_block { ngx.print("hello") } }
        location = /run {
            client_body_buffer_size 256k;
            content_by_lua_block { require("spec.support.in_nginx.run").answer() }
        }
        ${locations}
    }
}
]]

local function block(directive, code)
    return code and ("%s {\n%s\n}"):format(directive, code) or ""
end

--- The text of an nginx.conf. `${port}` and the like are replaced in what is given, too.
-- @tparam table parts
--
-- - `folder` for its files, `port`, `root` (the checkout), `build` (the folder of the C module)
-- - `workers` (4), code for `init` and `init_worker`, directives for `locations`, `http` and `main`
-- - `user` of the workers; only root may give one
-- - `is_environment_kept`: what a sanitizer has in the environment is for nginx's children, too
return function(parts)
    local values = {
        modules = MODULES, root = parts.root, build = parts.build, folder = parts.folder,
        port = parts.port, user = parts.user and ("user %s;"):format(parts.user) or "",
        kept = parts.is_environment_kept and KEPT or "",
        workers = parts.workers or 4, main = parts.main or "", http = parts.http or "",
        init = block("init_by_lua_block", parts.init),
        init_worker = block("init_worker_by_lua_block", parts.init_worker),
        locations = parts.locations or "",
    }
    return (CONFIG:gsub("%${([%w_]+)}", function(name) return (values[name]) end)
        :gsub("%${([%w_]+)}", function(name) return (values[name]) end))
end
