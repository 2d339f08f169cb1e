-- SPDX-License-Identifier: MIT
--
-- Eight programs on one store, killed one after the other for some seconds. make soak does the same
-- for longer.

local kill_loop = require "spec.support.kill_loop"
local process = require "spec.support.process"

local KILLS = os.getenv "SANITIZER" and 12 or 30

describe("runners with threads and without, clients and luabatch on one store", function()
    local folder

    before_each(function()
        folder = process.folder()
        math.randomseed(os.time())
    end)

    after_each(function()
        folder:remove()
    end)

    it("are killed at random moments: nothing acknowledged is lost or doubled", function()
        local loop = kill_loop.new(folder)
        for _ = 1, KILLS do
            loop:kill_one(0.15)
        end
        loop:finish()
        local figures = loop:prove()
        assert.equal(KILLS, figures.kills)
        assert.is_true(figures.acknowledged > KILLS and figures.told > KILLS)
    end)
end)
