-- SPDX-License-Identifier: MIT
--
-- The manual of testing, held against the software: its examples are specs, and run here.

local testing = require "batch.testing"

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

local manual = read "docs/testing.md"

local n_examples = 0

for code in manual:gmatch "\n```lua\n(.-)\n```" do
    n_examples = n_examples + 1
    -- busted runs an example in the environment of this file, as it would a file of its own.
    local environment = setfenv and getfenv(1) or _ENV
    local chunk = assert(load(code, "=docs/testing.md, example " .. n_examples, "t", environment))
    chunk()
end

describe("docs/testing.md", function()
    it("has an example of each way to work, and of a fault", function()
        assert.equal(4, n_examples)
    end)

    it("names all that batch.testing has", function()
        local missing = {}
        for name in pairs(testing) do
            if not manual:find("testing." .. name, 1, true) then
                missing[#missing + 1] = name
            end
        end
        assert.same({}, missing)
    end)
end)
