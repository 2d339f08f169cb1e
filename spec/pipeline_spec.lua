-- SPDX-License-Identifier: MIT
--
-- Every option of the built-in pipeline through a runner, over the example site.

local cjson = require "cjson"

local models = require "spec.support.llm"
local pipeline = require "spec.support.pipeline"
local sites = require "spec.support.site"

local MANUAL = {
    "A manual of rivers\nIn four pages",
    "1. Sources\nThe Rhine rises in the Alps.\nThe Elbe rises in the Giant Mountains.",
    "2. Lengths\nThe Rhine is 1233 km long.\nThe Elbe is 1094 km long.",
    "3. Mouths\nBoth end in the North Sea.",
}

local site, base, opened

local function open(fields, config)
    opened = pipeline.open(fields, config)
    return opened
end

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

local function has(text, part)
    assert.is_truthy(text:find(part, 1, true), part .. "\n-- is not in --\n" .. text)
end

local function has_not(text, part)
    assert.is_nil(text:find(part, 1, true), part .. "\n-- is in --\n" .. text)
end

describe("mode", function()
    it("auto makes Markdown of a page's main content", function()
        local content = open():get(base .. "/article")
        for _, part in ipairs {
            "# Two rivers\n\n", ("The [Rhine](%s/pages/1) rises"):format(base), "**1,233 km**",
            "| River | Length in km | Basin in km² |\n| --- | --- | --- |\n| Rhine | 1233 |",
            "```sh\njq '.rivers[].name' data.json\n```", "> No man ever steps",
            "1. Take the list:\n   - as [JSON]",
        } do
            has(content:gsub("\194\160", " "), part)
        end
        for _, part in ipairs { "cookies", "Shop", "Ten lakes", "Imprint", "Hidden", "track" } do
            has_not(content, part)
        end
        assert.equal(content, (opened:get(base .. "/article", { mode = "auto" })))
        assert.equal(content, (opened:get(base .. "/article", { mode = "markdown" })))
    end)

    it("auto leaves JSON, other text and bytes as they are", function()
        open()
        assert.equal('{"rivers":[{"name":"Rhine","km":1233},{"name":"Elbe","km":1094}]}',
            (opened:get(base .. "/data.json")))
        assert.equal("café crème\n", (opened:get(base .. "/latin1.txt")))
        assert.equal("\137PNG\0\255",
            (opened:get(base .. "/text?type=image/png&bytes=%89PNG%00%ff")))
    end)

    it("auto reads pages in the encodings that there are", function()
        open()
        local pages = {
            { "utf-8", "<meta charset=utf-8><title>Käse</title><p>Käse für 3 €", "Käse für 3 €" },
            { "iso-8859-1", "<title>K\228se</title><p>K\228se", "Käse",
                type = "text/html; charset=ISO-8859-1" },
            { "windows-1252", "<meta http-equiv=content-type content='text/html; "
                .. "charset=windows-1252'><title>K\228se</title><p>3 \128", "3 €" },
            { "shift_jis", "<meta charset=Shift_JIS><title>K\131`</title><p>\147\250\150{", "日本" },
            { "utf-16le", "\255\254<\0p\0>\0\229\101,\103", "日本" },
            { "utf-16be", "\254\255\0<\0p\0>\101\229\103,", "日本" },
        }
        for _, page in ipairs(pages) do
            local url = ("%s/text?type=%s&bytes=%s"):format(base,
                (page.type or "text/html"):gsub("[ ;=]", function(c)
                    return ("%%%02x"):format(c:byte())
                end), (page[2]:gsub(".", function(c)
                    return ("%%%02x"):format(c:byte())
                end)))
            local content, meta = opened:get(url)
            assert.same({ page[3] .. "\n", page[1] }, { content, meta.charset })
            assert.same(page[2]:find "title>K" and "K" or nil, meta.title and meta.title:sub(1, 1))
        end
    end)

    it("auto gives the text of a PDF, whatever its type says", function()
        open()
        local content, meta = opened:get(base .. "/manual.pdf")
        assert.equal(table.concat(MANUAL, "\n\n"), content)
        assert.same({ 4, "A manual of rivers" }, { meta.pages_total, meta.title })
        assert.equal(content, (opened:get(base .. "/manual.pdf?type=text/html")))
    end)

    it("raw gives the bytes received", function()
        open()
        assert.equal("caf\233 cr\232me\n", (opened:get(base .. "/latin1.txt", { mode = "raw" })))
        has(opened:get(base .. "/article", { mode = "raw" }), "<script>")
        assert.equal("%PDF-", opened:get(base .. "/manual.pdf", { mode = "raw" }):sub(1, 5))
    end)

    it("text gives the main content without marks", function()
        local content = open():get(base .. "/article", { mode = "text" })
        has(content, "The Rhine rises in the Alps")
        has_not(content, "[Rhine]")
        has_not(content, "cookies")
    end)

    it("html gives the main content, cleaned", function()
        local content = open():get(base .. "/article", { mode = "html" })
        has(content, ('<a href="%s/pages/1">Rhine</a>'):format(base))
        has(content, "<td>185000</td>")
        for _, part in ipairs { "<script", "<style", "class=\"content", "cookies", "<nav" } do
            has_not(content, part)
        end
    end)

    it("links gives all links as JSON, absolute", function()
        local links = cjson.decode((open():get(base .. "/article", { mode = "links" })))
        assert.equal(12, #links)
        assert.same({ url = base .. "/data.json", text = "JSON" }, links[9])
        assert.equal("[]", (opened:get(base .. "/text?type=text/html&bytes=none",
            { mode = "links" })))
    end)

    it("meta gives no content, but what is known of it", function()
        local content, meta = open():get(base .. "/manual.pdf", { mode = "meta" })
        assert.same({ "", 4 }, { content, meta.pages_total })
        content, meta = opened:get(base .. "/article", { mode = "meta" })
        assert.same({ "", "Two rivers – The River Almanac" }, { content, meta.title })
        assert.equal(6, (select(2, opened:get(base .. "/text?type=image/png&bytes=%89PNG%00%ff",
            { mode = "meta" }))).bytes)
    end)

    it("that is unknown fails with the nearest", function()
        open()
        assert.same({ "unknown mode 'markdwn'", "did you mean 'markdown'?" },
            { opened:failure(base .. "/", { mode = "markdwn" }) })
        assert.same({ "unknown mode 'zzzzzzzzz'",
            "known are auto, raw, text, markdown, html, links, meta" },
            { opened:failure(base .. "/", { mode = "zzzzzzzzz" }) })
    end)
end)

describe("pages", function()
    it("takes a part of a PDF", function()
        open()
        for pages, wanted in pairs {
            ["2"] = { 2 }, ["-3"] = { 1, 2, 3 }, ["3-"] = { 3, 4 }, ["1,3-4"] = { 1, 3, 4 },
        } do
            local texts = {}
            for i, number in ipairs(wanted) do
                texts[i] = MANUAL[number]
            end
            local content, meta = opened:get(base .. "/manual.pdf", { pages = pages })
            assert.same({ table.concat(texts, "\n\n"), 4 }, { content, meta.pages_total })
        end
    end)

    it("out of range, also in part, tells how many there are", function()
        open()
        for _, pages in ipairs { "5", "3-9", "-5", "1,7-" } do
            local message, hint = opened:failure(base .. "/manual.pdf", { pages = pages })
            assert.matches("^pages: '.*' is out of range$", message)
            assert.equal("the document has 4 pages", hint)
        end
    end)

    it("that are none say how they are written", function()
        open()
        for _, pages in ipairs { "one", "0", "3-1", "1,,2", "1-2-3", "-" } do
            local message, hint = opened:failure(base .. "/manual.pdf", { pages = pages })
            assert.matches("^pages: ", message)
            assert.is_truthy(#hint > 0)
        end
    end)

    it("of what is no PDF fail with a hint", function()
        assert.same({ "pages is for the text of a PDF, this is HTML", "leave pages out" },
            { open():failure(base .. "/article", { pages = "1" }) })
    end)
end)

describe("jq", function()
    it("filters JSON", function()
        open()
        assert.equal('"Rhine"\n"Elbe"',
            (opened:get(base .. "/data.json", { jq = ".rivers[].name" })))
        assert.equal("2327", (opened:get(base .. "/data.json", { jq = "[.rivers[].km] | add" })))
        assert.equal("7", (opened:get(base .. "/text?type=text/plain&bytes=%7b%22a%22:7%7d",
            { jq = ".a" })))
    end)

    it("filters what mode links gives", function()
        assert.equal(('"%s/lakes"'):format(base), (open():get(base .. "/article",
            { mode = "links", jq = '.[] | select(.text == "Lakes") | .url' })))
    end)

    it("on HTML fails with a hint", function()
        local message, hint = open():failure(base .. "/article", { jq = "." })
        assert.equal("jq is for JSON, this is HTML", message)
        has(hint, "mode 'links'")
    end)

    it("on other text, and a filter that is wrong, fails with jq's own words", function()
        open()
        local message, hint = opened:failure(base .. "/gauge.log", { jq = "." })
        assert.matches("^jq: the content is not JSON: ", message)
        has(hint, "leave the option out")
        message, hint = opened:failure(base .. "/data.json", { jq = ".rivers[" })
        assert.matches("^jq: syntax error", message)
        assert.equal("the filter is not one that jq understands", hint)
        message = opened:failure(base .. "/data.json", { jq = ".rivers.name" })
        has(message, "Cannot index array")
    end)
end)

describe("grep", function()
    it("keeps the matching lines, in order", function()
        local content, meta = open():get(base .. "/gauge.log", { grep = "WARNING|level 24\\d" })
        assert.equal(4, meta.matches)
        assert.equal("09:00 WARNING level 251 cm\n10:00 level 248 cm\n11:00 level 240 cm\n"
            .. "18:00 WARNING no signal", content)
    end)

    it("with context gives three lines around each, groups parted by --", function()
        local content, meta = open():get(base .. "/gauge.log",
            { grep = "WARNING", context = true })
        assert.equal(2, meta.matches)
        assert.equal("06:00 level 212 cm\n07:00 level 214 cm\n08:00 level 219 cm\n"
            .. "09:00 WARNING level 251 cm\n10:00 level 248 cm\n11:00 level 240 cm\n"
            .. "12:00 level 233 cm\n--\n15:00 level 224 cm\n16:00 level 223 cm\n"
            .. "17:00 level 222 cm\n18:00 WARNING no signal\n19:00 level 221 cm", content)
    end)

    it("without a match is an empty content", function()
        local content, meta = open():get(base .. "/gauge.log", { grep = "flood", context = true })
        assert.same({ "", 0 }, { content, meta.matches })
    end)

    it("comes after mode and jq", function()
        open()
        assert.equal("The Elbe is 1094 km long.", (opened:get(base .. "/manual.pdf",
            { pages = "3", grep = "Elbe" })))
        assert.equal('"Elbe"', (opened:get(base .. "/data.json",
            { jq = ".rivers[].name", grep = "^\"E" })))
    end)

    it("that is no pattern fails with a hint, and nothing is fetched for it", function()
        local message, hint = open():failure("http://127.0.0.1:2/", { grep = "(" })
        assert.matches("^the grep pattern is wrong: ", message)
        has(hint, "PCRE2")
    end)

    it("that would never end fails with a hint", function()
        local message, hint = open():failure(
            base .. "/text?bytes=" .. ("x"):rep(60) .. "!", { grep = "^(x+x+)+$" })
        assert.matches("^the grep pattern", message)
        has(hint, "(a+)+")
    end)
end)

describe("question", function()
    local model
    setup(function() model = models.start() end)
    teardown(function() model:stop() end)

    local function open_asking(llm, config)
        local settings = { url = model.url, model = "stub" }
        for name, value in pairs(llm or {}) do
            settings[name] = value
        end
        -- The model's address is the operator's: the guard would not let it pass otherwise.
        return open({ llm = settings }, config)
    end

    it("is answered by the configured model", function()
        model:says "1,094 km"
        local content, meta = open_asking():get(base .. "/article",
            { question = "How long is the Elbe?" })
        assert.same({ "1,094 km", "Two rivers – The River Almanac" }, { content, meta.title })
        assert.is_nil(meta.truncated)
        local sent = model:requests()[1].json
        has(sent.messages[2].content, "Question: How long is the Elbe?")
        has_not(sent.messages[2].content, "cookies")
    end)

    it("with context brings the passages", function()
        model:says '{"answer":"1,094 km","passages":["It passes Basel, Strasbourg and Cologne."]}'
        local content, meta = open_asking():get(base .. "/article",
            { question = "Through what does the Rhine pass?", context = true })
        assert.same({ "1,094 km", { "It passes Basel, Strasbourg and Cologne." } },
            { content, meta.passages })
    end)

    it("about a long page is asked about what fits best, and says so", function()
        model:says "1,094 km"
        local _, meta = open_asking({ max_input = 400 }):get(base .. "/article",
            { question = "How long is the Elbe?" })
        assert.is_true(meta.truncated)
    end)

    it("is busy as long as the model is", function()
        model:answers(
            { status = 429, headers = { ["retry-after"] = "1" }, body = "{}" },
            { body = cjson.encode { choices = { { message = { content = "at last" } } } } })
        local target = open_asking():target(base .. "/article", { question = "Well?" })
        assert.same({ "done", "at last", 2 },
            { target.status, target.result.content, target.attempts })
    end)

    it("that is blank fails, and nobody is asked", function()
        assert.same({ "question must not be blank", "leave it out to get the content itself" },
            { open_asking():failure(base .. "/article", { question = " \n" }) })
    end)

    it("without a model fails with what to configure", function()
        local message, hint = open():failure(base .. "/article", { question = "Well?" })
        assert.equal("no language model is configured, so there is no answer to a question",
            message)
        has(hint, "[fetch.llm] url")
    end)
end)

describe("headers", function()
    it("go with the request", function()
        assert.equal('"de"', (open():get(base .. "/echo",
            { headers = { ["Accept-Language"] = "de" }, jq = '."accept-language"' })))
    end)

    it("that would break the request are refused at submit", function()
        open()
        for _, headers in ipairs { { Host = "x" }, { ["Content-Length"] = "7" }, { A = "b\nc" } } do
            local id, message, code = opened.runner:submit("spec", {
                { url = base .. "/", options = { headers = headers } },
            })
            assert.same({ nil, "invalid" }, { id, code })
            assert.matches("^target 0: .*header", message)
        end
    end)
end)

describe("meta", function()
    it("has all that was found out", function()
        local _, meta = open():get(base .. "/moved")
        assert.is_true(meta.seconds > 0 and meta.seconds < 5)
        meta.seconds = nil
        assert.same({
            status = 200, url = base .. "/pages/1", content_type = "text/html; charset=utf-8",
            charset = "utf-8", title = "Page 1", bytes = 219, attempts = 1,
        }, meta)
    end)

    it("counts the attempts of the last fetch", function()
        local target = open({ attempts = 2 }):target("http://127.0.0.1:2/", {})
        assert.same({ "failed", "connection refused" }, { target.status, target.error })
    end)
end)

describe("an option that another program let through", function()
    it("is a failed target", function()
        local batch = require "batch"
        local path = os.tmpname()
        os.remove(path)
        open({}, { store = path })
        local client = assert(batch.client { store = path, fetch = print })
        local refusals = {
            { { mod = "raw" }, "unknown option 'mod', did you mean 'mode'?" },
            { { headers = { Host = "x" } }, "header 'Host' is set by the connection itself" },
            { { headers = 7 }, "headers must be an object, got a number" },
        }
        for _, row in ipairs(refusals) do
            local id = assert(client:submit("spec", { { url = base .. "/", options = row[1] } }))
            assert(client:wait(id, 10))
            local target = select(2, client:status(id))[1]
            assert.same({ "failed", row[2] }, { target.status, target.error })
            assert.is_string(target.hint)
        end
        client:close()
        opened:close()
        opened = nil
        os.execute("rm -f " .. path .. "*")
    end)
end)
