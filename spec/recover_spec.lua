-- SPDX-License-Identifier: MIT
--
-- Which failures an archive may heal, where it is asked, and what its answer means.

local recover = require "batch.recover"
local retry = require "batch.retry"

local ARCHIVE = "https://web.archive.org/web/2id_/"

describe("an archived copy", function()
    it("is looked for when the page is gone, blocked or unreachable", function()
        for _, status in ipairs { 401, 402, 403, 404, 406, 408, 410, 451, 500, 504, 999 } do
            assert.same({ status, true }, { status, recover.is_healable { status = status } })
        end
        for _, kind in ipairs { "connect", "resolve", "timeout", "tls", "redirects", "protocol" } do
            assert.same({ kind, true }, { kind, recover.is_healable { kind = kind } })
        end
    end)

    it("is not looked for when the request is at fault, or will be tried again", function()
        for _, status in ipairs { 200, 400, 405, 413, 415, 429, 503 } do
            assert.same({ status, false }, { status, recover.is_healable { status = status } })
        end
        for _, kind in ipairs { "too_large", "header", "cancelled", "memory" } do
            assert.same({ kind, false }, { kind, recover.is_healable { kind = kind } })
        end
    end)

    it("is never looked for when the guard or the rules of URLs refused the page", function()
        for _, kind in ipairs { "guard", "url" } do
            assert.same({ kind, false }, { kind, recover.is_healable { kind = kind } })
        end
        assert.is_false(recover.is_healable {})
    end)

    it("lies behind the archive's prefix, with the URL as it would be requested", function()
        local known = {
            ["http://a.example"] = "http://a.example/",
            ["https://a.example/b?c=d&e=%20f#part"] = "https://a.example/b?c=d&e=%20f",
            [" http://a.example/b c "] = "http://a.example/b%20c",
            ["http://a.example/b/../../c"] = "http://a.example/c",
            ["http://a.example/x?u=http://b.example/#y"] = "http://a.example/x?u=http://b.example/",
        }
        for url, behind in pairs(known) do
            assert.same(ARCHIVE .. behind, recover.address(ARCHIVE, url))
        end
    end)

    it("does not exist of what is no URL", function()
        local found, message = recover.address(ARCHIVE, "http://user@a.example/")
        assert.same({ nil, "user names in URLs are not allowed" }, { found, message })
    end)
end)

describe("an archive's answer", function()
    local gone = { error = "HTTP 404 Not Found", status = 404 }

    it("is the copy when it is a good one", function()
        assert.is_true(recover.judge(gone, { status = 200 }, ARCHIVE))
        assert.is_true(recover.judge(gone, { status = 203 }, ARCHIVE))
    end)

    it("leaves the page's own error where there is no copy", function()
        assert.same({ nil, "HTTP 404 Not Found", "web.archive.org has no archived copy" },
            { recover.judge(gone, { status = 404 }, ARCHIVE) })
    end)

    it("leaves the page's own error where the archive fails", function()
        local unreachable = { error = "connection refused" }
        assert.same({ nil, "connection refused",
            "no archived copy could be had from web.archive.org: HTTP 403 Forbidden" },
            { recover.judge(unreachable, { status = 403 }, ARCHIVE) })
        assert.same({ nil, "connection refused",
            "no archived copy could be had from 127.0.0.1: timed out after 30 s" },
            { recover.judge(unreachable, { error = "timed out after 30 s" },
                "http://127.0.0.1:8080/web/") })
    end)

    it("that it is busy puts the target off", function()
        for _, status in ipairs { 429, 503 } do
            local answer = { status = status, retry_after = 7 }
            local nothing, later = recover.judge(gone, answer, ARCHIVE)
            assert.is_nil(nothing)
            assert.is_true(retry.is(later))
            assert.same(7, later.seconds)
            assert.is_truthy(later.message:find("^the archive is busy: HTTP " .. status))
        end
    end)
end)
