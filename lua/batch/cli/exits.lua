-- SPDX-License-Identifier: MIT

--- What the command line's exit codes mean, said once.

--- @export
return {
    done = 0,
    failed = 1,       -- a target failed, a fault was found, an id is unknown
    usage = 2,        -- or configuration
    store = 3,        -- or a server: it could not be reached
    fault = 70,       -- EX_SOFTWARE of sysexits.h: a defect, not an answer
    interrupted = 130, -- what shells report of tools that SIGINT ends
    broken_pipe = 141, -- and SIGPIPE
}
