-- SPDX-License-Identifier: MIT
--
-- The deal of a list into jobs: who gets which line, the way back to a line's number, and that long
-- lists come out of their temporary files as they went in.

local deal = require "batch.cli.deal"

-- Wide enough that fifty thousand go to temporary files.
local function wide(number)
    return ("%-99s"):format(number)
end

local function plain(number)
    return "line " .. number
end

local function deal_lines(n_lines, number_of, text_of)
    local hand = deal.new()
    for place = 1, n_lines do
        local number = number_of and number_of(place) or place
        assert(hand:add((text_of or plain)(number), number))
    end
    finally(function() hand:close() end)
    return hand
end

local function check_every_line(hand, text_of)
    local n_seen = 0
    for job = 1, hand:jobs() do
        for i, text in ipairs(assert(hand:texts(job))) do
            n_seen = n_seen + 1
            -- No luassert for each of so many lines: it takes ten times as long as all the rest.
            local expected = (text_of or plain)(hand:line(job, i - 1))
            assert(text == expected, ("expected %s, got %s"):format(expected, text))
        end
    end
    assert.equal(hand:total(), n_seen)
end

describe("a deal", function()
    it("of no line has no job", function()
        local hand = deal.new()
        assert.equal(0, hand:total())
        assert.equal(0, hand:jobs())
    end)

    it("gives each of a few lines a job of its own", function()
        local hand = deal_lines(3)
        assert.equal(3, hand:jobs())
        assert.same({ { "line 1" }, { "line 2" }, { "line 3" } },
            { hand:texts(1), hand:texts(2), hand:texts(3) })
    end)

    it("gives many lines to 64 jobs, in turn", function()
        local hand = deal_lines(130)
        assert.equal(64, hand:jobs())
        assert.same({ "line 1", "line 65", "line 129" }, hand:texts(1))
        assert.same({ "line 2", "line 66", "line 130" }, hand:texts(2))
        assert.same({ "line 64", "line 128" }, hand:texts(64))
    end)

    it("finds the number of each line again", function()
        for _, n_lines in ipairs { 1, 2, 63, 64, 65, 128, 1000 } do
            check_every_line(deal_lines(n_lines))
        end
    end)

    it("finds the numbers again where comments and blank lines were left out", function()
        local hand = deal_lines(500, function(place)
            return place + 3 + math.floor(place / 7) + (place > 250 and 40 or 0)
        end)
        check_every_line(hand)
        assert.equal(4, hand:line(1, 0))
    end)

    it("gives the lines as often as it is asked", function()
        local hand = deal_lines(70)
        assert.same(hand:texts(1), hand:texts(1))
    end)

    it("brings back lines that went to temporary files", function()
        local hand = deal_lines(50000, nil, wide)
        check_every_line(hand, wide)
        assert.is_true(hand:add(wide(50001), 50001))
        check_every_line(hand, wide)
    end)

    it("holds little of a long list in memory", function()
        local hand = deal.new()
        collectgarbage()
        local before = collectgarbage("count")
        for place = 1, 200000 do
            hand:add(wide(place), place)
        end
        collectgarbage()
        local kib = collectgarbage("count") - before
        hand:close()
        assert.is_true(kib < 8 * 1024, ("%.0f KiB for 20 MB of lines"):format(kib))
    end)

    it("knows the numbers after the lines are let go", function()
        local hand = deal_lines(130)
        hand:close()
        assert.equal(65, hand:line(1, 1))
    end)
end)
