-- SPDX-License-Identifier: MIT
--
-- Runs promtool, Prometheus's own judge of texts, rules and expressions, where there is one.

local promtool = {}

local function succeeds(command)
    local ok = os.execute(command)
    return ok == true or ok == 0
end

local FOUND = succeeds("command -v promtool >/dev/null") and "promtool"
    or succeeds("test -x build/tools/promtool") and "build/tools/promtool"

--- Whether there is one; `make test` fetches it.
promtool.is_here = FOUND ~= false

--- What promtool prints, and whether it is content.
-- @tparam string arguments
-- @tparam[opt] string input what it reads from standard input
function promtool.run(arguments, input)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(input or "")
    file:close()
    local pipe = assert(io.popen(("%s %s <%s 2>&1; echo $?"):format(FOUND, arguments, path)))
    local output, status = pipe:read("*a"):match("^(.-)(%d+)\n$")
    pipe:close()
    os.remove(path)
    return output, status == "0"
end

return promtool
