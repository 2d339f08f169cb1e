-- SPDX-License-Identifier: MIT
--
-- JSON and its canonical form: what the check admits the reader reads, and the canonical form of
-- what was read is read as the same again.

local batch = require "batch"
local cjson = require("cjson").new()
local core = require "batch.core"
local json = require "batch.json"

local MAX_DEPTH = 90

local function canonical(value)
    return batch.canonical { { url = "u", options = { x = value } } }
end

local function check_canonical(value)
    local text, message, code = canonical(value)
    if not text then
        assert(code == "invalid" and #message > 0, "a refusal has a sentence")
        return
    end
    assert(core.check_json(text, MAX_DEPTH + 20), "the canonical form is JSON")
    local again = cjson.decode(text)
    assert(batch.canonical(again) == text, "the canonical form stays as it is")
    assert(batch.idem_key("c", again) == batch.idem_key("c",
        { { url = "u", options = { x = value } } }), "and so does its key")
end

return function(text)
    local is_json, message = core.check_json(text, MAX_DEPTH)
    if not is_json then
        assert(message:find "^.+, at byte %d+$", "a fault has its place")
        return
    end
    local value = cjson.decode(text)
    check_canonical(value)
    if value ~= cjson.null then
        assert(core.check_json(json.encode { value = value }, MAX_DEPTH + 20),
            "what is printed is JSON")
    end
end
