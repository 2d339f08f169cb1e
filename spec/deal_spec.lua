-- SPDX-License-Identifier: MIT
--
-- The deal of a list into jobs: who gets which target, the way back to a line's number, and that
-- long lists come out of their temporary files as they went in.

local deal = require "batch.cli.deal"
local fresh = require "spec.support.fresh"

-- Wide enough that fifty thousand go to temporary files.
local function wide(number)
    return ("%-99s"):format(number)
end

local function plain(number)
    return "line " .. number
end

local function deal_targets(n_targets, number_of, url_of)
    local hand = deal.new()
    for place = 1, n_targets do
        local number = number_of and number_of(place) or place
        assert(hand:add({ url = (url_of or plain)(number) }, number))
    end
    return hand
end

describe("a deal", function()
    local client

    before_each(function()
        fresh.start()
        client = fresh.client { targets_per_job = 1000000, jobs_per_caller = 1000,
            jobs_total = 1000 }
    end)
    after_each(fresh.finish)

    -- The URLs of a job, as they are stored.
    local function urls(hand, job)
        local id = assert(client:submit("job " .. job, hand:targets(job)))
        local _, targets = assert(client:status(id))
        local found = {}
        for i, target in ipairs(targets) do
            found[i] = target.url
        end
        return found
    end

    local function check_every_target(hand, url_of)
        local n_seen = 0
        for job = 1, hand:jobs() do
            for i, url in ipairs(urls(hand, job)) do
                n_seen = n_seen + 1
                -- No luassert for each of so many: it takes ten times as long as all the rest.
                local expected = (url_of or plain)(hand:line(job, i - 1))
                assert(url == expected, ("expected %s, got %s"):format(expected, url))
            end
        end
        assert.equal(hand:total(), n_seen)
    end

    it("of no target has no job", function()
        local hand = deal.new()
        assert.equal(0, hand:total())
        assert.equal(0, hand:jobs())
    end)

    it("gives each of a few targets a job of its own", function()
        local hand = deal_targets(3)
        assert.equal(3, hand:jobs())
        assert.same({ { "line 1" }, { "line 2" }, { "line 3" } },
            { urls(hand, 1), urls(hand, 2), urls(hand, 3) })
    end)

    it("gives many targets to 64 jobs, in turn", function()
        local hand = deal_targets(130)
        assert.equal(64, hand:jobs())
        assert.same({ "line 1", "line 65", "line 129" }, urls(hand, 1))
        assert.same({ "line 2", "line 66", "line 130" }, urls(hand, 2))
        assert.same({ "line 64", "line 128" }, urls(hand, 64))
    end)

    it("keeps the options", function()
        local hand = deal.new()
        assert(hand:add({ url = "a", options = { mode = "text", depth = { 1, "b" } } }, 1))
        local _, targets = client:status(assert(client:submit("me", hand:targets(1))))
        assert.same({ mode = "text", depth = { 1, "b" } }, targets[1].options)
    end)

    it("says what is wrong with a target, and goes on without it", function()
        local hand = deal_targets(64)
        local is_added, message = hand:add({ url = "\255" }, 65)
        assert.is_nil(is_added)
        assert.matches("^url must be UTF%-8, got ", message)
        assert.is_true(hand:add({ url = "line 66" }, 66))
        assert.same({ "line 1", "line 66" }, urls(hand, 1))
        assert.equal(66, hand:line(1, 1))
    end)

    it("finds the number of each line again", function()
        for _, n_targets in ipairs { 1, 2, 63, 64, 65, 128, 1000 } do
            check_every_target(deal_targets(n_targets))
        end
    end)

    it("finds the numbers again where comments and blank lines were left out", function()
        local hand = deal_targets(500, function(place)
            return place + 3 + math.floor(place / 7) + (place > 250 and 40 or 0)
        end)
        check_every_target(hand)
        assert.equal(4, hand:line(1, 0))
    end)

    it("submits the same job as often as it is asked", function()
        local hand = deal_targets(70)
        local id = client:submit("me", hand:targets(1))
        assert.same({ id, true }, { client:submit("me", hand:targets(1)) })
        assert.same({ id, true }, { client:submit("me", { { url = "line 1" },
            { url = "line 65" } }) })
    end)

    it("brings back targets that went to temporary files", function()
        local hand = deal_targets(50000, nil, wide)
        check_every_target(hand, wide)
        assert.is_true(hand:add({ url = wide(50001) }, 50001))
        check_every_target(hand, wide)
    end)

    it("knows the numbers after the targets are let go", function()
        local hand = deal_targets(130)
        for job = 1, hand:jobs() do
            hand:release(job)
        end
        assert.equal(65, hand:line(1, 1))
        assert.same({ 130, 64 }, { hand:total(), hand:jobs() })
    end)
end)
