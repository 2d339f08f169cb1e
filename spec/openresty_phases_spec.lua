-- SPDX-License-Identifier: MIT
--
-- docs/openresty.md tells in a table what may be called in which phase of nginx. Here each of its
-- cells is tried.

local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local make_certificate = require "spec.support.certificate"
local nginx = require "spec.support.nginx"
local openresty = require "spec.support.openresty"

-- What the table's columns stand for.
local FUNCTIONS = {
    start = { "start" },
    read = { "status", "results", "jobs", "stats" },
    write = { "submit", "touch", "wait", "cancel" },
    serve = { "serve" },
    metrics = { "metrics" },
}
-- Phases of a request on its own location or server, in the order in which they come.
local OF_A_REQUEST = { "ssl_cert", "set", "server_rewrite", "rewrite", "access", "content",
    "balancer", "header_filter", "body_filter", "log" }

local IN_INIT = "open the runner in init_worker_by_lua: nothing survives the fork"
local CALL_START = "call start in init_worker_by_lua"

local HTTP = [[
upstream nowhere {
    server 0.0.0.1;
    balancer_by_lua_block {
        require("spec.support.in_nginx.phases").try_asked "balancer"
        require("ngx.balancer").set_current_peer("127.0.0.1", ${port})
    }
}
server {
    listen 127.0.0.1:${tls_port} ssl;
    ssl_certificate ${certificate};
    ssl_certificate_key ${key};
    ssl_certificate_by_lua_block { require("spec.support.in_nginx.phases").try_all("ssl_cert") }
    location / { return 204; }
}
]]

