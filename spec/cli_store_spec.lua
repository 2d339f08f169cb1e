-- SPDX-License-Identifier: MIT
--
-- `luabatch submit`, `status`, `results`, `cancel`, `watch` and `list` on a store's file, which
-- this process works on with a runner, or nobody does.

local batch = require "batch"
local cjson = require "cjson"
local interpreter = require "spec.support.interpreter"
local shell = require "spec.support.shell"

local luabatch = shell.luabatch
local runner

local function work()
    runner = assert(batch.new {
        store = shell.path "luabatch.db", durability = "normal", on_restart = "resume",
        fetch = function(target, ctx)
            if target.url:find "slow" and not ctx:sleep(0.05) or target.url:find "missing" then
                return nil, "404 not found"
            end
            return target.url:find "bytes" and "\255" or "of " .. target.url
        end,
    })
end

local function submit(arguments)
    local code, out = luabatch("submit " .. arguments)
    assert.equal(0, code)
    return out:gsub("\n", "")
end

local function statuses(text)
    local found = {}
    for line in text:gmatch("[^\n]+") do
        found[#found + 1] = cjson.decode(line).status
    end
    return found
end

before_each(function()
    shell.start()
    runner = nil
end)

after_each(function()
    if runner then
        runner:close(10)
    end
    shell.finish()
end)

describe("luabatch submit", function()
    it("makes the store if there is none, and says so", function()
        local code, out, err = luabatch "submit http://a/"
        assert.equal(0, code)
        assert.match("^%x+%-%x+%-7%x+%-%x+%-%x+\n$", out)
        assert.match("luabatch.db is a new store", err, 1, true)
        assert.same({ 0, out, "luabatch: known already: the job is queued\n" },
            { luabatch "submit http://a/" })
    end)

    it("makes none for a list that is wrong", function()
        shell.write("urls.txt", 'http://a/\n{"url":"http://b/","options":{"mod":"raw"}}\n')
        local code, out, err = luabatch "submit urls.txt"
        assert.same({ 2, "" }, { code, out })
        assert.match("^luabatch: urls.txt:2: unknown option 'mod'", err)
        assert.is_nil(shell.read "luabatch.db")
    end)

    it("takes the options of the fetch module that the configuration names", function()
        shell.write("own_fetch.lua", "return { fetch = print, check = function(target)\n"
            .. "return target.options.depth ~= nil or nil, 'depth is missing' end }")
        shell.write("config.toml", '[batch]\nfetch = "own_fetch"\n')
        shell.write("urls.txt", '{"url":"http://a/","options":{"depth":3}}\nhttp://b/\n')
        local command = 'LUA_PATH="./?.lua;$LUA_PATH" luabatch submit -c config.toml '
        local code, _, err = shell.run(command .. "urls.txt")
        assert.same({ 2, "luabatch: urls.txt:2: depth is missing\n" }, { code, err })
        shell.write("urls.txt", '{"url":"http://a/","options":{"depth":3}}\n')
        assert.equal(0, (shell.run(command .. "urls.txt")))
    end)

    it("submits for whom one says, as many as one likes", function()
        local lines = {}
        for i = 1, 1000 do
            lines[i] = "http://page/" .. i
        end
        shell.write("urls.txt", table.concat(lines, "\n"))
        local id = submit "urls.txt --caller bob --class nightly"
        submit "http://a/ --caller bob"
        local _, out = luabatch("status --json " .. id)
        local job = cjson.decode(out)
        assert.same({ "bob", "nightly", 1000 }, { job.caller, job.class, job.targets_total })
    end)

    it("waits until the runner of another process has ended the job", function()
        work()
        local code, _, err = luabatch "submit http://slow/1 http://slow/2 http://missing/ --wait"
        assert.equal(1, code)
        assert.match("luabatch: partial: 2 done, 1 failed of 3\n$", err)
    end)
end)

describe("a store's jobs", function()
    it("are those of all callers, or of one", function()
        submit "http://a/ --caller alice"
        submit "http://b/ --caller bob"
        local function callers(arguments)
            local found = {}
            local _, out = luabatch("list --json " .. arguments)
            for line in out:gmatch("[^\n]+") do
                found[#found + 1] = cjson.decode(line).caller
            end
            return found
        end
        assert.same({ "bob", "alice" }, callers "")
        assert.same({ "alice" }, callers "--caller alice")
        assert.same({}, callers "--caller carol")
    end)

    it("are none at first, and then none of somebody else", function()
        work()
        assert.same({ 0, "", "luabatch: there are no jobs\n" }, { luabatch "list" })
        submit "http://a/ --caller ann"
        assert.same({ 0, "", "luabatch: there are no such jobs\n" },
            { luabatch "list --caller bob" })
    end)

    it("give their results, and follow a runner's work", function()
        work()
        local id = submit "http://slow/1 http://bytes/ http://slow/2"
        local code, out, err = luabatch("results --follow " .. id)
        assert.same({ 0, "" }, { code, err })
        assert.same({ "done", "done", "done" }, statuses(out))
        assert.match('"content":"/w==","encoding":"base64"', out, 1, true)
        assert.same({ 0, out, "" }, { luabatch("results " .. id) })
    end)

    it("come in constant memory", function()
        if os.getenv "SANITIZER" then
            return pending "a sanitizer needs memory of its own"
        end
        runner = assert(batch.new {
            store = shell.path "luabatch.db", durability = "normal", executor = "manual",
            targets_per_job = 1000,
        })
        local targets = {}
        for i = 1, 60 do
            targets[i] = { url = "http://page/" .. i }
        end
        local id = assert(runner:submit("spec", targets))
        runner:drain(function() return ("x"):rep(1024 * 1024) end)
        local code, out = shell.run(("ulimit -v 400000; luabatch results %s | wc -c"):format(id))
        assert.equal(0, code)
        assert.is_true(tonumber(out) > 60 * 1024 * 1024)
    end)

    it("can be cancelled while nobody works on them", function()
        local id = submit "http://a/"
        assert.same({ 0, "cancelled\n", "" }, { luabatch("cancel " .. id) })
        assert.equal(1, (luabatch("cancel " .. id)))
        assert.equal(1, (luabatch("status " .. id)))
    end)

    it("are not given up when somebody looks at them", function()
        local script = ([[
            local runner = require("batch").new { store = %q, executor = "manual" }
            runner:submit("spec", { { url = "u" } })
            runner:take()
            os.exit(9)]]):format(shell.path "luabatch.db")
        shell.write("crash.lua", script)
        shell.run(interpreter .. " crash.lua")
        for _ = 1, 2 do
            local _, out = luabatch "list --json"
            local job = cjson.decode(out)
            assert.is_nil(job.error)
            assert.is_truthy(job.status == "running" or job.status == "queued")
        end
    end)
end)

for _, command in ipairs { "status x", "results x", "cancel x", "watch x", "list" } do
    describe("luabatch " .. command .. " without a store", function()
        it("ends with 3, says so, and makes none", function()
            local code, out, err = luabatch(command)
            assert.same({ 3, "" }, { code, out })
            assert.match("luabatch.db: No such file or directory", err, 1, true)
            assert.is_nil(shell.read "luabatch.db")
        end)
    end)
end

it("results do not overwrite their own store", function()
    local id = submit "http://a/"
    local code, _, err = luabatch(("results %s -o ./luabatch.db"):format(id))
    assert.equal(2, code)
    assert.match("luabatch.db would be overwritten", err, 1, true)
    assert.equal(0, (luabatch("status " .. id)))
end)
