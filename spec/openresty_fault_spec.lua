-- SPDX-License-Identifier: MIT
--
-- nginx and batch when something is wrong: configurations that cannot work, stores that cannot be
-- opened or are locked, and who is told.

local batch = require "batch"
local core = require "batch.core"
local cqueues = require "cqueues"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local nginx = require "spec.support.nginx"
local openresty = require "spec.support.openresty"
local web = require "spec.support.web"

local SLOWNESS = nginx.SLOWNESS

local function exists(path)
    local file = io.open(path)
    return file ~= nil and file:close()
end

-- nginx whose workers note what start said to them.
local function start_with(config, parts)
    local all = openresty.parts_of(parts)
    all.init_worker = ([[
        local words = { pcall(function() return %s end) }
        for i = 1, 4 do
            ngx.shared.spec:set("said " .. i, tostring(words[i]))
        end
    ]]):format(openresty.start_code(config))
    local server = nginx.start(all)
    return server, server:run [[
        local words = {}
        for i = 1, 4 do
            words[i] = ngx.shared.spec:get("said " .. i)
        end
        return words
    ]]
end

describe("start", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("does nothing in nginx -t, which is content", function()
        local server = openresty.start()
        assert.is_true(exists(fresh.path "batch.db"))
        assert.is_true((server:finish "QUIT"))
        os.remove(fresh.path "batch.db")
        local is_content, said = server:test()
        assert.is_true(is_content, said)
        assert.is_false(exists(fresh.path "batch.db"))
    end)

    it("in init keeps nginx from starting, and says where it belongs", function()
        local server = nginx.launch { init = openresty.start_code() }
        assert.not_same(0, server.code)
        assert.matches("open the runner in init_worker_by_lua: nothing survives the fork",
            server:said(), 1, true)
        assert.is_false(exists(fresh.path "batch.db"))
    end)

    it("a second time is refused, and the first goes on", function()
        local code = openresty.start_code()
        local server = nginx.start(openresty.parts_of {
            init_worker = ("assert(%s)\nlocal _, message, code = %s\nngx.shared.spec:set('said', "
                .. "message .. ' ' .. code)"):format(code, code) })
        local said, status = server:run [[
            local batch = require "batch.openresty"
            local id = assert(batch.submit("me", { { url = "say:a" } }))
            return ngx.shared.spec:get "said", assert(batch.wait(id, 10)).status
        ]]
        assert.matches("started in this process already invalid$", said)
        assert.same("done", status)
    end)

    it("names a fetch module that is missing, and a field that is wrong", function()
        for config, wanted in pairs {
            [{ fetch = "no.such.module" }] = "fetch module 'no.such.module' does not load",
            [{ worker = 3 }] = "did you mean 'workers'",
            [{ workers = "many" }] = 'workers must be an integer from 1 to 256, got "many"',
            [{ executor = "lights" }] = 'executor must be "light" or "threads", got "lights"',
        } do
            local server, said = start_with(config, { workers = 1 })
            assert.same({ "true", "nil", "invalid" }, { said[1], said[2], said[4] })
            assert.matches(wanted, said[3], 1, true)
            assert.truthy(server:line_with(wanted:sub(1, 30)))
            local answer = server:request("POST", "/api/v1/batches", openresty.body { "say:a" },
                openresty.as "ann")
            assert.same({ 503, 200 }, { answer.status, server:get("/api/healthz").status })
            server:close()
        end
    end)

    it("says that its user may not write to the store's folder", function()
        local folder = fresh.path "forbidden"
        os.execute(("mkdir -m 555 %s && chmod 755 %s"):format(folder, fresh.path ""))
        local server, said = start_with({ store = folder .. "/batch.db" }, {
            user = "nobody nogroup", workers = 1, -- who may not read the checkout, either
            init = 'require "batch.openresty" require "spec.support.in_nginx.fetch"'
                .. ' require "spec.support.in_nginx.run"' })
        assert.same({ "true", "nil", "store" }, { said[1], said[2], said[4] })
        assert.matches(folder .. "/batch.db", said[3], 1, true)
        local readiness = server:get("/api/readyz")
        assert.same({ 503, "store" }, { readiness.status, readiness:json().error.code })
        -- As soon as it may, it does.
        os.execute("chmod 777 " .. folder)
        eventually(function() return server:get("/api/readyz").status == 200 end)
        local status = server:run [[
            local batch = require "batch.openresty"
            local id = assert(batch.submit("me", { { url = "say:a" } }))
            return assert(batch.wait(id, 10)).status
        ]]
        assert.same("done", status)
    end)

    it("warns of other caps on the same store, and says which holds where", function()
        local server = openresty.start { workers = 2, batch = {
            raw = "jobs_per_caller = ngx.worker.id() == 0 and 7 or 9" } }
        local line = eventually(function() return server:line_with "jobs_per_caller" end)
        assert.matches("[warn]", line, 1, true)
        assert.matches("7", line:match "batch: (.*)")
        assert.matches("9", line:match "batch: (.*)")
    end)

    it("is missed by whoever calls without it", function()
        local server = nginx.start { workers = 1 }
        local is_fine, message = pcall(server.run, server,
            [[require("batch.openresty").submit("me", { { url = "say:a" } })]])
        assert.is_false(is_fine)
        assert.matches("batch is not started in this process: call start in init_worker_by_lua",
            message, 1, true)
    end)
end)

