-- SPDX-License-Identifier: MIT
--
-- A fetch that does what its URL says, for servers under test: VERB:WORD, and behind a # what tells
-- it from others that say the same.

local core = require "batch.core"

local verbs = {}

-- Its content is the word.
function verbs.say(word)
    return word
end

function verbs.fail(word)
    return nil, word
end

-- So many bytes.
function verbs.bytes(word)
    return ("x"):rep(tonumber(word))
end

-- Sleeps for so many seconds, and ends early when it is told to.
function verbs.nap(word, ctx)
    if not ctx:sleep(tonumber(word)) then
        return nil, "interrupted"
    end
    return "slept"
end

-- Works for so many seconds, whatever it is told.
function verbs.toil(word)
    local ends_at = core.now() + tonumber(word)
    repeat
        core.poll_fd(-1, 0.02)
    until core.now() >= ends_at
    return "toiled"
end

local function exists(path)
    local file = io.open(path)
    return file and file:close()
end

-- Waits until a file is there.
function verbs.await(path, ctx)
    while not exists(path) do
        if not ctx:sleep(0.005) then
            return nil, "interrupted"
        end
    end
    return "it is there"
end

-- Waits until a file is there, whatever it is told.
function verbs.hold(path)
    while not exists(path) do
        core.poll_fd(-1, 0.005)
    end
    return "held"
end

-- A page, without the web.
function verbs.https(word, ctx)
    if word:find "/missing$" then
        return nil, "HTTP 404 Not Found"
    elseif word:find "/slow$" then
        return verbs.nap("30", ctx)
    end
    local meta = { status = 200, url = "https:" .. word, title = "Example Domain" }
    return { content = "# Example Domain\n\nThis domain is for use in documents.\n", meta = meta }
end

return function(target, ctx)
    local verb, word = target.url:match "^(%l+):([^#]*)"
    return verbs[verb](word, ctx)
end
