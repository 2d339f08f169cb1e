-- SPDX-License-Identifier: MIT
--
-- Everything that reads what strangers send, on the inputs that fuzzing began with and those that
-- it found. The targets in C are replayed by .ci/test; `make fuzz` makes further inputs up.

local lfs = require "lfs"

local FOLDER = "spec/fuzz"

local function names_in(folder, pattern)
    local names = {}
    for name in lfs.dir(folder) do
        names[#names + 1] = name:match(pattern)
    end
    table.sort(names)
    return names
end

local function read(path)
    local file = assert(io.open(path, "rb"))
    local bytes = file:read "*a"
    file:close()
    return bytes
end

describe("whatever the bytes are, nothing breaks in the reader of", function()
    for _, name in ipairs(names_in(FOLDER, "^([%w_]+)%.lua$")) do
        it(name, function()
            local try = dofile(FOLDER .. "/" .. name .. ".lua")
            local folder = FOLDER .. "/corpus/" .. name
            local inputs = names_in(folder, "^[^.].*$")
            assert.is_true(#inputs > 0)
            for _, input in ipairs(inputs) do
                local holds, why = xpcall(function()
                    try(read(folder .. "/" .. input))
                end, debug.traceback)
                assert(holds, folder .. "/" .. input .. ": " .. tostring(why))
            end
        end)
    end
end)

describe("each reader that is fuzzed", function()
    it("has inputs that are replayed", function()
        for _, name in ipairs(names_in(FOLDER, "^([%w_]+)%.[cl]u?a?$")) do
            assert.is_true(#names_in(FOLDER .. "/corpus/" .. name, "^[^.].*$") > 0)
        end
    end)
end)
