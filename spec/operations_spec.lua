-- SPDX-License-Identifier: MIT
--
-- The manual for operators, held against what there is: metrics, log messages, commands, fields.

local metrics = require "batch.metrics"
local sections = require "batch.sections"

local COMMANDS = {
    "run", "serve", "submit", "status", "results", "cancel", "watch", "list", "check", "backup",
    "purge",
}

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

local manual = read("docs/operations.md")

-- The cells of the rows of a table, which is found by its first column's head.
local function rows_below(head)
    local rows = {}
    local from = assert(manual:find("\n| " .. head .. " |", 1, true)) + 1
    for line in manual:sub(from):gmatch("([^\n]*)\n") do
        if line:sub(1, 1) ~= "|" then
            break
        end
        local cells = {}
        for cell in line:gmatch("| ([^|]+) %f[|]") do
            cells[#cells + 1] = cell
        end
        rows[#rows + 1] = cells
    end
    return { (table.unpack or unpack)(rows, 3) }
end

describe("the manual for operators", function()
    it("has every metric as it is, and what to do about it", function()
        local expected, told = {}, {}
        for i, metric in ipairs(metrics.METRICS) do
            expected[i] = { "`" .. metric.name .. "`", metric.type, metric.help }
        end
        for i, row in ipairs(rows_below("metric")) do
            told[i] = { row[1], row[2], row[3] }
            assert.is_true(#row[4] > 20, row[1])
        end
        assert.same(expected, told)
    end)

    it("names no metric that there is not", function()
        local known = {}
        for _, metric in ipairs(metrics.METRICS) do
            known[metric.name] = true
        end
        for name in manual:gmatch("%f[%w_]batch_[%w_]+") do
            assert.is_true(known[name], name)
        end
    end)

    it("has the runner's log messages by the letter", function()
        local pipe = assert(io.popen "cat csrc/runner*.c")
        local source = pipe:read("*a")
        pipe:close()
        local told, logged = {}, {}
        for _, row in ipairs(rows_below("message")) do
            told[row[1]:gsub("`", "")] = true
        end
        for call in source:gmatch("runner_log%((runner,.-)%);") do
            logged[call:match('"(.-)"') or call] = true
        end
        assert.same(logged, told)
    end)

    it("has the server's log messages by the letter", function()
        local source = read "lua/batch/service.lua" .. read "lua/batch/server/answer.lua"
        local told, logged = {}, {}
        for _, row in ipairs(rows_below("says")) do
            told[row[1]:gsub("`", "")] = row[2]
        end
        for level, message in source:gmatch('log%(?[^"\n]*, "(%l+)", "([^"]+)"') do
            logged[message] = level
        end
        for level, message in source:gmatch('log%.write[^"\n]*, "(%l+)", "([^"]+)"') do
            logged[message] = level
        end
        assert.same(logged, told)
    end)

    it("has no command that there is not", function()
        local known = {}
        for _, command in ipairs(COMMANDS) do
            known[command] = true
        end
        for line in manual:gmatch("[^\n]+") do
            local command = line:match("^    luabatch (%S+)") or line:match("`luabatch (%S+)[^`]*`")
            assert.is_true(command == nil or known[command:gsub("`", "")], line)
        end
    end)

    it("has defaults as they are", function()
        local defaults = {}
        for _, section in ipairs { "batch", "server" } do
            for _, field in ipairs(sections[section]) do
                defaults[field.name] = tostring(field.default)
            end
        end
        local count = 0
        for name, default in manual:gmatch("`([%l_]+)` %((%w+)%)") do
            assert.equal(defaults[name], default, name)
            count = count + 1
        end
        assert.is_true(count >= 3)
    end)
end)
