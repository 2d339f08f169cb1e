-- SPDX-License-Identifier: MIT
--
-- A server that was killed, and what the next one finds in its store.

local eventually = require "spec.support.eventually"
local fresh = require "spec.support.fresh"
local service = require "spec.support.service"

describe("a server that is started again after kill -9", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    -- Submits jobs that differ, as fast as it can, until the server is gone; prints the answers.
    local SUBMITTER = [[for j in $(seq 1000); do
        curl -sSf -H 'content-type: application/json' \
            -d '{"targets":[{"url":"say:%d-'$j'"}]}' %s/v1/batches 2>/dev/null || break
    done]]

    local function kill_and_start(config)
        local server, gate = service.start(config), fresh.path "gate"
        local ids = {}
        for i = 1, 4 do
            ids[i] = select(2, server:submit { "say:first#" .. i, "await:" .. gate .. "#" .. i,
                "say:last" })
        end
        server:await_status(ids[1], "running")
        eventually(function()
            return server:curl("/v1/batches/" .. ids[1]).json().job.targets_done == 1
        end)
        server:signal "KILL"
        assert.equal(137, (server:wait()))
        io.open(gate, "w"):close()
        return service.start(config), ids
    end

    it("has every job that was acknowledged, failed by the restart", function()
        local server, ids = kill_and_start()
        for _, id in ipairs(ids) do
            local job = server:curl("/v1/batches/" .. id).json().job
            assert.same({ "failed", "restart", 3 }, { job.status, job.error, job.targets_total })
        end
        assert.equal("first", server:curl("/v1/batches/" .. ids[1]).json()
            .targets[1].result.content)
        local ended_by_restart = 'batch_jobs_total{outcome="restart"} 4'
        assert.matches("\n" .. ended_by_restart .. "\n", server:curl("/metrics").body, 1, true)
        server:await_status(select(2, server:submit { "say:anew" }), "done")
    end)

    it("has all that it acknowledged while it was killed", function()
        local server = service.start()
        local submitters = {}
        for i = 1, 3 do
            submitters[i] = assert(io.popen(SUBMITTER:format(i, server.base)))
        end
        eventually(function() return #server:curl("/v1/batches").json().jobs > 30 end, 60)
        server:signal "KILL"
        server:wait()
        server = service.start()
        local n = 0
        for _, submitter in ipairs(submitters) do
            for id in submitter:read("*a"):gmatch '"id":"([^"]+)","status":"%l+","reused"' do
                assert.equal(200, server:curl("/v1/batches/" .. id .. "?limit=0").status)
                n = n + 1
            end
            submitter:close()
        end
        assert.is_true(n > 30, n .. " submits were acknowledged")
    end)

    it("goes on with them when it is told to resume", function()
        local server, ids = kill_and_start { batch = 'on_restart = "resume"' }
        for _, id in ipairs(ids) do
            local targets = server:await_status(id, "done").json().targets
            assert.same({ "first", "it is there", "last" }, { targets[1].result.content,
                targets[2].result.content, targets[3].result.content })
        end
    end)
end)
