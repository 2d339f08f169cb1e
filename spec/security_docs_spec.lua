-- SPDX-License-Identifier: MIT
--
-- The threat model names defences and tests: they must be there.

local function read(path)
    local file = io.open(path, "rb")
    local text = file and file:read "*a"
    if file then
        file:close()
    end
    return text
end

-- The rows of all tables of a text: three cells each.
local function rows_of(text)
    local rows = {}
    for line in text:gmatch "[^\n]+" do
        local threat, defence, test = line:match "^| (.-) | (.-) | (.-) |$"
        if threat and threat ~= "threat" and threat ~= "---" then
            rows[#rows + 1] = { threat = threat, defence = defence, test = test }
        end
    end
    return rows
end

-- Whether a spec, or a test in C, has a test of exactly that name.
local function has_test(name, claim)
    local path = name:find "_test$" and "spec/c/" .. name .. ".c" or "spec/" .. name .. ".lua"
    local start = name:find "_test$" and 'CHECK("' or 'it("'
    return (read(path) or ""):find(start .. claim .. '"', 1, true) ~= nil
end

-- What a row lacks, as sentences.
local function faults_of(row)
    local faults, n_tests = {}, 0
    for part in (row.test .. "<br>"):gmatch "(.-)<br>" do
        local name, claim = part:match "^`([%w_]+)`: (.+)$"
        if not name or not has_test(name, claim) then
            faults[#faults + 1] = "no such test: " .. part
        end
        n_tests = n_tests + 1
    end
    for path in row.defence:gmatch "`([%w_/]+%.%l+)`" do
        if not read(path) then
            faults[#faults + 1] = "no such file: " .. path
        end
    end
    return faults, n_tests
end

describe("the threat model", function()
    local rows = rows_of(assert(read "docs/security.md"))

    it("has a test for each threat, by its name, and names files that there are", function()
        assert.is_true(#rows >= 30)
        for _, row in ipairs(rows) do
            local faults, n_tests = faults_of(row)
            assert.same({}, faults, row.threat)
            assert.is_true(n_tests > 0)
        end
    end)

    it("would not pass with a test that nobody wrote, or a file that has gone", function()
        assert.same({ "no such test: `callers_spec`: is known by its smell" },
            (faults_of { defence = "", test = "`callers_spec`: is known by its smell" }))
        assert.same({ "no such test: later" }, (faults_of { defence = "", test = "later" }))
        assert.same({ "no such file: csrc/magic.c" }, (faults_of { defence = "`csrc/magic.c`",
            test = "`callers_spec`: is known by the token" }))
    end)

    it("speaks of all from whom harm could come", function()
        local text = read "docs/security.md"
        for _, title in ipairs { "Callers", "Servers of targets", "Pages", "The model",
            "Other users of the machine", "The operator's own configuration" } do
            assert.truthy(text:find("\n## " .. title .. "\n", 1, true), title)
        end
    end)
end)
