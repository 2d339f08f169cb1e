-- SPDX-License-Identifier: MIT
--
-- The examples, run as the README says, each in a folder of its own.

local LUA = require "spec.support.interpreter"
local BUILD = os.getenv "BUILD" or "build/" .. LUA

local function output_of(command)
    local pipe = assert(io.popen(command))
    local text = pipe:read("*a")
    pipe:close()
    return text
end

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

-- What a program, named from the checkout, prints when it is run twice in an empty folder.
local function run_twice(command)
    return output_of((([[checkout=$PWD; folder=$(mktemp -d); cd "$folder" || exit
        %s 2>&1; %s 2>&1; rm -rf "$folder"]]):gsub("%%s", function() return command end)))
end

describe("the first example", function()
    it("fetches once, however often it is run", function()
        local rows = "0\thttps://example.com/\tdone\t30\n"
            .. "1\thttps://example.org/data.json\tdone\t39\n"
        assert.equal("done\tfetched now\n" .. rows .. "done\tknown already\n" .. rows,
            run_twice(LUA .. ' "$checkout/examples/first.lua"'))
    end)

    it("is the README's", function()
        local code = read("examples/first.lua"):match("\n(local batch.*)$")
        assert.equal(code, read("README.md"):match("```lua\n(.-)```"))
    end)
end)

describe("the example in C", function()
    it("fetches once, however often it is run", function()
        assert.equal("fetched now: 1 failed\nknown: 1 failed\n",
            run_twice(("\"$checkout/%s/examples/echo\""):format(BUILD)))
    end)
end)
