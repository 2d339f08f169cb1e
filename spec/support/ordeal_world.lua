-- SPDX-License-Identifier: MIT
--
-- What a scenario of an ordeal has in its hands: its store's place, notes of what it was told, and
-- the proof that a store is sound.

local batch = require "batch"
local testing = require "batch.testing"

local unpack = table.unpack or rawget(_G, "unpack")

local World = {}
World.__index = World

--- Appends a line to what is remembered, at once.
function World:note(line)
    local file = assert(io.open(self.folder .. "/told", "a"))
    file:write(line, "\n")
    file:close()
end

--- All lines noted so far, each as a key with how often it was noted.
function World:told()
    local told = {}
    local file = io.open(self.folder .. "/told")
    for line in file and file:lines() or function() end do
        told[line] = (told[line] or 0) + 1
    end
    return told, file and file:close()
end

--- The word behind the first noted line that begins with `name`.
function World:word(name)
    for line in pairs((self:told())) do
        local word = line:match("^" .. name .. " (.*)$")
        if word then
            return word
        end
    end
end

--- Calls f. A refusal by the store must say why; the next try, without the fault, must go well.
function World:try(f, ...)
    local results = { f(...) }
    if results[1] == nil then
        assert(results[3] == "store" and #results[2] > 0, results[2])
        self:note("refused " .. results[2])
        testing.no_faults()
        results = { f(...) }
    end
    assert(results[1] ~= nil, results[2])
    return unpack(results, 1, 3)
end

--- A runner that the scenario works itself, on a virtual clock: a pause after a failure is over at
-- once.
function World:runner(config)
    local settings = {
        store = self.store, executor = "manual", on_restart = "resume", jobs_per_caller = 100,
        jobs_total = 100, log = function() end,
    }
    for name, value in pairs(config or {}) do
        settings[name] = value
    end
    return (self:try(testing.runner, settings))
end

function World:sql(statement)
    local script = self.folder .. "/statement.sql"
    local file = assert(io.open(script, "w"))
    file:write(statement)
    file:close()
    local pipe = assert(io.popen(("sqlite3 -bail '%s' <'%s' 2>&1"):format(self.store, script)))
    local output = pipe:read("*a"):gsub("\n$", "")
    pipe:close()
    return output
end

--- Raises unless SQLite and the store's own check find the file sound. Without a store there is
-- nothing to find.
function World:check(path)
    local file = io.open(path or self.store)
    if not file then
        return
    end
    file:close()
    if not path then
        local said = self:sql "pragma integrity_check"
        assert(said == "ok", said)
    end
    local store = assert(batch.store.open(path or self.store))
    local answer = assert(store:check())
    assert(answer == true, answer ~= true and table.concat(answer, "; "))
    store:close()
end

function World.targets(n, prefix)
    local targets = {}
    for i = 1, n do
        targets[i] = { url = (prefix or "u") .. i - 1, options = { mode = "text" } }
    end
    return targets
end

--- What a fetch of such a target gives: every fifth one fails.
function World.fetch(target, ctx)
    if ctx.idx % 5 == 3 then
        return nil, "no " .. target.url, "hint"
    end
    return { content = "of " .. target.url, meta = { n = ctx.idx } }
end

--- Raises unless the targets' outcomes are those of fetch, or one is that there was no memory for
-- it, and come first. Returns how many.
function World.check_outcomes(targets)
    local count, has_excuse = 0, false
    for i, target in ipairs(targets) do
        if target.status == "pending" then
            assert(not target.result and not target.error)
        else
            count = count + 1
            assert(count == i, "an outcome behind a pending target")
            local text = target.result and target.result.content or target.error
            local word = (i - 1) % 5 == 3 and "no " or "of "
            local is_right = text == word .. target.url
            if not is_right and text == "out of memory" then
                is_right = not has_excuse  -- one try, one fault
                has_excuse = true
            end
            assert(is_right, text)
        end
    end
    return count
end

return {
    open = function(folder)
        return setmetatable({ folder = folder, store = folder .. "/batch.db" }, World)
    end,
}
