-- SPDX-License-Identifier: MIT
--
-- JSON as it is printed: exact numbers, a fixed order.

local cjson = require "cjson"
local json = require "batch.json"

describe("JSON", function()
    it("has exact integers and floats", function()
        assert.equal("[9007199254740992,-3,0.1,1e+300,0.30000000000000004,2]",
            json.encode { 2 ^ 53, -3, 0.1, 1e300, 0.1 + 0.2, 2.0 })
    end)

    it("has no numbers that JSON cannot hold", function()
        assert.equal("[null,null,null]", json.encode { 0 / 0, 1 / 0, -1 / 0 })
    end)

    it("sorts the keys of objects", function()
        assert.equal('{"a":{"x":[1],"y":{}},"b":false,"c":null}',
            json.encode { b = false, a = { y = {}, x = { 1 } }, c = cjson.null })
    end)

    it("keeps a marked list a list", function()
        assert.equal("[]", json.encode(json.list {}))
    end)
end)
