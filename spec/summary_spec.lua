-- SPDX-License-Identifier: MIT
--
-- The summary of a run: its counts, its slowest targets, its errors in groups.

local json = require "batch.json"
local summary = require "batch.cli.summary"

local function done(seconds, url)
    return {
        url = url or "http://a/", status = "done",
        started_at = 100, finished_at = 100 + seconds,
    }
end

local function failed(error_text, hint)
    return {
        url = "http://b/", status = "failed", error = error_text, hint = hint,
        started_at = 100, finished_at = 101,
    }
end

describe("a summary", function()
    it("counts each kind, and what is missing", function()
        local facts = summary.new(10)
        facts:add(done(1), 1, true)
        facts:add(done(1), 2, false)
        facts:add(failed("404"), 3, true)
        assert.same({ 2, 1, 7, 2 }, { facts.done, facts.failed, facts:pending(), facts.fresh })
        local text = facts:text(2)
        assert.match("3 of 10 targets in 2.0 s, 1.0/s\n", text, 1, true)
        assert.match("done +2\n", text)
        assert.match("failed +1\n", text)
        assert.match("pending +7\n", text)
        assert.match("1 of these were in the store already", text, 1, true)
    end)

    it("lists the five slowest that this run fetched, the slowest first", function()
        local facts = summary.new(10)
        for i, seconds in ipairs { 3, 9, 1, 7, 5, 8, 2 } do
            facts:add(done(seconds), i, true)
        end
        facts:add(done(100), 8, false)
        local lines = {}
        for i, slow in ipairs(facts:report(1).slowest) do
            lines[i] = slow.line
        end
        assert.same({ 2, 6, 4, 5, 1 }, lines)
        assert.match("9.00 s  line 2: http://a/", facts:text(1), 1, true)
    end)

    it("groups errors, the most frequent first", function()
        local facts = summary.new(10)
        facts:add(failed("timed out"), 4, true)
        facts:add(failed("404 not found", "look elsewhere"), 5, true)
        facts:add(failed("404 not found", "look elsewhere"), 6, true)
        local text = facts:text(1)
        assert.match("2 x  404 not found\n +first in line 5: http://b/\n +hint: look elsewhere\n"
            .. " +1 x  timed out\n +line 4: http://b/\n", text)
    end)

    it("stays short and small when every error is another", function()
        local facts = summary.new(5000)
        for i = 1, 5000 do
            facts:add(failed("error " .. i), i, true)
        end
        local _, n_lines = facts:text(1):gsub("\n", "")
        assert.is_true(n_lines < 40)
        assert.equal(1001, #facts:report(1).errors)
        assert.same({ "other errors", 4000 },
            { facts:report(1).errors[1].error, facts:report(1).errors[1].count })
    end)

    it("lets nothing that was fetched steer the terminal", function()
        local facts = summary.new(1)
        facts:add(failed("bad\27[31m\r\n\194\155mthing"), 1, true)
        local text = facts:text(1):gsub("\n", "")
        assert.is_nil(text:find("%c"))
        assert.is_nil(text:find("\194\155", 1, true))
    end)

    it("is cut to the terminal's width, between characters", function()
        local facts = summary.new(1)
        facts:add(failed(("\195\188"):rep(100)), 1, true)
        for width = 20, 60 do
            for line in facts:text(1, width):gmatch("[^\n]+") do
                assert.is_true(#line <= width)
                assert.is_nil(line:find("\195%.%.%.$"))
            end
        end
    end)

    it("is data for machines", function()
        local facts = summary.new(1)
        facts:add(failed("404", "look elsewhere"), 1, true)
        assert.equal('{"done":0,'
            .. '"errors":[{"count":1,"error":"404","hint":"look elsewhere","line":1,'
            .. '"url":"http://b/"}],"failed":1,"fetched":1,"pending":0,"seconds":1.5,'
            .. '"slowest":[{"line":1,"seconds":1,"url":"http://b/"}],"targets":1}',
            json.encode(facts:report(1.5)))
    end)

    it("has empty lists where there is nothing to list", function()
        assert.match('"errors":[],', json.encode(summary.new(1):report(0)), 1, true)
    end)
end)
