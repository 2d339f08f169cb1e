-- SPDX-License-Identifier: MIT
--
-- The progress display: what it shows, that it fits, and that it writes no more than it must. Time
-- is a number that the specs count up themselves.

local progress = require "batch.cli.progress"

local PLAIN = { has_colour = false, has_blocks = false }
local COUNTS = { total = 1000, done = 600, failed = 20, busy = 3, fresh = 620 }

local function fake_stream()
    local stream = { text = "", n_writes = 0 }
    function stream:write(...)
        self.text = self.text .. table.concat { ... }
        self.n_writes = self.n_writes + 1
    end
    function stream.flush() end
    return stream
end

local function make(style, columns)
    local stream = fake_stream()
    return progress.new {
        style = style, looks = PLAIN, stream = stream, width = function() return columns end,
    }, stream
end

local function counts(n_done, n_fresh)
    return { total = 1000, done = n_done, failed = 0, busy = 0, fresh = n_fresh or n_done }
end

-- The columns of a text in UTF-8 without colours.
local function columns_of(text)
    return #text:gsub("\27%[%d*m", ""):gsub("[\128-\191]", "")
end

describe("the bar", function()
    it("shows done, failed, busy, rate and time left", function()
        assert.equal("######----   62%  620/1000  done 600  failed 20  busy 3  41.3/s  0:09 left",
            progress.draw(COUNTS, 41.3, 74, PLAIN))
    end)

    it("leaves rate and time out while they are unknown", function()
        assert.equal("######----   62%  620/1000  done 600  failed 20  busy 3",
            progress.draw(COUNTS, nil, 55, PLAIN))
    end)

    it("fits any width, with the most important words", function()
        local fancy = { has_colour = true, has_blocks = true }
        for width = 1, 200 do
            local line = progress.draw(COUNTS, 41.3, width, fancy)
            assert.is_true(columns_of(line) <= width, ("%d columns: %s"):format(width, line))
        end
        assert.equal("620/1000", progress.draw(COUNTS, 41.3, 10, PLAIN))
        assert.equal("620/1000  failed 20", progress.draw(COUNTS, 41.3, 20, PLAIN))
    end)

    it("is no longer than is needed on a wide terminal", function()
        assert.is_true(columns_of(progress.draw(COUNTS, 41.3, 500, PLAIN)) < 120)
    end)

    it("is full at the end and not before", function()
        local nearly = { total = 1000, done = 999, failed = 0, busy = 0 }
        assert.match("99%%", (progress.draw(nearly, nil, 80, PLAIN)))
        assert.match("#%-  ", (progress.draw(nearly, nil, 80, PLAIN)))
        nearly.done = 1000
        assert.match("^#+  100%%", (progress.draw(nearly, nil, 80, PLAIN)))
    end)

    it("has colours only where they are wanted", function()
        assert.is_nil(progress.draw(COUNTS, 1, 80, PLAIN):find("\27"))
        local colourful = progress.draw(COUNTS, 1, 80, { has_colour = true })
        assert.match("\27[31mfailed 20\27[0m", colourful, 1, true)
    end)
end)

describe("a progress display on a terminal", function()
    it("draws in place and stays off the last column", function()
        local bar, stream = make("bar", 80)
        bar:update(counts(1), 100)
        assert.match("^\r[^\r\n]+\27%[K$", stream.text)
        assert.is_true(#stream.text - #"\r\27[K" <= 79)
    end)

    it("draws at most ten times a second, and only what has changed", function()
        local bar, stream = make("bar", 80)
        for i = 0, 99 do
            bar:update(counts(i), 100 + i / 100)
        end
        assert.is_true(stream.n_writes <= 10)
        local n_before = stream.n_writes
        bar:update(counts(99), 101.5)
        bar:update(counts(99), 101.5)
        assert.is_true(stream.n_writes <= n_before + 1)
    end)

    it("makes room for a line of text and comes back", function()
        local bar, stream = make("bar", 80)
        bar:update(counts(1), 100)
        local before = stream.text
        bar:say("a word")
        assert.equal(before .. "\r\27[Kluabatch: a word\n", stream.text)
        bar:update(counts(1), 100.01)
        local after = stream.text:sub(#before + #"\r\27[Kluabatch: a word\n" + 1)
        assert.match("^\r[^\r\n]+\27%[K$", after)
    end)

    it("lets nothing that it is told to say steer the terminal", function()
        local bar, stream = make("bar", 80)
        bar:say("bad\27[31m\r\194\155mthing:\n\tat line 3")
        assert.equal("luabatch: bad [31m  mthing:\n\tat line 3\n", stream.text)
    end)

    it("leaves nothing behind", function()
        local bar, stream = make("bar", 80)
        bar:update(counts(1), 100)
        bar:clear()
        assert.equal("\r\27[K", stream.text:sub(-4))
    end)

    it("works where the width is unknown", function()
        local bar, stream = make("bar", nil)
        bar:update(counts(1), 100)
        assert.is_true(#stream.text <= 79 + #"\r\27[K")
    end)
end)

describe("a progress display elsewhere", function()
    it("writes a plain line every few seconds", function()
        local bar, stream = make("lines")
        for second = 0, 12 do
            bar:update(counts(second * 10), 100 + second)
        end
        assert.equal("luabatch: 5%, 50/1000, done 50, failed 0, busy 0, 10.0/s, 1:35 left\n"
            .. "luabatch: 10%, 100/1000, done 100, failed 0, busy 0, 10.0/s, 1:30 left\n",
            stream.text)
    end)

    it("writes none for a short run", function()
        local bar, stream = make("lines")
        bar:update(counts(0), 100)
        bar:update(counts(1000), 104)
        bar:clear()
        assert.equal("", stream.text)
    end)

    it("is silent if asked to be, but for what it is told to say", function()
        local bar, stream = make("none")
        bar:update(counts(0), 100)
        bar:update(counts(9), 200)
        bar:say("a word")
        assert.equal("luabatch: a word\n", stream.text)
    end)
end)

describe("the rate", function()
    local function rate_after(steps)
        local bar, stream = make("lines")
        for _, step in ipairs(steps) do
            bar:update(counts(step[2], step[3]), step[1])
        end
        return stream.text:match("([%d.]+/%a+),[^\n]*\n$")
    end

    it("does not count what the store had before", function()
        assert.equal("2.0/s", rate_after { { 0, 500, 0 }, { 5, 510, 10 } })
    end)

    it("follows the last seconds, not the whole run", function()
        local steps = {}
        for second = 0, 100, 5 do
            steps[#steps + 1] = { second, second }
        end
        for second = 105, 150, 5 do
            steps[#steps + 1] = { second, 100 + (second - 100) * 10 }
        end
        assert.equal("10.0/s", rate_after(steps))
    end)

    it("is that of the whole run while little happens", function()
        assert.equal("3.0/min", rate_after { { 0, 0 }, { 20, 1 }, { 40, 2 }, { 60, 3 } })
    end)
end)

describe("a span", function()
    local spans = {
        { 0, "0:00" }, { 9.4, "0:09" }, { 59.6, "1:00" }, { 3599, "59:59" }, { 3600, "1:00:00" },
        { 359999, "99:59:59" }, { 360000, "4d 4h" },
    }
    for _, case in ipairs(spans) do
        it(("of %s s is written %s"):format(case[1], case[2]), function()
            assert.equal(case[2], progress.format_span(case[1]))
        end)
    end
end)
