-- SPDX-License-Identifier: MIT
--
-- How a fetch function says that its target is busy.

local retry = require "batch.retry"

describe("retry.later", function()
    it("marks a message for the runner", function()
        local busy = retry.later("busy", 1.5, { patient = true })
        assert.same({ "busy", 1.5, true }, { busy.message, busy.seconds, busy.patient })
        assert.same("batch.retry", getmetatable(busy).__name)
        assert.is_false(retry.is { message = "busy" })
    end)

    it("raises when it is used wrongly", function()
        local wrong = {
            { {}, "message must be a string, got nil" },
            { { "a", "b" }, "seconds must be a number from 0, got b" },
            { { "a", -1 }, "seconds must be a number from 0, got -1" },
            { { "a", 0 / 0 }, "seconds must be a number from 0" },
            { { "a", 1, true }, "options must be a table, got boolean" },
        }
        for _, row in ipairs(wrong) do
            assert.error_matches(function()
                retry.later(row[1][1], row[1][2], row[1][3])
            end, row[2], 1, true)
        end
    end)
end)