describe("a store that another process has locked", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    -- Another process that holds the store's lock for so many seconds.
    local function lock(seconds)
        local said = fresh.path "said"
        local other = assert(io.popen(("sqlite3 '%s' >'%s'"):format(fresh.path "batch.db", said),
            "w"))
        other:write(".timeout 5000\nbegin immediate;\n.print locked\n.shell sleep " .. seconds
            .. "\nrollback;\n")
        other:flush()
        eventually(function()
            local file = io.open(said)
            return file and file:read "*a" ~= "" and file:close()
        end)
        return other
    end

    it("holds up nobody in the worker but those who submit, until it is free", function()
        local server = openresty.start { workers = 1 }
        local id = server:run [[
            local batch = require "batch.openresty"
            local id = assert(batch.submit("me", { { url = "say:a" } }))
            return assert(batch.wait(id, 10)).id
        ]]
        server:run [[return (require("batch.openresty").submit("me", {
            { url = "nap:0.2" }, { url = "nap:0.2" }, { url = "nap:0.2" } }))]]
        local other = lock(2)
        local locked_at = cqueues.monotime()
        local all, submits, slowest, n_answers = {}, {}, 0, 0
        for i = 1, 16 do
            all[i] = function()
                submits[i] = assert(server:request("POST", "/api/v1/batches",
                    openresty.body { "say:b#" .. i }, openresty.as "ann"))
            end
        end
        all[17] = function()
            while cqueues.monotime() - locked_at < 1.5 do
                for _, path in ipairs { "/hello", "/api/v1/batches/" .. id, "/metrics" } do
                    local answer = server:get(path, openresty.as "me")
                    assert.same(200, answer.status)
                    slowest, n_answers = math.max(slowest, answer.seconds), n_answers + 1
                end
                cqueues.sleep(0.005)
            end
        end
        web.together(all)
        print(("the slowest of %d answers took %.1f ms"):format(n_answers, slowest * 1000))
        assert.is_true(n_answers > 50)
        assert.is_true(slowest < 0.1 * SLOWNESS, "an answer took " .. slowest .. " s")
        for _, submit in ipairs(submits) do
            assert.same(202, submit.status)
            assert.is_true(submit.seconds > 1, "it waited for " .. submit.seconds .. " s only")
        end
        other:close()
        local client = fresh.client()
        eventually(function() return client:stats().live_jobs == 0 end)
        assert.same(18, #client:jobs())
        assert.same({}, server:complaints())
    end)

    it("when nginx starts is waited for, and served as soon as it is free", function()
        assert(batch.client { store = fresh.path "batch.db", durability = "normal" }):close()
        local other = lock(3)
        local server = start_with({}, { workers = 1 })
        assert.same(200, server:get("/hello").status)
        other:close()
        eventually(function() return server:get("/api/readyz").status == 200 end)
    end)
end)

describe("two programs", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("nginx and a plain runner, share a store without ever finding it locked", function()
        local server = openresty.start()
        local runner = fresh.keep(assert(batch.new { store = fresh.path "batch.db",
            durability = "normal", on_restart = "resume", workers = 2, jobs_per_caller = 10000,
            jobs_total = 10000, targets_per_job = 10000, fetch = function(target)
                return target.url:match "^say:([^#]*)"
            end }))
        local ids, all = {}, {}
        for i = 1, 8 do
            all[i] = function()
                for j = 1, 20 do
                    local answer = assert(server:request("POST", "/api/v1/batches",
                        openresty.body { "say:a#" .. i .. "-" .. j, "say:b" },
                        openresty.as "ann"))
                    assert.same(202, answer.status, answer.body)
                    ids[#ids + 1] = answer:json().id
                    ids[#ids + 1] = assert(runner:submit("bob", { { url = "say:c#" .. i .. "-"
                        .. j } }))
                end
            end
        end
        web.together(all)
        for _, id in ipairs(ids) do
            assert.same("done", assert(runner:wait(id, 30)).status)
        end
        assert.same(320, #ids)
        assert.is_nil(server:line_with "is locked")
        assert.same({}, server:complaints())
        local began_at = core.monotime()
        assert.is_true(runner:close())
        assert.is_true(core.monotime() - began_at < 5 * SLOWNESS)
    end)
end)