local LOCATIONS = [[
server_rewrite_by_lua_block { require("spec.support.in_nginx.phases").try_asked "server_rewrite" }
location = /phase {
    set_by_lua_block $nothing { require("spec.support.in_nginx.phases").try_asked "set" return "" }
    rewrite_by_lua_block { require("spec.support.in_nginx.phases").try_asked "rewrite" }
    access_by_lua_block { require("spec.support.in_nginx.phases").try_asked "access" }
    content_by_lua_block { require("spec.support.in_nginx.phases").try_asked "content" }
    header_filter_by_lua_block { require("spec.support.in_nginx.phases").try_asked "header_filter" }
    body_filter_by_lua_block { require("spec.support.in_nginx.phases").try_asked "body_filter" }
    log_by_lua_block { require("spec.support.in_nginx.phases").try_asked "log" }
}
location = /balanced { proxy_pass http://nowhere/hello; }
]]

-- One worker starts in init_worker, the other one in a timer.
local INIT_WORKER = [[
local phases = require "spec.support.in_nginx.phases"
if ngx.worker.id() == 0 then
    phases.try_all "init_worker"
else
    ngx.timer.at(0, function() phases.try("timer", "start") end)
end
]]

local EXIT_WORKER = [[
exit_worker_by_lua_block {
    if ngx.worker.id() == 1 then
        require("spec.support.in_nginx.phases").try_all "exit_worker"
    end
}
]]

-- The table: phase → function → "works", "refused" or "raises".
local function read_table()
    local file = assert(io.open "docs/openresty.md")
    local head, rows = file:read("*a"):match "\n| phase |([^\n]+)\n| [^\n]+\n(.-\n)\n"
    file:close()
    local columns, cells = {}, {}
    for column in head:gmatch "([^|]+)|" do
        columns[#columns + 1] = column
    end
    for phase, row in rows:gmatch "| `([%l_]+)` |([^\n]+)\n" do
        local i = 0
        cells[phase] = {}
        for cell in row:gmatch "%s*(%l+)%s*|" do
            i = i + 1
            for word in columns[i]:gmatch "%l+" do
                for _, name in ipairs(FUNCTIONS[word]) do
                    cells[phase][name] = cell
                end
            end
        end
    end
    return cells
end

local function all_verdicts(server)
    return (server:run [[return require("spec.support.in_nginx.phases").verdicts()]])
end

local function await_verdict(server, phase, name)
    eventually(function() return (all_verdicts(server)[phase] or {})[name] end)
end

local function try_requests(server)
    for _, phase in ipairs(OF_A_REQUEST) do
        local path = phase == "balancer" and "/balanced" or "/phase"
        for _, name in ipairs { "silent", "serve", "metrics" } do
            server:request("GET", ("%s?phase=%s&try=%s"):format(path, phase, name))
        end
    end
end

-- Has all be tried in every phase that the table has.
local function try_everything(cells)
    local certificate, key = make_certificate()
    local values = { certificate = certificate, key = key, tls_port = nginx.free_port() }
    local server = nginx.start {
        workers = 2, init_worker = INIT_WORKER, locations = LOCATIONS,
        main = "worker_shutdown_timeout 200ms;", -- for the jobs that last
        http = HTTP:gsub("%${([%l_]+)}", values) .. EXIT_WORKER,
        init = ([[
            ngx.shared.spec:set("store", %q)
            require("spec.support.in_nginx.phases").try_all "init"
        ]]):format(fresh.path "batch.db"),
    }
    await_verdict(server, "timer", "start")
    for phase in pairs(cells) do
        server:run(("require('spec.support.in_nginx.phases').prepare %q"):format(phase))
    end
    os.execute(("curl -sk --noproxy '*' https://127.0.0.1:%d/"):format(values.tls_port))
    try_requests(server)
    server:run [[
        ngx.timer.at(0, function()
            require("spec.support.in_nginx.phases").try_all("timer", { start = true })
        end)
    ]]
    await_verdict(server, "timer", "metrics")
    server:reload()
    await_verdict(server, "exit_worker", "metrics")
    return all_verdicts(server)
end

describe("the table of phases", function()
    local verdicts, cells = nil, read_table()

    setup(function()
        fresh.start()
        verdicts = try_everything(cells)
    end)

    teardown(fresh.finish)

    it("has a row for each phase of nginx and a column for each function", function()
        local n_cells = 0
        for _, row in pairs(cells) do
            for _ in pairs(row) do
                n_cells = n_cells + 1
            end
        end
        assert.same(14 * 11, n_cells)
    end)

    for phase, row in pairs(cells) do
        it("is right about " .. phase, function()
            local found = {}
            for name, text in pairs(verdicts[phase]) do
                found[name] = text:match "^%l+"
                if found[name] ~= "works" then
                    assert.truthy(text:find(phase, 1, true) or text:find(CALL_START, 1, true)
                        or text:find(IN_INIT, 1, true), text)
                end
            end
            assert.same(row, found)
        end)
    end

    it("leaves it to start to say what to do instead of init", function()
        assert.same("raises " .. IN_INIT, verdicts.init.start)
    end)
end)

describe("the privileged agent", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local INIT = [[
        local is_enabled, why = require("ngx.process").enable_privileged_agent(100)
        ngx.shared.spec:set("refusal", not is_enabled and why or nil)
    ]]

    -- What the agent alone starts, and does with it.
    local AGENT = [[
        if require("ngx.process").type() ~= "privileged agent" then
            return
        end
        assert(%s)
        ngx.timer.at(0, function()
            local batch = require "batch.openresty"
            local id = assert(batch.submit("agent", { { url = "whoami:" } }))
            assert(batch.wait(id, 10))
            local _, targets = batch.status(id)
            ngx.shared.spec:set("agent", tostring(ngx.worker.pid()))
            ngx.shared.spec:set("fetcher", targets[1].result.content)
        end)
    ]]

    it("may start a runner, submit, and fetch", function()
        local server = nginx.start { workers = 1, init = INIT,
            init_worker = AGENT:format(openresty.start_code()) }
        local function said(key)
            return (server:run(("return ngx.shared.spec:get %q"):format(key)))
        end
        if said "refusal" then
            return pending("nginx says: " .. said "refusal") -- Debian's lacks OpenResty's patches
        end
        local fetcher = eventually(function() return said "fetcher" end)
        assert.same(said "agent", fetcher)
        assert.same({}, server:complaints())
    end)
end)
