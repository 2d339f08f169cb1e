-- SPDX-License-Identifier: MIT
--
-- What cannot be opened as a store is refused with the reason, by each way to open one.

local batch = require "batch"
local disk = require "spec.support.disk"
local fresh = require "spec.support.fresh"
local lfs = require "lfs"

-- The refusal, which has to be the same from batch.new, batch.client and batch.store.open.
local function refusal(path)
    local config = { store = path, fetch = print }
    local refusals = {
        { batch.new(config) }, { batch.client(config) }, { batch.store.open(path) },
    }
    assert.is_nil(refusals[1][1])
    assert.equal("store", refusals[1][3])
    assert.same(refusals[1], refusals[2])
    assert.same(refusals[1], refusals[3])
    assert.matches(path, refusals[1][2], 1, true)
    return refusals[1][2]
end

local function write(path, bytes)
    local file = assert(io.open(path, "wb"))
    file:write(bytes)
    file:close()
end

describe("opening a store", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("makes a new one, and opens it again", function()
        local id = fresh.runner():submit("ann", fresh.targets(1))
        assert.equal("queued", fresh.client():status(id).status)
        assert.equal("wal", fresh.sql "pragma journal_mode")
    end)

    it("takes an empty file for a new store", function()
        write(fresh.path "batch.db", "")
        assert.is_true(fresh.store():check())
    end)

    it("refuses a folder, and leaves nothing beside it", function()
        assert(lfs.mkdir(fresh.path "folder"))
        assert.matches("it is a folder", refusal(fresh.path "folder"), 1, true)
        assert.is_nil(lfs.attributes(fresh.path "folder.owners"))
    end)

    it("refuses a path that the system would not see whole, and makes nothing", function()
        local cut_off = fresh.path "store\0.db"
        assert.equal("store", select(3, batch.store.open(cut_off)))
        assert.equal("store", select(3, batch.store.open ""))
        local opened, message, code = batch.new { store = cut_off, fetch = print }
        assert.same({ nil, "invalid" }, { opened, code })
        assert.matches("store must be a path", message, 1, true)
        assert.is_nil(lfs.attributes(fresh.path "store"))
        assert.is_nil(lfs.attributes ".owners")
        local store = fresh.store()
        assert.equal("store", select(3, store:backup(fresh.path "copy\0")))
        assert.is_nil(lfs.attributes(fresh.path "copy"))
    end)

    it("refuses a device", function()
        assert.matches("it is no regular file", refusal "/dev/null", 1, true)
    end)

    it("goes by the file, whatever name it has been given", function()
        local path, here = fresh.path "batch.db", lfs.currentdir()
        assert(lfs.mkdir(fresh.path "other"))
        assert(lfs.link(path, fresh.path "other/link.db", true))  -- which makes the file
        finally(function() lfs.chdir(here) end)
        assert(lfs.chdir(fresh.path "other"))
        local first = fresh.runner { store = "link.db" }
        assert(lfs.chdir(here))
        local second = fresh.runner { store = path }
        local id = first:submit("ann", fresh.targets(1))
        assert.equal("queued", second:status(id).status)
        assert.equal(1, first:drain(function() return "x" end))
        assert.is_nil(lfs.attributes(fresh.path "other/link.db.owners"))
        assert.is_truthy(lfs.attributes(path .. ".owners"))
    end)

    it("refuses a file with a second name, and one that is mounted by itself", function()
        local path, other = fresh.path "batch.db", fresh.path "other.db"
        fresh.store():close()
        assert(lfs.link(path, other))
        assert.matches("another name by a hard link", refusal(path), 1, true)
        assert.matches("another name by a hard link", refusal(other), 1, true)
        os.remove(other)
        local mounted = disk.mount_file(path, other)
        if not mounted then
            return pending "only root may mount a file"
        end
        finally(function() mounted:unmount() end)
        assert.matches("mounted without its folder", refusal(other), 1, true)
        fresh.store():close()
    end)

    it("refuses a path whose folder is not there", function()
        assert.matches("No such file or directory", refusal(fresh.path "no/batch.db"), 1, true)
    end)

    it("refuses what is no database, and leaves it as it was", function()
        local path, text = fresh.path "letter.txt", ("Dear store,\n"):rep(1000)
        write(path, text)
        assert.matches("file is not a database", refusal(path), 1, true)
        assert.equal(text, io.open(path, "rb"):read "*a")
    end)

    it("refuses the database of another program, and leaves it as it was", function()
        local path = fresh.path "other.db"
        fresh.sql("create table t (x); insert into t values (7)", path)
        assert.matches("database of another program", refusal(path), 1, true)
        assert.equal("delete\n7", fresh.sql("pragma journal_mode; select x from t", path))
        local marked = fresh.path "marked.db"
        fresh.sql("pragma application_id = 1234", marked)
        assert.matches("database of another program", refusal(marked), 1, true)
    end)

    it("refuses a store of a newer version by its number", function()
        fresh.store():close()
        fresh.sql "pragma user_version = 99"
        assert.matches("a store of version 99, newer than the 3 that this batch knows",
            refusal(fresh.path "batch.db"), 1, true)
        assert.equal("99", fresh.sql "pragma user_version")
    end)

    it("refuses a truncated store and one of noise, and the process lives", function()
        fresh.store():close()
        local file = assert(io.open(fresh.path "batch.db", "rb"))
        local bytes = file:read "*a"
        file:close()
        write(fresh.path "short.db", bytes:sub(1, 5000))
        assert.equal("store", select(3, batch.new { store = fresh.path "short.db", fetch = print }))
        write(fresh.path "noise.db", bytes:sub(1, 100) .. ("\255\1\7"):rep(20000))
        assert.equal("store", select(3, batch.new { store = fresh.path "noise.db", fetch = print }))
    end)

    it("leaves no descriptor open when it is refused, or closed", function()
        local function count_open()
            collectgarbage()
            collectgarbage()
            local n = 0
            for _ in lfs.dir "/proc/self/fd" do
                n = n + 1
            end
            return n
        end
        write(fresh.path "letter.txt", "Dear store")
        local before = count_open()
        for _ = 1, 5 do
            for _, executor in ipairs { "threads", "manual" } do
                assert.is_nil(batch.new {
                    store = fresh.path "letter.txt", executor = executor, fetch = print,
                })
                local runner = batch.new {
                    store = fresh.path "batch.db", executor = executor, fetch = print,
                }
                runner:jobs()
                runner:close()
            end
            refusal(fresh.path "letter.txt")
        end
        assert.equal(before, count_open())
    end)

    it("refuses a store on a disk that is read-only", function()
        local ro = disk.mount "4m"
        if not ro then
            return pending "only root may mount a disk"
        end
        finally(function() ro:unmount() end)
        local path = ro.path .. "/batch.db"
        assert(batch.store.open(path)):close()
        ro:make_read_only()
        assert.matches("[Rr]ead%-only", refusal(path))
        assert.matches("[Rr]ead%-only", refusal(ro.path .. "/new.db"))
    end)

    it("refuses a store for which the disk has no room", function()
        local full = disk.mount "256k"
        if not full then
            return pending "only root may mount a disk"
        end
        finally(function() full:unmount() end)
        full:fill()
        assert.matches("[Nn]o space\n?.*", refusal(full.path .. "/batch.db"))
        full:free()
        local runner = batch.new { store = full.path .. "/batch.db", fetch = print }
        assert.is_truthy(runner)
        runner:close()
    end)
end)
