-- SPDX-License-Identifier: MIT
--
-- Whole numbers are exact up to 2^53 wherever they pass between Lua, the store and HTTP, on VMs
-- that have integers and on those that have doubles alone.

local batch = require "batch"
local cjson = require "cjson"
local client = require "spec.support.client"
local fresh = require "spec.support.fresh"
local json = require "batch.json"
local worker = require "spec.support.worker"

local MAX = 2 ^ 53
local MAX_SHOWN = "9007199254740992"

local function shown(number)
    return ("%d"):format(number)
end

-- The refusal of a call, which must give nil.
local function refusal(nothing, message, code)
    assert.is_nil(nothing)
    return message, code
end

local function url_of(target)
    return target.url
end

describe("up to 2^53", function()
    before_each(fresh.start)
    after_each(function()
        worker.close_all()
        fresh.finish()
    end)

    local function finished(runner, n_targets)
        local id = assert(runner:submit("spec", fresh.targets(n_targets)))
        runner:drain(url_of)
        return id
    end

    it("the numbers of options come back from the store as they were", function()
        local runner = fresh.runner()
        local given = {
            top = MAX, below = MAX - 1, least = -MAX, half = 2 ^ 51 + 0.5, list = { 1 },
        }
        local id = assert(runner:submit("spec", { { url = "u", options = given } }))
        local seen
        runner:drain(function(target)
            seen = target.options
            return { content = "", meta = target.options }
        end)
        local _, targets = runner:status(id)
        assert.same(given, seen)
        assert.same(given, targets[1].options)
        assert.same(given, targets[1].result.meta)
        assert.equal(MAX_SHOWN, shown(targets[1].result.meta.top))
    end)

    it("what is beyond is refused, not rounded", function()
        local runner = fresh.runner { log = function() end }
        local message, code = refusal(runner:submit("spec", {
            { url = "u", options = { n = MAX + 2 } },
        }))
        assert.same({ "target 0: option 'n': must be a number from -2^53 to 2^53, got "
            .. "9007199254740994", "invalid" }, { message, code })
        local id = assert(runner:submit("spec", { { url = "u" } }))
        runner:drain(function() return { content = "", meta = { n = -2 ^ 63 } } end)
        assert.equal("internal error", select(2, runner:status(id))[1].error)
    end)

    it("the place in the feed of outcomes counts on", function()
        local runner = fresh.runner()
        finished(runner, 1)
        fresh.sql "update outcome set seq = 9007199254740989"
        local id = assert(runner:submit("spec", fresh.targets(2, "later")))
        runner:drain(url_of)
        local seqs = {}
        for i, change in ipairs(runner:changes(MAX - 4)) do
            seqs[i] = shown(change.seq)
        end
        assert.same({ "9007199254740989", "9007199254740990", "9007199254740991" }, seqs)
        local last = runner:changes(MAX - 2)
        assert.same({ 1, id, 1 }, { #last, last[1].job, last[1].idx })
        assert.same({}, runner:changes(MAX - 1))
        assert.same({}, runner:changes(MAX))
        assert.same({}, runner:changes(math.huge))
    end)

    it("counters and sizes of a job are told by each digit", function()
        local runner = fresh.runner()
        local id = finished(runner, 1)
        fresh.sql "update job set bytes = 9007199254740992, targets_total = 9007199254740991"
        local job = runner:status(id, { limit = 0 })
        assert.same({ MAX_SHOWN, "9007199254740991" },
            { shown(job.bytes), shown(job.targets_total) })
        assert.matches('"bytes":' .. MAX_SHOWN .. "[,}]", json.encode(job))
    end)

    it("from and limit choose targets, and beyond there are none", function()
        local runner = fresh.runner()
        local id = finished(runner, 3)
        local function idxs(options)
            local list = {}
            for i, target in ipairs(select(2, assert(runner:status(id, options)))) do
                list[i] = target.idx
            end
            return list
        end
        assert.same({ 1, 2 }, idxs { from = 1, limit = MAX })
        assert.same({ 2 }, idxs { from = 2, limit = 2 ^ 63 })
        for _, from in ipairs { 3, MAX - 1, MAX, MAX + 2, 2 ^ 63, 1e300 } do
            assert.same({}, idxs { from = from })
            assert.is_nil(assert(runner:results(id, { from = from }))())
        end
        for _, wrong in ipairs { 0.5, -1, -MAX, math.huge, 0 / 0 } do
            local message, code = refusal(runner:status(id, { from = wrong }))
            assert.matches("^from must be an integer from 0, got ", message)
            assert.equal("invalid", code)
        end
    end)

    it("a whole number is one however it is written", function()
        local runner = fresh.runner { targets_per_job = 2.0, workers = 1.0, max_bytes = MAX }
        local id = finished(runner, 2)
        local job, targets = runner:status(id, { from = 1.0, limit = 1.0 })
        assert.same({ "2", "1" }, { tostring(job.targets_total), tostring(targets[1].idx) })
        assert.equal("too many targets",
            (refusal(runner:submit("spec", fresh.targets(3)))))
    end)

    it("sizes are taken, and larger ones refused", function()
        local message, code = refusal(batch.new { store = ":memory:", max_bytes = MAX + 2 })
        assert.matches("^max_bytes must be .*, got 9007199254740994$", message)
        assert.equal("invalid", code)
        local runner = fresh.runner()
        finished(runner, 1)
        local store = fresh.store()
        assert.same({ 0, 0 }, { store:evict_oldest(MAX), store:evict_oldest(2 ^ 70) })
    end)

    it("the HTTP API reads and writes each digit", function()
        local http = client.open { executor = "manual" }
        local body = ('{"targets":[{"url":"u","options":{"n":%s}}]}'):format(MAX_SHOWN)
        local status, answer = http:send("POST /v1/batches", body)
        assert.equal(202, status)
        http.runner:drain(url_of)
        local path = "GET /v1/batches/" .. answer.id
        local _, page, response = http:send(path .. "?from=0&limit=" .. MAX_SHOWN)
        assert.same({ MAX, cjson.null }, { page.targets[1].options.n, page.next })
        assert.matches('"n":' .. MAX_SHOWN .. "}", response.body, 1, true)
        for _, from in ipairs { MAX_SHOWN, "9007199254740993", ("9"):rep(400) } do
            local code, empty = http:send(path .. "?from=" .. from)
            assert.same({ 200, 0 }, { code, #empty.targets })
        end
    end)
end)
