-- SPDX-License-Identifier: MIT
--
-- How the built-in pipeline treats hosts: those that are busy, those that are lost but for an
-- archive, and that none is asked for too much at once.

local core = require "batch.core"
local pipeline = require "spec.support.pipeline"
local sites = require "spec.support.site"

local site, base, opened

setup(function()
    site = sites.start()
    base = site.base
end)
teardown(function()
    site:stop()
end)
after_each(function()
    if opened then
        opened:close()
        opened = nil
    end
end)

local function open(fields, config)
    opened = pipeline.open(fields, config)
    return opened
end

local function open_with_archive(more)
    local fields = { archive = base .. "/archive/2id_/", attempts = 2 }
    for name, value in pairs(more or {}) do
        fields[name] = value
    end
    return open(fields)
end

describe("recover", function()
    it("gives the newest archived copy of what is gone, blocked or unreachable", function()
        open_with_archive()
        for _, url in ipairs {
            base .. "/missing", base .. "/gone", base .. "/status/403", base .. "/status/451",
            base .. "/status/500", "http://127.0.0.1:2/old",
        } do
            local content, meta = opened:get(url, { recover = true })
            assert.matches("This is the archived copy of " .. url:match "[^/]+$", content)
            assert.equal(("%s/archive/20260102030405id_/%s"):format(base, url),
                meta.recovered_from)
            assert.same({ 200, "The page as it was" }, { meta.status, meta.title })
        end
    end)

    it("is not needed for a page that is there", function()
        local _, meta = open_with_archive():get(base .. "/pages/1", { recover = true })
        assert.is_nil(meta.recovered_from)
    end)

    it("leaves the page's own error, and says what the archive had", function()
        open_with_archive()
        assert.same({ "HTTP 404 Not Found", "127.0.0.1 has no archived copy" },
            { opened:failure(base .. "/never-kept", { recover = true }) })
        assert.same({ "HTTP 404 Not Found" }, { opened:failure(base .. "/never-kept") })
        opened:close()
        local message, hint = open_with_archive { archive = "http://127.0.0.1:2/" }:failure(
            base .. "/gone", { recover = true })
        assert.equal("HTTP 410 Gone", message)
        assert.matches("^no archived copy could be had from 127%.0%.0%.1: connection refused", hint)
    end)

    it("never tells the archive what the guard or the rules of URLs refuse", function()
        open_with_archive()
        for _, url in ipairs { "http://10.0.0.1/", "file:///etc/passwd", "http://me@127.0.0.1/" } do
            local message, hint = opened:failure(url, { recover = true })
            assert.is_nil((message .. (hint or "")):find "archive")
        end
    end)

    it("reaches the operator's archive where the guard lets nothing pass, its redirects not",
        function()
            open { archive = base .. "/archive/7id_/", allow = { "127.0.0.2/32" } }
            local content = opened:get("http://127.0.0.2:2/old", { recover = true })
            assert.matches("archived copy of old", content)
            opened:close()
            open { archive = base .. "/archive/2id_/", allow = { "127.0.0.2/32" } }
            local message, hint = opened:failure("http://127.0.0.2:2/old", { recover = true })
            assert.equal("connection refused", message)
            assert.matches("address not allowed", hint)
        end)

    it("goes through the same options", function()
        open_with_archive()
        assert.equal('"The page as it was"', ((opened:get(base .. "/gone",
            { recover = true, mode = "links", jq = '"The page as it was"' }))))
        local content, meta = opened:get(base .. "/gone", { recover = true, grep = "copy" })
        assert.same({ "This is the archived copy of gone.", 1 }, { content, meta.matches })
    end)
end)

describe("per_host", function()
    it("is never passed, over all workers, and all targets are done", function()
        open({ per_host = 2 }, { workers = 8 })
        local urls, most = {}, 0
        for i = 1, 24 do
            urls[i] = ("%s/crowd?seconds=0.05&n=%d"):format(base, i)
        end
        for _, target in ipairs(opened:targets(urls)) do
            assert.equal("done", target.status, target.error)
            most = math.max(most, tonumber(target.result.content))
        end
        assert.equal(2, most)
    end)

    it("holds for the archive, too", function()
        open({ per_host = 2, attempts = 1, archive = base .. "/crowd?seconds=0.05&url=" },
            { workers = 6 })
        local urls, most = {}, 0
        for i = 1, 12 do
            urls[i] = ("http://127.0.0.%d:2/"):format(i)
        end
        for _, target in ipairs(opened:targets(urls, { recover = true })) do
            assert.equal("done", target.status, target.error)
            most = math.max(most, tonumber(target.result.content))
        end
        assert.equal(2, most)
    end)

    it("does not count towards retry_for", function()
        open({ per_host = 1 }, { workers = 4, retry_for = 0.2, retry_wait = 0.05 })
        local urls = {}
        for i = 1, 8 do
            urls[i] = ("%s/crowd?seconds=0.1&m=%d"):format(base, i)
        end
        for _, target in ipairs(opened:targets(urls)) do
            assert.equal("done", target.status, target.error)
        end
    end)

    it("holds its delay between two requests", function()
        open({ per_host_delay = 0.2 }, { workers = 4 })
        local urls = {}
        for i = 1, 5 do
            urls[i] = base .. "/pages/" .. i
        end
        local first, last = math.huge, 0
        for _, target in ipairs(opened:targets(urls)) do
            assert.equal("done", target.status, target.error)
            first, last = math.min(first, target.finished_at), math.max(last, target.finished_at)
        end
        assert.is_true(last - first >= 0.78, last - first)
    end)
end)

describe("a host that is busy", function()
    it("is asked again, as late as it said", function()
        local began_at = core.now()
        local target = open():target(base .. "/busy?key=spec")
        assert.same({ "done", "here at last\n", 3 },
            { target.status, target.result.content, target.attempts })
        assert.is_true(core.now() - began_at >= 1.9)
    end)

    it("for too long is a failure by the words of its status", function()
        open({}, { retry_for = 0.3, retry_wait = 0.1 })
        assert.equal("HTTP 429 Too Many Requests", (opened:failure(base .. "/status/429")))
    end)
end)

describe("what passes", function()
    it("is tried again as often as `attempts` says", function()
        local _, meta = open { attempts = 3 }:get(base .. "/stumbles?key=spec")
        assert.equal(3, meta.attempts)
        assert.equal("HTTP 500 Internal Server Error",
            (opened:failure(base .. "/fails")))
    end)
end)
