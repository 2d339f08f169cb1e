-- SPDX-License-Identifier: MIT
--
-- A runner with the built-in pipeline, as a program has it, that may fetch from loopback.

local batch = require "batch"
local fetch = require "batch.fetch"

local Pipeline = {}
Pipeline.__index = Pipeline

local MAX_SECONDS = 120

--- Opens a runner. Its log is kept in `log`.
-- @tparam[opt] table fields of [fetch]
-- @tparam[opt] table config of the runner
local function open(fields, config)
    local self = setmetatable({ log = {} }, Pipeline)
    local settings = { allow = { "127.0.0.0/8" }, timeout = "5s" }
    for name, value in pairs(fields or {}) do
        settings[name] = value
    end
    local all = {
        store = ":memory:", durability = "normal", workers = 2, jobs_per_caller = 1000,
        jobs_total = 1000, targets_per_job = 1000, fetch = assert(fetch.configure(settings)),
        log = function(_, message, more)
            table.insert(self.log, message .. " " .. tostring(more and more.detail))
        end,
    }
    for name, value in pairs(config or {}) do
        all[name] = value
    end
    self.runner = assert(batch.new(all))
    return self
end

--- Fetches URLs, all with the same options, each as a job of its own; gives the targets as they
-- ended, in the same order.
function Pipeline:targets(urls, options)
    local ids, targets = {}, {}
    for i, url in ipairs(urls) do
        -- The caller tells jobs of the same target apart.
        ids[i] = assert(self.runner:submit(("spec/%d"):format(i), {
            { url = url, options = options or {} },
        }))
    end
    for i, id in ipairs(ids) do
        assert(self.runner:wait(id, MAX_SECONDS))
        targets[i] = select(2, assert(self.runner:status(id)))[1]
    end
    self.runner:poll()
    assert(#self.log == 0, self.log[1])
    return targets
end

--- Fetches one URL; gives its target as it ended.
function Pipeline:target(url, options)
    return self:targets({ url }, options)[1]
end

--- The same for one that is to be done; gives content and meta.
function Pipeline:get(url, options)
    local target = self:target(url, options)
    assert(target.status == "done", target.error)
    return target.result.content, target.result.meta
end

--- The same for one that is to fail; gives error and hint.
function Pipeline:failure(url, options)
    local target = self:target(url, options)
    assert(target.status == "failed", "it is done")
    return target.error, target.hint
end

function Pipeline:close()
    self.runner:close()
end

return { open = open }
