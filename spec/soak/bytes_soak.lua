-- SPDX-License-Identifier: MIT
--
-- Streams 10,000 results of 256 KiB to a slow reader while they come: the server must stay below
-- 100 MB. Takes 2.7 GB in the temporary folder.
--
-- Usage: bytes_soak.lua [RESULTS] [BYTES]

local fresh = require "spec.support.fresh"
local stream = require "spec.support.stream"

local MIB = 1024 * 1024
local n_results, size = tonumber(arg[1]) or 10000, tonumber(arg[2]) or 256 * 1024

local function run()
    local figures = stream.run(n_results, size)
    print(("%d results of %d bytes: %.1f MiB of memory at most, log %.1f MiB, file %.1f MiB; a "
        .. "slow reader got %.1f MiB meanwhile"):format(n_results, size, figures.peak_bytes / MIB,
        figures.wal_bytes / MIB, figures.file_bytes / MIB, figures.slow_bytes / MIB))
    stream.check(figures, n_results, size)
end

fresh.start()
local is_fine, message = xpcall(run, debug.traceback)
fresh.finish()
if not is_fine then
    io.stderr:write(message, "\n")
    os.exit(1)
end
