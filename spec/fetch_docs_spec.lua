-- SPDX-License-Identifier: MIT
--
-- The manual of fetching, held against the software: each example gives what stands below it, and
-- the tables are complete.

local cjson = require "cjson"

local pipeline = require "spec.support.pipeline"
local sections = require "batch.sections"
local sites = require "spec.support.site"
local target_options = require "batch.target_options"

local SITE = "http://127.0.0.1:8000"

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

local manual = read "docs/fetch.md"

-- The examples: a target, and what stands in the blocks below it, each with the line before.
local function examples()
    local list, last, word, block = {}, {}, nil, nil
    for line in manual:match("\n## Examples\n(.-\n)## What"):gmatch "([^\n]*)\n" do
        if block and line == block.fence then
            table.insert(last, { word = word, text = table.concat(block, "\n") })
            block = nil
        elseif block then
            block[#block + 1] = line
        elseif line:find "^```" then
            block = { fence = line:match "^`+" }
        elseif line:find "^    {" then
            last = { target = cjson.decode(line) }
            list[#list + 1] = last
        elseif line ~= "" then
            word = line
        end
    end
    return list
end

describe("docs/fetch.md", function()
    local site, opened
    setup(function()
        site = sites.start()
        opened = pipeline.open {
            archive = site.base .. "/archive/2id_/",
            llm = { url = site.base .. "/v1", model = "toy" },
        }
    end)
    teardown(function()
        opened:close()
        site:stop()
    end)

    -- As the manual would show it.
    local function shown(text)
        return (text:gsub(site.base:gsub("%p", "%%%0"), SITE):gsub("\n+$", ""))
    end

    local function check(block, target)
        if block.word == "fails with" then
            assert.equal(block.text, ("error: %s\nhint: %s"):format(target.error, target.hint))
        elseif block.word:find "meta$" then
            for name, value in pairs(cjson.decode(block.text)) do
                assert.same(value, target.result.meta[name])
            end
        else
            assert.equal("gives", block.word)
            assert.equal(block.text, shown(target.result.content))
        end
    end

    for _, example in ipairs(examples()) do
        local url, options = example.target.url, example.target.options
        it(("shows what %s gives with %s"):format(url, cjson.encode(options or {})), function()
            local target = opened:target(site.base .. url:sub(#SITE + 1), options)
            assert.is_true(#example > 0)
            for _, block in ipairs(example) do
                check(block, target)
            end
        end)
    end

    it("has an example of each option", function()
        local is_shown = {}
        for _, example in ipairs(examples()) do
            for name in pairs(example.target.options or {}) do
                is_shown[name] = true
            end
        end
        for _, name in ipairs(target_options.names) do
            assert.is_true(is_shown[name], name)
            assert.is_truthy(manual:find(("\n| [`%s`]"):format(name), 1, true), name)
        end
        for _, mode in ipairs(target_options.modes) do
            assert.is_truthy(manual:find("`" .. mode .. "`", 1, true), mode)
        end
    end)

    it("has each field of meta", function()
        for name in ([[status url content_type charset title bytes seconds attempts pages_total
            matches passages truncated recovered_from]]):gmatch "%S+" do
            assert.is_truthy(manual:find("`" .. name .. "`", 1, true), name)
        end
    end)

    it("has each field of the configuration with its default", function()
        for _, section in ipairs { "fetch", "fetch.llm" } do
            for _, field in ipairs(sections[section]) do
                if field.type ~= "section" then
                    local default = type(field.default) == "table" and "[]"
                        or type(field.default) == "number" and tostring(field.default)
                        or '"' .. field.default:gsub("/%d[%w.]*$", function(version)
                            return field.name == "user_agent" and "/X.Y.Z" or version
                        end) .. '"'
                    local row = ("| `%s` | `%s` | %s |"):format(field.name, default,
                        field.sentence)
                    assert.is_truthy(manual:find(row, 1, true), row)
                end
            end
        end
    end)
end)
