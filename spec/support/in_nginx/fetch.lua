-- SPDX-License-Identifier: MIT
--
-- A fetch for nginx's light threads that does what its URL says: VERB:WORD, and behind a # what
-- tells it from others that say the same. http: fetches by a cosocket.

local batch = require "batch"
local core = require "batch.core"
local ffi = require "ffi"

ffi.cdef "void abort(void);"

local verbs = {}

-- Its content is the word.
function verbs.say(word)
    return word
end

function verbs.fail(word)
    return nil, word
end

function verbs.raise(word)
    error(word)
end

-- So many bytes.
function verbs.bytes(word)
    return ("x"):rep(tonumber(word))
end

-- Ends more than itself, after so many seconds.
function verbs.exit(word)
    ngx.sleep(tonumber(word))
    ngx.exit(ngx.OK)
end

-- Sleeps for so many seconds, and lets others work.
function verbs.nap(word)
    ngx.sleep(tonumber(word))
    return "slept"
end

-- Sleeps for so many seconds, and ends early when it is told to.
function verbs.doze(word, ctx)
    if not ctx:sleep(tonumber(word)) then
        return nil, "interrupted"
    end
    return "slept"
end

-- Works for so many seconds, and lets nobody else.
function verbs.block(word)
    local ends_at = core.monotime() + tonumber(word)
    repeat until core.monotime() >= ends_at
    return "blocked"
end

-- As if the wall clock had been set since nginx read it.
function verbs.shift(word)
    local now = ngx.now
    rawset(ngx, "now", function() return now() - tonumber(word) end)
    return "set"
end

-- The same, and has nginx read its clock meanwhile.
function verbs.hog(word)
    local ends_at = core.monotime() + tonumber(word)
    repeat
        ngx.update_time()
    until core.monotime() >= ends_at
    return "blocked"
end

-- Takes its process with it after so many seconds.
function verbs.crash(word)
    ngx.sleep(tonumber(word))
    ffi.C.abort()
end

-- Is busy for so many calls.
function verbs.busy(word, ctx)
    if ctx.attempt <= tonumber(word) then
        return nil, batch.retry_later("busy", 0.05)
    end
    return "fine at last"
end

-- Which process it runs in.
function verbs.whoami()
    return tostring(ngx.worker.pid())
end

-- What the target's context tells.
function verbs.context(_, ctx)
    return ("%s %s %d %d"):format(ctx.caller, ctx.class, ctx.idx, ctx.attempt)
end

local function read_response(socket)
    local status = socket:receive "*l"
    local code = status and status:match "^HTTP/1.1 (%d+)"
    if not code then
        return nil, "no answer came"
    end
    local length
    repeat
        local line = assert(socket:receive "*l")
        length = length or line:lower():match "^content%-length: (%d+)"
    until line == ""
    local content = assert(socket:receive(tonumber(length)))
    socket:setkeepalive(10000, 64)
    if code ~= "200" then
        return nil, "HTTP " .. code
    end
    return { content = content, meta = { status = 200 } }
end

function verbs.http(word)
    local host, port, path = word:match "^//([%d.]+):(%d+)(.*)$"
    local socket = ngx.socket.tcp()
    socket:settimeouts(5000, 5000, 30000)
    assert(socket:connect(host, tonumber(port)))
    assert(socket:send(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n"):format(path, host)))
    return read_response(socket)
end

return function(target, ctx)
    local verb, word = target.url:match "^(%l+):([^#]*)"
    return verbs[verb](word, ctx)
end
