-- SPDX-License-Identifier: MIT
--
-- Every option of the built-in pipeline through the command line, as flags and in JSON Lines, and
-- over HTTP: the same targets end the same, whichever door they come in by.

local cjson = require "cjson"

local fresh = require "spec.support.fresh"
local service = require "spec.support.service"
local shell = require "spec.support.shell"
local sites = require "spec.support.site"

-- What is asked of the example site, and what has to come of it.
local ROWS = {
    { path = "/latin1.txt", flags = "--mode raw", options = { mode = "raw" },
        content = "caf\233 cr\232me\n" },
    { path = "/manual.pdf", flags = "--pages 4", options = { pages = "4" },
        content = "3. Mouths\nBoth end in the North Sea.", meta = { pages_total = 4 } },
    { path = "/manual.pdf", flags = "--pages -1 --grep -x?A",
        options = { pages = "-1", grep = "-x?A" }, content = "", meta = { matches = 0 } },
    { path = "/data.json", flags = "--jq '.rivers[1].km'", options = { jq = ".rivers[1].km" },
        content = "1094" },
    { path = "/gauge.log", flags = "--grep WARNING", options = { grep = "WARNING" },
        content = "09:00 WARNING level 251 cm\n18:00 WARNING no signal", meta = { matches = 2 } },
    { path = "/gauge.log", flags = "--grep 'level 251' --context",
        options = { grep = "level 251", context = true }, content = "06:00 level 212 cm\n"
            .. "07:00 level 214 cm\n08:00 level 219 cm\n09:00 WARNING level 251 cm\n"
            .. "10:00 level 248 cm\n11:00 level 240 cm\n12:00 level 233 cm",
        meta = { matches = 1 } },
    { path = "/manual.pdf", flags = "--question 'How long is the Elbe?' --context",
        options = { question = "How long is the Elbe?", context = true },
        content = "The Elbe is 1094 km long.",
        meta = { passages = { "The Elbe is 1094 km long." } } },
    { path = "/gone", flags = "--recover --mode text", options = { recover = true, mode = "text" },
        content = "The page as it was\n\nThis is the archived copy of gone.\n",
        meta = { title = "The page as it was" } },
    { path = "/echo", options = { headers = { Accept = "text/x" }, jq = ".accept" },
        content = '"text/x"' },
    { path = "/manual.pdf", flags = "--pages 3-9", options = { pages = "3-9" },
        error = "pages: '3-9' is out of range", hint = "the document has 4 pages" },
    { path = "/article", flags = "--jq .", options = { jq = "." },
        error = "jq is for JSON, this is HTML",
        hint = "mode 'links' gives JSON of a page, mode 'raw' what is JSON in spite of its type" },
}

local site

setup(function()
    site = sites.start()
end)
teardown(function()
    site:stop()
end)

local function config()
    return ('[fetch]\nallow = ["127.0.0.0/8"]\narchive = "%s/archive/2id_/"\n[fetch.llm]\n'
        .. 'url = "%s/v1"\nmodel = "toy"\n'):format(site.base, site.base)
end

-- Compares an outcome, as the command line and HTTP show it, with what it has to be.
local function check(row, outcome)
    if row.error then
        assert.same({ "failed", row.error, row.hint },
            { outcome.status, outcome.error, outcome.hint })
        return
    end
    assert.equal("done", outcome.status, outcome.error)
    local content = outcome.result.content
    if outcome.result.encoding == "base64" then
        content = shell.run("echo " .. content .. " | base64 -d >bytes") and shell.read "bytes"
    end
    assert.equal(row.content, content)
    for name, value in pairs(row.meta or {}) do
        assert.same(value, outcome.result.meta[name])
    end
end

describe("luabatch run", function()
    before_each(function()
        shell.start()
        shell.write("config.toml", config())
    end)
    after_each(shell.finish)

    local function outcomes_of(arguments)
        local code, out, err = shell.luabatch("run -c config.toml " .. arguments)
        local outcomes = {}
        for line in out:gmatch "[^\n]+" do
            local outcome = cjson.decode(line)
            outcomes[outcome.line] = outcome
        end
        return outcomes, code, err
    end

    for _, row in ipairs(ROWS) do
        if row.flags then
            it(("takes %s for %s"):format(row.flags, row.path), function()
                local outcomes, code, err = outcomes_of(("'%s%s' %s"):format(site.base, row.path,
                    row.flags))
                assert.equal(row.error and 1 or 0, code, err)
                check(row, outcomes[1])
            end)
        end
    end

    it("takes options for each target in JSON Lines, which win over flags", function()
        local lines = {}
        for i, row in ipairs(ROWS) do
            lines[i] = cjson.encode { url = site.base .. row.path, options = row.options }
        end
        shell.write("list.jsonl", table.concat(lines, "\n") .. "\n")
        local outcomes, code = outcomes_of "list.jsonl --mode auto"
        assert.equal(1, code)
        for i, row in ipairs(ROWS) do
            check(row, outcomes[i])
        end
    end)

    it("without a language model says what to configure", function()
        shell.write("config.toml", '[fetch]\nallow = ["127.0.0.0/8"]\n')
        local outcomes, code, err = outcomes_of(("%s/article --question Why?"):format(site.base))
        assert.equal(1, code)
        assert.matches("set %[fetch%.llm%] url", outcomes[1].hint)
        assert.matches("hint: set %[fetch%.llm%] url", err)
    end)

    it("refuses a mode that does not exist before it fetches anything", function()
        local outcomes, code, err = outcomes_of(("%s/article --mode markdwn"):format(site.base))
        assert.same({ {}, 2 }, { outcomes, code })
        assert.matches("unknown mode 'markdwn', did you mean 'markdown'?", err, 1, true)
    end)
end)

describe("luabatch serve", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("takes the same options", function()
        shell.start()
        local server = service.start {
            batch = 'fetch = "batch.fetch"', fetch = config():gsub("^%[fetch%]\n", ""),
        }
        local targets = {}
        for i, row in ipairs(ROWS) do
            targets[i] = { url = site.base .. row.path, options = row.options }
        end
        local answer = server:curl("/v1/batches",
            ("-H 'content-type: application/json' -d %s"):format(
                shell.quote(cjson.encode { targets = targets })))
        assert.equal(202, answer.status, answer.body)
        local got = server:await_status(answer.json().id, "partial").json()
        for i, row in ipairs(ROWS) do
            check(row, got.targets[i])
        end
        shell.finish()
    end)

    it("refuses an option that does not exist by its nearest name", function()
        local server = service.start { batch = 'fetch = "batch.fetch"' }
        local answer = server:curl("/v1/batches", "-H 'content-type: application/json' -d "
            .. shell.quote '{"targets":[{"url":"http://a/","options":{"greb":"x"}}]}')
        assert.equal(422, answer.status)
        assert.equal("target 0: unknown option 'greb', did you mean 'grep'?",
            answer.json().error.message)
    end)
end)
