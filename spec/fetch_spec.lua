-- SPDX-License-Identifier: MIT
--
-- The built-in pipeline without a runner: the test plays the worker.

local cjson = require "cjson"

local fetch = require "batch.fetch"
local retry = require "batch.retry"
local sites = require "spec.support.site"

local LOOPBACK = { "127.0.0.0/8" }

-- A worker's context that sleeps in no time, and notes how long it would have been.
local function new_context(fields)
    local ctx = { slept = {} }
    for name, value in pairs(fields or {}) do
        ctx[name] = value
    end
    function ctx:sleep(seconds)
        table.insert(self.slept, seconds)
        return not self.is_cancelled
    end
    function ctx:cancelled()
        return self.is_cancelled == true
    end
    return ctx
end

describe("the built-in pipeline", function()
    local site, base, built
    setup(function()
        site = sites.start()
        base = site.base
        built = assert(fetch.configure { allow = LOOPBACK, timeout = "5s" })
        built.setup()
    end)
    teardown(function()
        site:stop()
        built.teardown()
    end)

    local function get(path, options, ctx)
        return built.fetch({ url = base .. path, options = options or {} }, ctx or new_context())
    end

    local function text_page(content_type, bytes)
        return ("/text?type=%s&bytes=%s"):format(
            content_type:gsub("[^%w]", function(c)
                return ("%%%02x"):format(c:byte())
            end),
            (bytes:gsub(".", function(c)
                return ("%%%02x"):format(c:byte())
            end)))
    end

    it("gives a page as text, with what was found out about it", function()
        local result = assert(get "/moved")
        assert.is_truthy(result.content:find("This is page 1", 1, true))
        assert.is_true(result.meta.seconds > 0)
        result.meta.seconds = nil
        assert.same({
            status = 200,
            url = base .. "/pages/1",
            content_type = "text/html; charset=utf-8",
            charset = "utf-8",
            title = "Page 1",
            bytes = #assert(get("/moved", { mode = "raw" })).content,
            attempts = 1,
        }, result.meta)
    end)

    it("gives what is no text as bytes", function()
        local result = assert(get(text_page("image/png", "\137PNG\0\255")))
        assert.same("\137PNG\0\255", result.content)
        assert.same(result.meta.bytes, #result.content)
        assert.is_nil(result.meta.charset)
    end)

    it("gives a result that JSON can hold", function()
        assert.is_string(cjson.encode(assert(get "/data.json").meta))
    end)

    describe("in mode", function()
        it("raw gives the bytes received", function()
            local result = assert(get("/latin1.txt", { mode = "raw" }))
            assert.same("caf\233 cr\232me\n", result.content)
        end)

        it("auto, text or none gives UTF-8", function()
            for _, mode in ipairs { "auto", "text", "" } do
                local result = assert(get("/latin1.txt", { mode = mode }))
                assert.same({ "café crème\n", "iso-8859-1", 11 },
                    { result.content, result.meta.charset, result.meta.bytes })
            end
        end)

        it("text says what is no text", function()
            local result, message, hint = get(text_page("image/png", "x"), { mode = "text" })
            assert.same({ nil, "image/png is not text", "mode 'raw' gives the bytes as they are" },
                { result, message, hint })
        end)
    end)

    it("reads the charset where the sender wrote it", function()
        local pages = {
            { "text/plain; charset=\"ISO-8859-1\"", "\233", "é", "iso-8859-1" },
            { "text/plain;charset=windows-1252", "\128", "€", "windows-1252" },
            { "text/plain; charset=utf-16le", "a\0", "a", "utf-16le" },
            { "text/plain", "\255\254a\0", "a", "utf-16le" },
            { "text/plain; charset=latin1", "\239\187\191é", "é", "utf-8" },
            { "text/plain", "\233", "é", "windows-1252" },
            { "application/json", "é", "é", "utf-8" },
            { "text/html", "<meta charset=koi8-r>\208", "п\n", "koi8-r" },
            { "text/html", "<meta charset=\"utf-16\">é", "é\n", "utf-8" },
            { "text/html; charset=nonsense", "<meta charset=koi8-r>\208", "п\n", "koi8-r" },
            { "text/html; charset=nonsense", "<meta charset=none>é", "é\n", "utf-8" },
            { "text/html; charset=nonsense", "\233", "é\n", "windows-1252" },
            { "application/xml", "<?xml version='1.0' encoding='iso-8859-2'?>\177",
                "<?xml version='1.0' encoding='iso-8859-2'?>ą", "iso-8859-2" },
        }
        for _, row in ipairs(pages) do
            local result = assert(get(text_page(row[1], row[2])))
            assert.same({ row[3], row[4] }, { result.content, result.meta.charset })
        end
    end)

    it("gives text in an unknown charset as bytes, unless text was asked for", function()
        local path = text_page("text/plain; charset=utf-7", "a\255")
        assert.same("a\255", assert(get(path)).content)
        local _, message = get(path, { mode = "text" })
        assert.same("unknown charset 'utf-7'", message)
    end)

    it("takes a body without a type for what it looks like", function()
        local identify = require("batch.content").identify
        local kinds = {
            abc = "text", ["a\0b"] = "bytes", ["%PDF-1.7 x"] = "pdf", ["<html><p>x"] = "html",
            [" <!DOCTYPE html><p>x"] = "html",
        }
        for body, kind in pairs(kinds) do
            assert.equal(kind, identify(body, nil).kind)
        end
    end)

    it("takes a PDF for one by its content, whatever its type says", function()
        local identify = require("batch.content").identify
        assert.equal("pdf", identify("%PDF-1.7 x", "text/html").kind)
        assert.equal("pdf", identify("\0\r\n%PDF-1.7 x", "image/png").kind)
        assert.equal("%PDF-1.7 x", identify("some header\n%PDF-1.7 x", "application/pdf").pdf)
        assert.equal("html", identify("<html>not logged in", "application/pdf").kind)
        for media, kind in pairs { ["text/html"] = "html", ["text/plain"] = "text" } do
            assert.equal(kind, identify("<p>A file begins with %PDF-1.4", media).kind)
        end
    end)

    it("gives a meta that is text, whatever the server sends", function()
        local result = assert(get(text_page("text/plain; charset=\255; a=\254", "x")))
        assert.same("text/plain; charset=\239\191\189; a=\239\191\189", result.meta.content_type)
        assert.same("\239\191\189", result.meta.charset)
    end)

    it("reads titles with entities and line breaks", function()
        local result = assert(get(text_page("text/html", "<TITLE\n>a &amp;\n b</TITLE>")))
        assert.same("a & b", result.meta.title)
        assert.is_nil(assert(get(text_page("text/html", "<title></title>"))).meta.title)
    end)

    it("sends the target's headers", function()
        local result = assert(get("/echo", { headers = { ["X-Test"] = "yes" } }))
        assert.same("yes", cjson.decode(result.content)["x-test"])
    end)

    it("fails a target by the words of its status", function()
        local failures = {
            [404] = "HTTP 404 Not Found",
            [410] = "HTTP 410 Gone",
            [500] = "HTTP 500 Internal Server Error",
            [599] = "HTTP 599",
        }
        for status, message in pairs(failures) do
            assert.same({ nil, message }, { get("/status/" .. status) })
        end
    end)

    it("calls a busy host busy, for as long as it says", function()
        for _, status in ipairs { 429, 503 } do
            local _, busy = get(("/status/%d?retry-after=7"):format(status))
            assert.is_true(retry.is(busy))
            assert.same({ 7, false }, { busy.seconds, busy.patient })
        end
        local _, busy = get "/status/503"
        assert.same({ "HTTP 503 Service Unavailable" }, { busy.message, busy.seconds })
    end)

    it("tries again what may pass, with growing pauses", function()
        for _, status in ipairs { 408, 500, 502, 504 } do
            local ctx = new_context()
            get("/status/" .. status, nil, ctx)
            local first, second = ctx.slept[1], ctx.slept[2]
            assert.same(2, #ctx.slept)
            assert.is_true(first >= 0.25 and first <= 0.75 and second >= 0.5 and second <= 1.5)
        end
        local ctx = new_context()
        local _, message = built.fetch({ url = "http://127.0.0.1:2/" }, ctx)
        assert.same({ "connection refused", 2 }, { message, #ctx.slept })
    end)

    it("does not try again what cannot pass", function()
        for _, url in ipairs {
            base .. "/missing", base .. "/redirect?n=9", "http://10.0.0.1/", "file:///",
        } do
            local ctx = new_context()
            assert.is_nil(built.fetch({ url = url }, ctx))
            assert.same({}, ctx.slept)
        end
    end)

    it("leaves when it is cancelled in a pause, or would miss its deadline", function()
        local _, message = get("/fails", nil, new_context { is_cancelled = true })
        assert.same("cancelled", message)
        local ctx = new_context { deadline = os.time() }
        get("/fails", nil, ctx)
        assert.same({}, ctx.slept)
    end)

    it("works without setup, and again after teardown", function()
        built.teardown()
        assert.is_truthy(get "/")
    end)

    it("can be carried to another Lua state", function()
        local carry = require "batch.carry"
        local carried = assert(carry.unpack(assert(carry.pack(built, "fetch"))))
        assert.is_truthy(carried.fetch({ url = base .. "/" }, new_context()))
        assert.is_true(carried.check { url = "x" })
        carried.teardown()
    end)
end)

describe("fetch.configure", function()
    it("refuses wrong settings by field, rule and value", function()
        local refusals = {
            { { timout = 1 }, "unknown field 'timout', did you mean 'timeout'?" },
            { { allow = { "10.0.0.1/8" } },
                'allow must be a list of networks such as "10.0.0.0/8", got "10.0.0.1/8" '
                .. "(its address has bits behind the prefix)" },
            { { user_agent = "a\nb" },
                [[user_agent must be a line of text of 1 to 255 bytes, got "a\010b"]] },
        }
        for _, row in ipairs(refusals) do
            assert.same({ nil, row[2], "invalid" }, { fetch.configure(row[1]) })
        end
        local _, message = fetch.configure { max_body = "16MB" }
        assert.is_truthy(message:find("^max_body must be a size .* got \"16MB\"$"))
    end)

    it("takes the settings of a configuration's block as they are", function()
        local section = assert(require("batch.fields").check("fetch", { timeout = "1s" }))
        assert.is_table(fetch.configure(section))
    end)
end)
