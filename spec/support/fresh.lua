-- SPDX-License-Identifier: MIT
--
-- What a test begins with and leaves nothing of: a temporary folder, and the runners and stores
-- that it opens there. A spec calls start before and finish after each test.

local batch = require "batch"
local eventually = require "spec.support.eventually"

local fresh = {}

local folder, opened

function fresh.start()
    local pipe = assert(io.popen "mktemp -d")
    folder, opened = pipe:read "*l", {}
    pipe:close()
end

function fresh.finish()
    for i = #opened, 1, -1 do
        opened[i]:close()
    end
    os.execute("rm -rf '" .. folder .. "'")
end

--- The path of a name in this test's folder.
function fresh.path(name)
    return folder .. "/" .. name
end

--- Has something closed at the end of the test.
function fresh.keep(closable)
    opened[#opened + 1] = closable
    return closable
end

local function with_defaults(config, defaults)
    local full = { store = fresh.path "batch.db", durability = "normal" }
    for _, fields in ipairs { defaults, config or {} } do
        for name, value in pairs(fields) do
            full[name] = value
        end
    end
    return full
end

--- A runner whose tasks the test takes itself, unless config says otherwise.
-- @tparam[opt] table config
-- @param[opt] clock a virtual one
function fresh.runner(config, clock)
    local full = with_defaults(config, {
        executor = "manual",
        fetch = function(target) return target.url end,
        jobs_per_caller = 100,
        jobs_total = 100,
    })
    return fresh.keep(assert(batch._new_on_clock(full, clock)))
end

function fresh.client(config)
    return fresh.keep(assert(batch.client(with_defaults(config, { fetch = print }))))
end

function fresh.store(path)
    return fresh.keep(assert(batch.store.open(path or fresh.path "batch.db")))
end

--- Runs SQL on a store file by the sqlite3 program, which waits for others' locks, and gives what
-- it prints.
function fresh.sql(statement, path)
    local script = fresh.path "statement.sql"
    local file = assert(io.open(script, "w"))
    file:write(statement)
    file:close()
    local command = "sqlite3 -bail -cmd '.timeout 5000' '%s' <'%s' 2>&1"
    local pipe = assert(io.popen(command:format(path or fresh.path "batch.db", script)))
    local output = pipe:read("*a"):gsub("\n$", "")
    pipe:close()
    return output
end

--- Another process that holds the store's lock.
-- @tparam[opt] number seconds until its pipe is closed unless given
-- @return the pipe
function fresh.lock(seconds)
    local said = fresh.path "said"
    local pipe = assert(io.popen(("sqlite3 '%s' >'%s'"):format(fresh.path "batch.db", said), "w"))
    pipe:write ".timeout 5000\nbegin immediate;\n.print locked\n"
    if seconds then
        pipe:write(".shell sleep " .. seconds .. "\nrollback;\n")
    end
    pipe:flush()
    eventually(function()
        local file = io.open(said)
        return file and file:read "*a" ~= "" and file:close()
    end)
    return pipe
end

--- A list of n targets, which differ.
function fresh.targets(n, prefix)
    local targets = {}
    for i = 1, n do
        targets[i] = { url = (prefix or "u") .. i }
    end
    return targets
end

return fresh
