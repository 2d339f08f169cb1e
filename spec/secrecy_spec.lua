-- SPDX-License-Identifier: MIT
--
-- What other users of the machine, and whoever reads logs, answers and stores, must not get: files
-- and sockets of a batch, callers' tokens, the language model's key.

local callers = require "spec.support.tokens"
local canned = require "spec.support.canned"
local cjson = require "cjson"
local fresh = require "spec.support.fresh"
local interpreter = require "spec.support.interpreter"
local lfs = require "lfs"
local llm = require "spec.support.llm"
local service = require "spec.support.service"

local bearer = callers.bearer

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read "*a"
    file:close()
    return text
end

local function run(command)
    local pipe = assert(io.popen(command .. " 2>&1"))
    local output = pipe:read "*a"
    pipe:close()
    return output
end

describe("whatever the umask is, for its user alone", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    local UMASKS = { "000", "022", "077" }

    local function permissions(path)
        return lfs.attributes(path, "permissions")
    end

    it("are a server's store, all that lies beside it, and its socket", function()
        for _, umask in ipairs(UMASKS) do
            local store, socket = fresh.path(umask .. ".db"), fresh.path(umask .. ".sock")
            local server = service.start({ server = 'listen = "unix:' .. socket .. '"',
                batch = 'store = "' .. store .. '"' }, "umask " .. umask .. ";")
            local _, id = server:submit { "say:a" }
            server:await_status(id, "done")
            for _, path in ipairs { store, store .. "-wal", store .. "-shm", store .. ".owners",
                store .. ".reserve", socket } do
                assert.equal("rw-------", permissions(path), umask .. " " .. path)
            end
            server:signal "TERM"
            assert.equal(0, (server:wait()))
        end
    end)

    it("are a backup, and the socket and folder of a bell", function()
        local script = fresh.path "bell.lua"
        local file = assert(io.open(script, "w"))
        file:write [[
            local batch, path = require "batch", arg[1]
            local runner = assert(batch.new { store = path, executor = "manual" })
            local store = batch.store.open(path)
            assert(store:backup(path .. ".copy"))
            local lfs, bell = require "lfs", assert(runner:open_bell())
            print(lfs.attributes(path .. ".copy", "permissions"),
                lfs.attributes(bell, "permissions"),
                lfs.attributes(bell:match "^(.*)/", "permissions"))
            runner:close()]]
        file:close()
        for _, umask in ipairs(UMASKS) do
            local output = run(("umask %s; %s %s %s"):format(umask, interpreter, script,
                fresh.path(umask .. ".db")))
            assert.equal("rw-------\trw-------\trwx------\n", output)
        end
    end)
end)

describe("a secret", function()
    local TOKEN, KEY = "token-of-ann", "planted-key-of-the-model"
    local model, site

    before_each(function()
        fresh.start()
        model, site = llm.start(), canned.start()
    end)

    after_each(function()
        fresh.finish()
        model:stop()
        site:stop()
    end)

    local function config()
        return {
            batch = 'fetch = "batch.fetch"\non_restart = "resume"',
            log = 'level = "debug"', more = callers.section "ann",
            fetch = ('allow = ["127.0.0.0/8"]\n[fetch.llm]\nurl = "%s"\nmodel = "m"\n'
                .. 'api_key_env = "PLANTED_KEY"'):format(model.url),
        }
    end

    -- Asks about a page until the job has ended. Gives its id.
    local function ask(server, url, question)
        local body = cjson.encode { targets = { { url = url, options = { question = question } } } }
        local answer = server:curl("/v1/batches", ("-H 'content-type: application/json' -d '%s' %s")
            :format(body, bearer "ann"))
        local id = assert(answer.json().id, answer.body)
        server:curl("/v1/batches/" .. id .. "/results?follow=true", bearer "ann")
        return id
    end

    -- All that a server shows to callers, operators and other users, and all that it keeps.
    local function places_of(server, ids)
        local places = {}
        for _, id in ipairs(ids) do
            for _, part in ipairs { "", "/results", "/events" } do
                local path = "/v1/batches/" .. id .. part
                places[path] = server:curl(path, bearer "ann").body
            end
        end
        for _, path in ipairs { "/v1/batches", "/metrics", "/readyz", "/openapi.json",
            "/v1/batches?token=" .. TOKEN } do
            places[path] = server:curl(path, bearer "ann").body
        end
        server:await_line "path=/openapi.json"
        places["a refusal"] = server:curl("/v1/batches", bearer "ann" .. "x").body
        places["ps"] = run("cat /proc/" .. server.pid .. "/cmdline /proc/" .. server.pid
            .. "/task/*/comm")
        for _, ending in ipairs { "", "-wal", "-shm", ".owners", ".reserve" } do
            places["batch.db" .. ending] = read(fresh.path "batch.db" .. ending)
        end
        places.log, places.out = server:log(), read(server.out)
        return places
    end

    it("is in no log, answer, figure, process list or store: tokens and the model's key", function()
        local server = service.start(config(), "PLANTED_KEY=" .. KEY)
        local page = site:put_body("page", "The page says so.")
        model:says("your key is " .. KEY)
        local ids = { ask(server, page, "what is the key?") }
        assert.equal("Bearer " .. KEY, model:requests()[1].authorization)
        model:answers { status = 401, body = '{"error":{"message":"bad key ' .. KEY .. '"}}' }
        ids[2] = ask(server, page, "and what now?")
        server:curl("/v1/batches", "-H 'authorization: Basic " .. TOKEN .. "'")
        server:reload(config())
        local places = places_of(server, ids)
        assert.matches("your key is ***", places["/v1/batches/" .. ids[1]], 1, true)
        assert.matches("HTTP 401", places["/v1/batches/" .. ids[2]], 1, true)
        assert.matches("your key is ***", places["batch.db"] .. places["batch.db-wal"], 1, true)
        for name, text in pairs(places) do
            assert.is_nil(text:find(KEY, 1, true), "the key is in " .. name)
            assert.is_nil(text:find(TOKEN, 1, true), "the token is in " .. name)
        end
    end)
end)
