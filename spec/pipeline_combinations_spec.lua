-- SPDX-License-Identifier: MIT
--
-- Every mode on every kind of content, with every option that works on one: what makes no sense is
-- a failed target that says so and what would work, and all else is done.

local batch = require "batch"
local fetch = require "batch.fetch"
local sites = require "spec.support.site"

local MODES = { "auto", "raw", "text", "markdown", "html", "links", "meta" }

local PATHS = {
    html = "/article",
    pdf = "/manual.pdf",
    json = "/data.json",
    text = "/gauge.log",
    bytes = "/text?type=image/png&bytes=%89PNG%00%ff",
}

local OPTIONS = {
    none = {},
    pages = { pages = "1-2" },
    jq = { jq = "." },
    grep = { grep = "e" },
    question = { question = "How long is the Elbe?" },
}

local function set_of(words)
    local set = {}
    for word in words:gmatch "%S+" do
        set[word] = true
    end
    return set
end

-- The modes that each kind has, and of these the ones that give JSON, and text.
local SHOWN = {
    html = set_of "auto raw text markdown html links meta",
    pdf = set_of "auto raw text markdown meta",
    json = set_of "auto raw text markdown meta",
    text = set_of "auto raw text markdown meta",
    bytes = set_of "auto raw meta",
}
local GIVES_JSON = { html = set_of "links", json = set_of "auto raw text markdown" }
local GIVES_TEXT = {
    html = set_of "auto raw text markdown html links",
    pdf = set_of "auto text markdown",
    json = set_of "auto raw text markdown",
    text = set_of "auto raw text markdown",
}
local HAS_PAGES = { pdf = set_of "auto text markdown meta" }

local function makes_sense(kind, mode, name)
    local wanted = { none = SHOWN, pages = HAS_PAGES, jq = GIVES_JSON, grep = GIVES_TEXT,
        question = GIVES_TEXT }
    return SHOWN[kind][mode] and wanted[name][kind] and wanted[name][kind][mode] or false
end

describe("a combination of kind, mode and option", function()
    local outcomes = {} -- words → target
    local log = {}

    setup(function()
        local site = sites.start()
        local runner = assert(batch.new {
            store = ":memory:", workers = 2, targets_per_job = 1000,
            log = function(_, message) table.insert(log, message) end,
            fetch = assert(fetch.configure { allow = { "127.0.0.0/8" },
                llm = { url = site.base .. "/v1", model = "toy" } }),
        })
        local targets = {}
        for kind, path in pairs(PATHS) do
            for _, mode in ipairs(MODES) do
                for name, options in pairs(OPTIONS) do
                    local all = { mode = mode }
                    for option, value in pairs(options) do
                        all[option] = value
                    end
                    targets[#targets + 1] = { url = site.base .. path, options = all }
                    targets[("%s %s %s"):format(kind, mode, name)] = #targets - 1
                end
            end
        end
        local list = { (unpack or table.unpack)(targets) }
        local id = assert(runner:submit("spec", list))
        assert(runner:wait(id, 60))
        local by_idx = {}
        for target in runner:results(id) do
            by_idx[target.idx] = target
        end
        for words, idx in pairs(targets) do
            if type(words) == "string" then
                outcomes[words] = by_idx[idx]
            end
        end
        runner:poll()
        runner:close()
        site:stop()
    end)

    for kind in pairs(PATHS) do
        for _, mode in ipairs(MODES) do
            for name in pairs(OPTIONS) do
                local words = ("%s %s %s"):format(kind, mode, name)
                local is_done = makes_sense(kind, mode, name)

                it(("%s in mode %s with %s %s"):format(kind, mode, name,
                    is_done and "is done" or "fails with a hint"), function()
                    local target = outcomes[words]
                    assert.same(is_done and "done" or "failed", target.status,
                        target.error or target.result.content)
                    if not is_done then
                        assert.not_equal("internal error", target.error)
                        assert.matches("^%l.*[^.]$", target.error)
                        assert.matches("^%l.*[^.]$", target.hint)
                    elseif mode == "meta" then
                        assert.equal("", target.result.content)
                    end
                end)
            end
        end
    end

    it("raises nothing", function()
        assert.same({}, log)
    end)

    it("names what it is about in each error", function()
        for words, target in pairs(outcomes) do
            local mode, name = words:match " (%l+) (%l+)$"
            if target.status == "failed" then
                assert.is_truthy(target.error:find(mode, 1, true)
                    or target.error:find(name, 1, true) or target.error:find("not text", 1, true),
                    words .. ": " .. target.error)
            end
        end
    end)
end)
