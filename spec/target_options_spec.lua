-- SPDX-License-Identifier: MIT
--
-- What submit refuses for the built-in pipeline.

local cjson = require "cjson"

local fetch = require "batch.fetch"

describe("the check of a target's options", function()
    it("lets through what the pipeline has", function()
        for _, options in ipairs {
            {}, { mode = "raw" }, { mode = "" }, { headers = { Accept = "text/html" } },
            { question = "", context = false, jq = cjson.null },
        } do
            assert.is_true(fetch.check { url = "http://example.org/", options = options })
        end
        assert.is_true(fetch.check { url = "not looked at" })
    end)

    it("refuses the rest, with the nearest known name, or all of them", function()
        local refusals = {
            { { mod = "raw" }, "unknown option 'mod', did you mean 'mode'?" },
            { { header = {} }, "unknown option 'header', did you mean 'headers'?" },
            { { zzzzzzzzzzzzzz = 1 }, "unknown option 'zzzzzzzzzzzzzz', known are mode, question, "
                .. "pages, grep, jq, context, recover, headers" },
            { { headers = "x" }, "headers must be an object, got a string" },
            { { headers = { "x" } }, "headers must be an object, got a list" },
            { { headers = { A = 1 } }, "header 'A' must be a string, got a number" },
            { { headers = { A = cjson.null } }, "header 'A' must be a string, got null" },
            { { mode = 3 }, "mode must be a string, got a number" },
            { { grep = {} }, "grep must be a string, got a table" },
            { { question = true }, "question must be a string, got a boolean" },
            { { recover = "yes" }, "recover must be a boolean, got a string" },
            { { headers = { host = "x" } }, "header 'host' is set by the connection itself" },
            { { headers = { ["Proxy-X"] = "x" } },
                "header 'Proxy-X' is set by the connection itself" },
            { { headers = { A = "b\r\nc" } },
                "header 'A' must not hold line breaks or control characters" },
            { { headers = { ["A B"] = "c" } }, "'A B' is no name of a request header" },
            { { "mode" }, "options must be an object, got a list" },
        }
        for _, row in ipairs(refusals) do
            assert.same({ nil, row[2] }, { fetch.check { url = "x", options = row[1] } })
        end
    end)

    it("is made again before a fetch, with a hint that says what would do", function()
        local _, message, hint = fetch.fetch({ url = "x", options = { mode = 3 } }, {})
        assert.equal("mode must be a string, got a number", message)
        assert.matches("mode, pages, jq, grep and question are strings", hint)
    end)

    it("cuts a name that it quotes between two characters", function()
        local _, message = fetch.check { url = "x",
            options = { ["x" .. ("\195\169"):rep(100)] = 1 } }
        assert.matches("^unknown option 'x[\195\169]+\226\128\166', known are", message)
        assert.is_nil(message:find "\195[^\169]")
    end)
end)
