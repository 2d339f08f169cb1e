-- SPDX-License-Identifier: MIT
--
-- What the tree promises about itself: its shape, its names, its version.

local interpreter = require "spec.support.interpreter"
local lfs = require "lfs"

local MAX_LINES = 500

-- All that may stand at the top: what a newcomer looks for, and settings of tools.
local TOP = {
    "bench", "csrc", "docs", "examples", "lua", "rockspec", "spec",
    "CHANGELOG.md", "LICENSE", "Makefile", "README.md",
    ".busted", ".ci", ".clang-format", ".editorconfig", ".gitignore", ".ldoc", ".luacheckrc",
}

-- Every name that users type, as the README writes it.
local PUBLIC_NAMES = {
    "batch.new", "batch.client", "batch.canonical", "batch.idem_key", "batch.caps",
    "batch.retry_later", "batch.store.open", "batch._VERSION",
    "batch.config", "batch.fetch", "batch.testing", "batch.toml",
    "runner:submit", "runner:status", "runner:results", "runner:jobs", "runner:cancel",
    "runner:touch", "runner:wait", "runner:stats", "runner:poll", "runner:fd", "runner:take",
    "runner:finish", "runner:fail", "runner:later", "runner:drain", "runner:close",
    "runner:begin_submit", "runner:begin_cancel", "runner:begin_touch", "batch.api",
    "luabatch run", "luabatch serve", "luabatch submit", "luabatch status", "luabatch cancel",
    "luabatch list", "luabatch check", "luabatch completion", "not_found", "expired", "timeout",
}

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

-- Calls visit(path) for every file below folder whose name ends in one of the endings.
local function each_file(folder, endings, visit)
    for name in lfs.dir(folder) do
        local path = folder .. "/" .. name
        if lfs.attributes(path, "mode") == "directory" then
            if name:sub(1, 1) ~= "." then
                each_file(path, endings, visit)
            end
        elseif endings[name:match("%.(%a+)$")] then
            visit(path)
        end
    end
end

-- The paths of the files below the folders for which is_bad(text) holds.
local function offenders(folders, is_bad)
    local found = {}
    for _, folder in ipairs(folders) do
        each_file(folder, { c = true, h = true, lua = true }, function(path)
            if is_bad(read(path)) then
                found[#found + 1] = path
            end
        end)
    end
    table.sort(found)
    return found
end

-- What is at the top of the tree: as git knows it, so that a user's own files do no harm. Where git
-- is not, all that is there but what .gitignore names.
local function top_names()
    local names = {}
    local listing = io.popen("git ls-files 2>/dev/null")
    for path in listing:lines() do
        names[path:match("^[^/]+")] = true
    end
    listing:close()
    if not next(names) then
        for name in lfs.dir(".") do
            names[name] = not name:match("%.db") or nil
        end
        for _, name in ipairs { ".", "..", ".git", "build" } do
            names[name] = nil
        end
    end
    return names
end

local function read_rockspec()
    local rockspec = {}
    local chunk = assert(load(read("rockspec/batch-scm-1.rockspec"), "=rockspec", "t", rockspec))
    chunk()
    return rockspec
end

describe("the tree", function()
    it("has at its top only what a newcomer looks for", function()
        local names = top_names()
        for _, name in ipairs(TOP) do
            names[name] = nil
        end
        assert.same({}, names)
    end)

    it("opens every source file with its licence", function()
        assert.same({}, offenders({ "bench", "csrc", "examples", "lua", "spec" }, function(text)
            local first = text:match("^#![^\n]*\n([^\n]*)") or text:match("^[^\n]*")
            return first ~= "// SPDX-License-Identifier: MIT"
                and first ~= "-- SPDX-License-Identifier: MIT"
        end))
    end)

    it("keeps every source file within " .. MAX_LINES .. " lines", function()
        assert.same({}, offenders({ "bench", "csrc", "examples", "lua", "spec" }, function(text)
            return select(2, text:gsub("\n", "\n")) > MAX_LINES
        end))
    end)

    it("keeps the layers of the C files apart", function()
        local listing = io.popen(interpreter .. " .ci/layers.lua csrc 2>&1")
        local breaches = listing:read("*a")
        listing:close()
        assert.equal("", breaches)
    end)
end)

describe("the README", function()
    it("mentions every public name", function()
        local readme = read("README.md")
        local missing = {}
        for _, name in ipairs(PUBLIC_NAMES) do
            if not readme:find(name, 1, true) then
                missing[#missing + 1] = name
            end
        end
        assert.same({}, missing)
    end)

    it("mentions what stats has", function()
        local readme, missing = read("README.md"), {}
        local runner = assert(require("batch").new { store = ":memory:", executor = "manual" })
        for name in pairs(runner:stats()) do
            if not readme:find("`" .. name .. "`", 1, true) then
                missing[#missing + 1] = name
            end
        end
        runner:close()
        assert.same({}, missing)
    end)

    it("names no method that a runner lacks", function()
        local batch = require "batch"
        local runner = assert(batch.new { store = ":memory:", executor = "manual" })
        local missing = {}
        for name in read("README.md"):gmatch("runner:([%l_]+)") do
            if type(runner[name]) ~= "function" then
                missing[#missing + 1] = name
            end
        end
        runner:close()
        assert.same({}, missing)
    end)
end)

describe("the version", function()
    it("is told in the form 'batch X.Y.Z'", function()
        assert.matches("^batch %d+%.%d+%.%d+$", require("batch")._VERSION)
    end)

    it("is the newest that the changelog knows, unless unreleased changes come first", function()
        local newest = read("CHANGELOG.md"):match("\n## %[([^%]]+)%]")
        if newest ~= "Unreleased" then
            assert.equal("batch " .. newest, require("batch")._VERSION)
        end
    end)
end)

describe("the rockspec", function()
    it("is that of the checkout, under the licence of the LICENSE file", function()
        local rockspec = read_rockspec()
        assert.equal("batch", rockspec.package)
        assert.equal("scm-1", rockspec.version)
        assert.equal(rockspec.description.license, read("LICENSE"):match("^(%u+) License"))
    end)
end)
