-- SPDX-License-Identifier: MIT
--
-- A server whose store fails while it serves: locked by another process, on a full disk. Reads and
-- probes go on as if nothing were; submits wait for a lock, and are refused at once without room.

local core = require "batch.core"
local disk = require "spec.support.disk"
local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local service = require "spec.support.service"

describe("a server whose store another process has locked", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("answers reads as fast as ever, and takes each submit once it can", function()
        local server = service.start()
        local _, id = server:submit { "say:a" }
        server:await_status(id, "done")
        local other = fresh.lock()
        local submits = {}
        for i = 1, 16 do
            submits[i] = server:begin("/v1/batches", service.body { "say:b#" .. i })
        end
        submits[1]:await_taken()
        local spans, begun_at = {}, core.now()
        repeat
            for _, path in ipairs { "/healthz", "/v1/batches/" .. id, "/v1/batches" } do
                local answer = server:curl(path)
                assert.equal(200, answer.status)
                spans[#spans + 1] = answer.seconds
            end
        until core.now() - begun_at > 1.5
        other:close()
        service.check_quick(spans, 0.1, 1)
        local n_waited = 0 -- those that came late need not wait for long
        for _, submit in ipairs(submits) do
            local answer = submit:finish()
            assert.equal(202, answer.status)
            n_waited = n_waited + (answer.seconds > 1 and 1 or 0)
        end
        assert.is_true(n_waited > 0)
        assert.equal(17, #server:curl("/v1/batches").json().jobs)
    end)
end)

describe("a server whose disk is full", function()
    local full

    before_each(function()
        fresh.start()
        full = disk.mount "4m"
    end)
    after_each(fresh.finish)

    it("refuses submits at once with 507, reads on, and takes them when there is room", function()
        if not full then
            return pending "only root may mount a disk"
        end
        local server = service.start { batch = ('store = "%s/batch.db"'):format(full.path) }
        finally(function()
            server:close()
            full:unmount()
        end)
        local _, id = server:submit { "say:a" }
        server:await_status(id, "done")
        full:fill()
        local answer
        -- What is left of the file's own pages may take a small job or two.
        for i = 1, 20 do
            local urls = {}
            for j = 1, 32 do
                urls[j] = "say:" .. ("b"):rep(500) .. "#" .. i .. "-" .. j
            end
            answer = server:submit(urls)
            if answer.status ~= 202 then
                break
            end
        end
        assert.same({ 507, "store_full" }, { answer.status, answer.json().error.code })
        assert.is_true(answer.seconds < 4 * service.SLOWNESS, "it took " .. answer.seconds)
        assert.equal(200, server:curl("/v1/batches/" .. id).status)
        local readiness = server:curl("/readyz")
        assert.same({ 503, "store" }, { readiness.status, readiness.json().error.code })
        assert.matches("\nbatch_healthy 0\n", server:curl("/metrics").body, 1, true)
        full:free()
        answer, id = server:submit { "say:c" }
        assert.equal(202, answer.status)
        server:await_status(id, "done")
        eventually(function() return server:curl("/readyz").status == 200 end)
    end)
end)
