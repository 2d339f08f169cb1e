-- SPDX-License-Identifier: MIT
--
-- What wrk sends: submits of 32 targets, each a list that was not there before.

-- luacheck: globals wrk request

local N_TARGETS = 32

local salt = tostring {}:match "0x(%x+)" .. os.time()
local targets = {}
for i = 2, N_TARGETS do
    targets[i - 1] = ('{"url":"https://example.com/some/page-%d"}'):format(i)
end
local head = '{"targets":[{"url":"https://example.com/' .. salt .. "/"
local tail = '"},' .. table.concat(targets, ",") .. "]}"
local headers = { ["Content-Type"] = "application/json" }
local n = 0

function request()
    n = n + 1
    return wrk.format("POST", "/v1/batches", headers, head .. n .. tail)
end
