-- SPDX-License-Identifier: MIT
--
-- What servers should not send, through a runner with the built-in pipeline: each target ends
-- within its time, as what could be made of it or with a sentence.

local canned_servers = require "spec.support.canned"
local core = require "batch.core"
local pdf = require "spec.support.pdf"
local pipeline = require "spec.support.pipeline"

local SLOWNESS = os.getenv "SANITIZER" and 10 or 1

local canned, opened

setup(function()
    canned = canned_servers.start()
end)
teardown(function()
    canned:stop()
end)
before_each(function()
    opened = pipeline.open { timeout = 2 * SLOWNESS, attempts = 1, archive = canned.base }
end)
after_each(function()
    opened:close()
end)

-- A page under a type.
local function put(body, content_type, more)
    return canned:put("page", ("HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s\r\n"):format(
        content_type, more or ("content-length: %d\r\n"):format(#body)) .. body)
end

local function put_html(body)
    return put(body, "text/html")
end

-- Each is done in each mode, or fails with a sentence; never with an internal error.
local function ends_well(url, options)
    local target = opened:target(url, options)
    if target.status == "failed" then
        assert.not_equal("internal error", target.error)
        assert.not_equal("timed out", target.error)
        assert.matches("^%S.*[^.]$", target.error)
    end
    return target
end

describe("HTML", function()
    local pages = {
        ["that is cut off in a tag"] = "<p>Hello <a href='x",
        ["that is cut off in a comment"] = "<p>Hello<!-- and so",
        ["that is cut off in a script"] = "<p>Hello<script>if (a<b) {",
        ["that nests what must not nest"] = "<p>Hello<table><p><tr><b><td>x<i></b>y</table></p>",
        ["that closes what is not open"] = "Hello</div></p></html></body><p>more</b>",
        ["with broken entities"] = "<p>Hello &amp &#x110000; &#0; &#xD800; &none; &#99999999999;",
        ["with broken UTF-8"] = "<p>Hello \255\254\192\128 \237\160\128",
        ["with NUL"] = "<p>He\0llo Hello\0<b\0>x</b>",
        ["with broken attributes"] = "<p>Hello <a href=\"a\" href='b' =x <b \"\" '>c</a>",
        ["with a table beyond all bounds"] = "<p>Hello<table><tr><td colspan=99999999 rowspan=-1>x"
            .. "<td rowspan=65535>y</table>",
        ["with addresses that are none"] = "<p>Hello <a href='http://['>a</a>"
            .. "<a href='javascript:x'>b</a><a href='//'>c</a>"
            .. "<img src='data:x'><a href='ht!tp:x'>d</a>",
    }
    for what, page in pairs(pages) do
        it(what .. " is read in every mode", function()
            local url = put_html(page)
            for _, mode in ipairs { "auto", "text", "markdown", "html" } do
                assert.matches("Hello", (opened:get(url, { mode = mode })))
            end
            opened:get(url, { mode = "links" })
            opened:get(url, { mode = "meta" })
        end)
    end

    it("nested ten thousand times ends in an answer or a sentence", function()
        for _, tag in ipairs { "div", "ul><li", "blockquote", "table><tr><td", "b", "a href=x" } do
            local url = put_html(("<" .. tag .. ">"):rep(10000) .. "Hello")
            for _, mode in ipairs { "auto", "text", "html", "links" } do
                ends_well(url, { mode = mode })
            end
        end
    end)

    it("without anything in it is an empty content", function()
        for _, page in ipairs { "", " \n", "<html></html>", "<script>x()</script>" } do
            for _, mode in ipairs { "auto", "text", "markdown" } do
                assert.equal("", (opened:get(put_html(page), { mode = mode }):gsub("\n", "")))
            end
        end
    end)
end)

describe("a body", function()
    it("in gzip that is cut off is an error that says so", function()
        local packed = canned:filter("gzip -nc", ("A line of text.\n"):rep(1000))
        local url = put(packed:sub(1, -10), "text/plain",
            ("content-encoding: gzip\r\ncontent-length: %d\r\n"):format(#packed - 9))
        assert.equal("the body was cut off: its gzip data is incomplete", (opened:failure(url)))
    end)

    it("that is not in gzip at all, but says so, is an error", function()
        assert.matches("gzip", (opened:failure(put("plain", "text/plain",
            "content-encoding: gzip\r\ncontent-length: 5\r\n"))))
    end)

    it("shorter than its length is an error", function()
        assert.equal("the connection ended before the body was complete",
            (opened:failure(put("short", "text/plain", "content-length: 500\r\n"))))
    end)

    it("in another charset than it says is text all the same", function()
        for _, label in ipairs { "utf-8", "shift_jis", "utf-16", "us-ascii" } do
            local content = opened:get(put("caf\233 \255\129", "text/plain; charset=" .. label))
            assert.is_string(content)
        end
        assert.matches("caf\239\191\189",
            (opened:get(put("caf\233!", "text/plain; charset=utf-8"))))
    end)

    it("that comes a byte a second is ended by the time-out", function()
        local url = put_html("<p>Hello, this takes its time")
        local begun_at = core.now()
        assert.equal(("timed out after %d s"):format(2 * SLOWNESS),
            (opened:failure(url .. "?drip=1")))
        assert.is_true(core.now() - begun_at < 4 * SLOWNESS)
    end)

    it("called a PDF and cut off is an error that says so", function()
        local url = put(pdf.make({ "one", "two" }):sub(1, 300), "application/pdf")
        local message, hint = opened:failure(url)
        assert.equal("the PDF is cut off: its end is missing", message)
        assert.equal("mode 'raw' gives the bytes as they are", hint)
    end)

    it("of a PDF made of images has no text, but a meta", function()
        local url = put(pdf.make({ false, false }, "Scanned"), "application/pdf")
        local message, hint = opened:failure(url)
        assert.equal("the PDF has no text", message)
        assert.matches("OCR", hint)
        local _, meta = opened:get(url, { mode = "meta" })
        assert.same({ 2, "Scanned" }, { meta.pages_total, meta.title })
    end)

    it("of JSON as deep as a well is read by jq, or it says why not", function()
        ends_well(put(("["):rep(20000) .. ("]"):rep(20000), "application/json"), { jq = "." })
        ends_well(put(("["):rep(200), "application/json"), { jq = "." })
        ends_well(put("", "application/json"), { jq = "." })
        ends_well(put("NaN", "application/json"), { jq = "." })
    end)

    it("of one line of megabytes is searched, or it says why not", function()
        ends_well(put(("ab"):rep(2000000), "text/plain"), { grep = "b{3}" })
    end)
end)

describe("a header", function()
    it("of ten thousand fields is read", function()
        local url = put("Hello", "text/plain",
            ("x-a: b\r\n"):rep(10000) .. "content-length: 5\r\n")
        assert.equal("Hello", (opened:get(url)))
    end)

    it("with types that are none leaves the body to its looks", function()
        for _, name in ipairs {
            "", ";;;", "text", "text/", "/", "a b", "\255", "TEXT/HTML;;CHARSET=",
        } do
            local target = ends_well(put("<!DOCTYPE html><p>Hello", name))
            assert.equal("done", target.status, target.error)
            assert.matches("Hello", target.result.content)
        end
    end)

    it("that leads round in circles is an error that counts them", function()
        canned:put("b", "HTTP/1.1 302 Found\r\nlocation: /a\r\ncontent-length: 0\r\n\r\n")
        local url = canned:put("a",
            "HTTP/1.1 302 Found\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n")
        local message = opened:failure(url)
        assert.matches("redirects", message)
    end)

    it("that leads to a forbidden address, or none, is an error", function()
        for _, location in ipairs {
            "http://10.0.0.1/", "file:///etc/passwd", "http://[", "gopher:x",
            "http://me:secret@127.0.0.1/",
        } do
            local url = canned:put("a", ("HTTP/1.1 302 Found\r\nlocation: %s\r\n"
                .. "content-length: 0\r\n\r\n"):format(location))
            local message = opened:failure(url)
            assert.is_nil(message:find("secret", 1, true))
        end
    end)
end)

describe("a URL", function()
    it("that is none, or of another kind, is refused by name", function()
        for _, url in ipairs {
            "file:///etc/passwd", "data:text/plain,x", "ftp://127.0.0.1/", "gopher://127.0.0.1/",
            "http://me@127.0.0.1/", "http://", "nonsense", "http://127.0.0.1:99999/", "http:/x",
            "http://127.0.0.1:22/", "javascript:alert(1)", ("http://127.0.0.1/"):rep(10000),
        } do
            local target = ends_well(url)
            assert.equal("failed", target.status)
        end
    end)
end)
