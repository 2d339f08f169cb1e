-- SPDX-License-Identifier: MIT
--
-- A store's file with flipped bits, or cut off: each use of it is refused with `store`, or works;
-- and what the check calls sound can be read. An input is a row of edits of four bytes: a place,
-- and what is turned over there; 0 cuts the file off.

local batch = require "batch"
local cjson = require("cjson").new()

local CODES = { store = true, not_found = true, expired = true, busy = true, caller_busy = true,
    timeout = true }
local MAX_EDITS = 16

local folder, original
local ids = {}

local function quiet() end

local function open_runner(path)
    return batch.new {
        store = path, executor = "manual", durability = "normal", on_restart = "resume",
        jobs_total = 100, jobs_per_caller = 100, log = quiet,
    }
end

local function fill(runner)
    ids[1] = assert(runner:submit("ann", { { url = "u1" }, { url = "u2", options = { x = "y" } },
        { url = "u3" } }))
    runner:drain(function(target)
        if target.url == "u2" then
            return nil, "no luck", "a hint"
        end
        return { content = target.url .. ("x"):rep(300), meta = { title = "\195\164" } }
    end)
    ids[2] = assert(runner:submit("bob", { { url = "v1" }, { url = "v2" } }))
    runner:cancel(ids[2])
    ids[3] = assert(runner:submit("cid", { { url = "w1" }, { url = "w2" } }))
    runner:finish(runner:take(), "one")
end

local function read_all(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read "*a"
    file:close()
    return text
end

local function make_original()
    local pipe = assert(io.popen "mktemp -d")
    folder = pipe:read "*l"
    pipe:close()
    local path = folder .. "/original.db"
    local runner = assert(open_runner(path))
    fill(runner)
    assert(runner:close())
    local store = assert(batch.store.open(path))
    assert(store:check() == true)
    store:close()
    original = read_all(path)
    os.execute("rm -r '" .. folder .. "' && mkdir '" .. folder .. "'")
end

local function xor(one, other)
    local result, bit = 0, 1
    while one > 0 or other > 0 do
        if one % 2 ~= other % 2 then
            result = result + bit
        end
        one, other, bit = math.floor(one / 2), math.floor(other / 2), bit * 2
    end
    return result
end

local function damaged(edits)
    local text = original
    for i = 1, math.min(#edits - 3, 4 * MAX_EDITS), 4 do
        local high, middle, low, mask = edits:byte(i, i + 3)
        local at = ((high * 256 + middle) * 256 + low) % math.max(#text, 1)
        if mask == 0 then
            text = text:sub(1, at)
        elseif #text > 0 then
            text = text:sub(1, at) .. string.char(xor(text:byte(at + 1), mask)) .. text:sub(at + 2)
        end
    end
    return text
end

-- Whether a call worked; else it was refused as it should be.
local function works(result, message, code)
    if result then
        return true
    end
    assert(type(message) == "string" and #message > 0, "a refusal has a sentence")
    assert(CODES[code], "a refusal has one of the codes, got " .. tostring(code))
    return false
end

local function check_store(path)
    local store, message, code = batch.store.open(path)
    if not works(store, message, code) then
        return false
    end
    local faults
    faults, message, code = store:check()
    works(faults, message, code)
    works(store:live_jobs_total())
    store:close()
    return faults == true
end

local function check_job(job, targets)
    assert(job.targets_done <= job.targets_total and job.targets_failed <= job.targets_done,
        "counts agree with each other")
    for i, target in ipairs(targets) do
        assert(target.idx == i - 1 and type(target.url) == "string", "targets are in order")
    end
end

local function read_job(runner, id, is_sound)
    local job, targets, code = runner:status(id)
    local is_read = works(job, targets, code)
    assert(is_read or not is_sound or code == "not_found", "what is sound can be read")
    if is_read and is_sound then
        check_job(job, targets)
    end
    local page, message
    page, message, code = runner:read_json(id, {})
    if works(page, message, code) and is_sound then
        cjson.decode(page.job)
    end
end

local function use(runner, is_sound)
    for _, id in ipairs(ids) do
        read_job(runner, id, is_sound)
    end
    local message, code
    works(runner:jobs())
    works(runner:stats())
    works(runner:submit("eve", { { url = "new" } }))
    local task = runner:take()
    if task then
        runner:finish(task, "content")
    end
    local is_cancelled
    is_cancelled, message, code = runner:cancel(ids[3])
    works(is_cancelled ~= nil, message, code)
    runner:poll()
end

return function(input)
    if not original then
        make_original()
    end
    local path = folder .. "/damaged.db"
    local file = assert(io.open(path, "wb"))
    file:write(damaged(input))
    file:close()
    local is_sound = check_store(path)
    local runner, message, code = open_runner(path)
    if works(runner, message, code) then
        use(runner, is_sound)
        works(runner:close(5))
    end
    for _, suffix in ipairs { "", "-wal", "-shm", ".owners" } do
        os.remove(path .. suffix)
    end
end
