-- SPDX-License-Identifier: MIT
--
-- What is written about the configuration, held against what is read of it.

local config = require "batch.config"
local config_reference = require "batch.config_reference"
local config_text = require "batch.config_text"
local sections = require "batch.sections"

local ANEW = "is stale: write it anew with `make docs`"

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

-- The columns that a line takes.
local function columns(line)
    return #line:gsub("[\128-\191]", "")
end

-- Calls visit(field) for each field that a file may hold.
local function each_field(visit, section)
    for _, field in ipairs(sections[section or "file"]) do
        if field.only ~= "lua" then
            visit(field)
            if field.section then
                each_field(visit, field.section)
            end
        end
    end
end

describe("the file that --print-config prints", function()
    it("says what holds without it, and gives no warning", function()
        local full, warnings = config.parse(config_text.toml())
        assert.same({}, warnings)
        assert.same((config.parse ""), full)
    end)

    it("sets every field", function()
        local _, _, given = config.parse(config_text.toml())
        local function check(holder, section)
            for _, field in ipairs(sections[section]) do
                if field.type == "section" and field.only ~= "lua" then
                    check(holder[field.name], field.section)
                elseif field.type ~= "list" and field.only ~= "lua" then
                    assert.same({ field.name, field.default }, { field.name, holder[field.name] })
                end
            end
        end
        check(given, "file")
    end)

    it("has each field's and section's sentence above it", function()
        local text = config_text.toml():gsub("\n[# ]+", " ")
        each_field(function(field)
            assert.is_truthy(text:find(field.sentence, 1, true), field.sentence)
        end)
    end)

    it("has the bounds and the allowed values", function()
        local text = config_text.toml()
        for _, claim in ipairs {
            "worker threads (an integer from 1 to 256)\nworkers = 1\n",
            "fails (a size up to 900MiB)\nmax_result_bytes = \"8MiB\"\n",
            "one request (a duration up to 24h)\ntimeout = \"30s\"\n",
            "(\"debug\", \"info\", \"warn\" or \"error\")\nlevel = \"info\"\n",
            "(true or false)\ndisabled = false\n",
        } do
            assert.is_truthy(text:find(claim, 1, true), claim)
        end
    end)

    it("has a token to be uncommented", function()
        local lines, is_within = {}, false
        for line in config_text.toml():gmatch "([^\n]*)\n" do
            is_within = line:find("^# %[%[auth.token") ~= nil or is_within and line ~= ""
            lines[#lines + 1] = is_within and line:gsub("^# ", "") or line
        end
        local text = table.concat(lines, "\n")
        assert.matches('auth.token.sha256 must be the 64 hexadecimal digits of a SHA-256, got "…"',
            select(2, config.parse(text)), 1, true)
        local full = assert(config.parse((text:gsub("…", ("a"):rep(64)))))
        assert.same({ { caller = "alice", class = "", sha256 = ("a"):rep(64) } }, full.auth.token)
    end)

    it("keeps within 100 columns", function()
        for line in config_text.toml():gmatch "[^\n]+" do
            assert.is_true(columns(line) <= 100, line)
        end
    end)

    it("quotes what TOML wants quoted", function()
        for _, value in ipairs { 'a "b" \\ \n\t\1\127/é', "", true, false, 7, { "a", 'b"' }, {} } do
            local toml = require "batch.toml"
            assert.same({ x = value }, (toml.parse("x = " .. config_text.value_text(value))))
        end
    end)

    it("is examples/luabatch.toml", function()
        assert.equal(config_text.toml(), read "examples/luabatch.toml",
            "examples/luabatch.toml " .. ANEW)
    end)
end)

describe("the reference of the configuration", function()
    it("has a row for each field, in a table for each section", function()
        local text = config_reference.markdown()
        each_field(function(field)
            local start = field.section and "## `[" or ("\n| `%s` | "):format(field.name)
            assert.is_truthy(text:find(start, 1, true), field.name)
        end)
        for _, row in ipairs {
            "\n## `[[auth.token]]`\n", "\n## `[fetch.llm]`\n", "\n| `caller` | required | ",
            "\n| `workers` | `1` | an integer from 1 to 256 | worker threads |\n",
            "\n| `allow` | `[]` | a list of networks ",
        } do
            assert.is_truthy(text:find(row, 1, true), row)
        end
    end)

    it("has four cells in every row", function()
        for row in config_reference.markdown():gmatch "\n(|[^\n]*)" do
            local _, n_bars = row:gsub("\\|", ""):gsub("|", "")
            assert.equal(5, n_bars, row)
        end
    end)

    it("shows errors and warnings as they are", function()
        local path = "luabatch.toml"
        local shown = config_reference.markdown():match "```\n(.-)```"
        local _, unknown = config.parse "[batch]\nworker = 1"
        local _, bounds = config.parse "[batch]\n\nworkers = 257"
        local _, warnings = config.parse "[batch]\n\n\nttl = 'soon'"
        local lines = {}
        for i, message in ipairs { unknown, bounds, warnings[1] } do
            lines[i] = message:gsub("^line (%d+)", path .. ":%1")
        end
        assert.equal(table.concat(lines, "\n") .. "\n", shown)
    end)

    it("is docs/configuration.md", function()
        assert.equal(config_reference.markdown(), read "docs/configuration.md",
            "docs/configuration.md " .. ANEW)
    end)
end)

describe("the outline of the configuration", function()
    it("is in the help of serve: every field, within the columns", function()
        local outline = config_text.outline(80)
        for _, line in ipairs { "^%[batch%]\n", "\n   workers = 1 +worker threads\n",
            "\n%[%[auth%.token%]%]\n   caller +the caller's name\n", "\n   jobs_total = 8 " } do
            assert.matches(line, outline)
        end
        for line in outline:gmatch "[^\n]+" do
            assert.is_true(#line <= 80, line)
        end
    end)

    it("keeps a value and its sentence apart, however long the value is", function()
        local gap = config_text.outline(80):match '\n   user_agent = "[^"]*"(%s+)how requests'
        assert.is_true(#gap >= 2)
    end)
end)
