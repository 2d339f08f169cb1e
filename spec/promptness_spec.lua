-- SPDX-License-Identifier: MIT
--
-- How soon an idle process sees what others leave for it. Without being told it looks every 20 ms:
-- what is measured here is a good deal less, most of the time, whatever else the machine does.

local batch = require "batch"
local core = require "batch.core"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local process = require "spec.support.process"

local ROUNDS = 16
local SOON = 0.005

-- Has something measured again and again; the quarter of the spans that are shortest decides. What
-- is soon is so much later as three threads one after the other are woken late, like this one.
local function is_soon(measure)
    local spans, lags = {}, {}
    for i = 1, ROUNDS do
        local began = core.monotime()
        core.poll_fd(-1, 0.013)  -- not in step with anybody's looks
        lags[i] = core.monotime() - began - 0.013
        spans[i] = measure(i)
    end
    table.sort(spans)
    table.sort(lags)
    local span, lag = spans[ROUNDS / 4], lags[ROUNDS / 2]
    assert.is_true(span < SOON + 3 * lag,
        ("it took %.1f ms, and a sleep %.1f ms too long"):format(span * 1e3, lag * 1e3))
end

describe("an idle process", function()
    local folder

    before_each(function()
        fresh.start()
        folder = process.folder()
    end)

    after_each(function()
        fresh.finish()
        folder:remove()
    end)

    local function start_runner()
        folder:start [[
        local runner = assert(batch.new(settings { workers = 2, fetch = function(target, ctx)
            note("fetched", ("%s %.6f"):format(target.url, core.now()))
            if target.options.hangs and not ctx:sleep(30) then
                note("ended", ("%s %.6f"):format(target.url, core.now()))
            end
            return "x"
        end }))
        note("ready", "yes")
        while core.poll_fd(runner:fd(), 60) ~= 1 do end
        ]]
        eventually(function() return folder:lines("ready")[1] end)
    end

    -- When the process noted the n-th line.
    local function noted(name, n)
        local line = eventually(function() return folder:lines(name)[n] end)
        return tonumber(line:match " (%S+)$")
    end

    local function open(more)
        local config = { store = folder.store, durability = "normal", jobs_per_caller = 100,
            jobs_total = 100, executor = "manual" }
        for name, value in pairs(more or {}) do
            config[name] = value
        end
        return config
    end

    it("fetches at once what a client submits", function()
        start_runner()
        local client = fresh.keep(assert(batch.client(open())))
        is_soon(function(i)
            assert(client:submit("me", fresh.targets(1, i .. "-")))
            local submitted = core.now()
            return noted("fetched", i) - submitted
        end)
    end)

    it("fetches at once what another runner hands over", function()
        start_runner()
        is_soon(function(i)
            local runner = fresh.keep(assert(batch.new(open { fetch = print })))
            assert(runner:submit("me", fresh.targets(1, i .. "-")))
            local began = core.now()
            runner:begin_handover()
            local span = noted("fetched", i) - began
            runner:close()
            return span
        end)
    end)

    it("fetches at once what another runner leaves behind", function()
        start_runner()
        is_soon(function(i)
            local runner = assert(batch.new(open { on_restart = "resume", fetch = print }))
            assert(runner:submit("me", fresh.targets(1, i .. "-")))
            runner:close()
            return noted("fetched", i) - core.now()
        end)
    end)

    it("stops at once what another one cancels", function()
        start_runner()
        local client = fresh.keep(assert(batch.client(open())))
        is_soon(function(i)
            local target = { url = "u" .. i, options = { hangs = true } }
            local id = assert(client:submit("me", { target }))
            noted("fetched", i)
            assert.is_true(client:cancel(id))
            local cancelled = core.now()
            return noted("ended", i) - cancelled
        end)
    end)
end)
