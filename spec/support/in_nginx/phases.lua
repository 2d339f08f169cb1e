-- SPDX-License-Identifier: MIT
--
-- Calls the functions of batch.openresty in whatever phase it is called itself, and notes in a
-- shared dictionary what came of each: works, refused, or raises, and with which words.

local batch = require "batch.openresty"

local SLICE = 0.01 -- seconds to wait for a job that does not end

local function settings()
    return { store = ngx.shared.spec:get "store", fetch = "spec.support.in_nginx.fetch",
        jobs_per_caller = 1000, jobs_total = 1000 }
end

local function live(phase)
    return ngx.shared.spec:get("live " .. phase) or "none"
end

local function done()
    return ngx.shared.spec:get "done" or "none"
end

local calls = {
    start = function() return batch.start(settings()) end,
    status = function() return batch.status(done()) end,
    results = function()
        local iterator, message, code = batch.results(done())
        return iterator and iterator(), message, code
    end,
    jobs = function() return batch.jobs { limit = 1 } end,
    stats = function() return batch.stats() end,
    submit = function(phase) return batch.submit("phases", { { url = "say:" .. phase } }) end,
    touch = function(phase) return batch.touch(live(phase)) end,
    wait = function(phase) return batch.wait(live(phase), SLICE) end,
    cancel = function(phase) return batch.cancel(live(phase)) end,
    serve = function()
        batch.serve { caller = function() return "phases" end }
        return true
    end,
    metrics = function()
        batch.metrics()
        return true
    end,
}
-- Those that may be called one after the other: they answer no request.
local SILENT = { "start", "status", "results", "jobs", "stats", "submit", "touch", "wait",
    "cancel" }

local function verdict(is_fine, value, message, code)
    if not is_fine then
        return "raises " .. tostring(value)
    elseif value or code == "timeout" then
        return "works"
    elseif code == "invalid" then
        return "refused " .. tostring(message)
    end
    return ("gives %s %s %s"):format(tostring(value), tostring(message), tostring(code))
end

-- Calls one function.
local function try(phase, name)
    local answer = verdict(pcall(calls[name], phase))
    ngx.shared.spec:set("verdict " .. phase .. " " .. name, answer)
end

-- Calls those that answer no request.
local function try_silent(phase, but)
    for _, name in ipairs(SILENT) do
        if not (but and but[name]) then
            try(phase, name)
        end
    end
end

-- Calls all, where there is no request.
local function try_all(phase, but)
    try_silent(phase, but)
    try(phase, "serve")
    try(phase, "metrics")
end

-- For a request's phase: what the request asks for, once.
local function try_asked(phase)
    local asked = ngx.var.arg_try
    if ngx.var.arg_phase ~= phase or ngx.ctx[phase] then
        return
    end
    ngx.ctx[phase] = true
    if asked == "silent" then
        try_silent(phase)
    else
        try(phase, asked)
    end
end

-- Makes the jobs that a phase's calls are about: one that is done, and one that lasts.
local function prepare(phase)
    local id = assert(batch.submit("phases", { { url = "say:done" } }))
    assert(batch.wait(id, 10))
    ngx.shared.spec:set("done", id)
    ngx.shared.spec:set("live " .. phase,
        (assert(batch.submit("phases", { { url = "doze:60#" .. phase } }))))
end

-- All verdicts: phase → function → text.
local function verdicts()
    local all = {}
    for _, key in ipairs(ngx.shared.spec:get_keys(0)) do
        local phase, name = key:match "^verdict (%S+) (%S+)$"
        if phase then
            all[phase] = all[phase] or {}
            all[phase][name] = ngx.shared.spec:get(key)
        end
    end
    return all
end

return {
    try = try, try_all = try_all, try_asked = try_asked, prepare = prepare, verdicts = verdicts,
}
