-- SPDX-License-Identifier: MIT

--- Who calls the server: the configured tokens, the Authorization header that names one of them,
-- and where a server without tokens may listen. Knows tokens by their SHA-256 alone and shows none.

local field_types = require "batch.field_types"
local digest = require "openssl.digest"
local loopback = require "batch.loopback"

local MAX_TOKEN = 1024 -- bytes; far above what any generator of tokens makes
local LOCAL_CALLER, NO_CLASS = "local", ""

-- The 32 bytes of a SHA-256 as numbers of three bytes each.
local function words_of(hash)
    local words = {}
    for i = 1, #hash, 3 do
        local first, second, third = hash:byte(i, i + 2)
        words[#words + 1] = (first * 256 + (second or 0)) * 256 + (third or 0)
    end
    return words
end

local function bytes_of(hex)
    return (hex:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end))
end

-- 0 if the hashes are the same. Looks at all words and branches on none: how long it takes must not
-- tell how much of a guess is right. Eleven squares of 24-bit numbers stay below 2^53, exact on any
-- VM. CRYPTO_memcmp would do, too, but would bring libcrypto into the Lua face for one function.
local function difference(words, others)
    local sum = 0
    for i = 1, #words do
        local apart = words[i] - others[i]
        sum = sum + apart * apart
    end
    return sum
end

-- The token of a header such as "Bearer abc" (RFC 6750, section 2.1), or nil.
local function token_in(header)
    if #header > #"Bearer " + MAX_TOKEN then
        return nil
    end
    local scheme, token = header:match("^(%a+) +([%w._~+/-]+=*)$")
    return scheme and scheme:lower() == "bearer" and token or nil
end

local function unauthorized(message, hint)
    return nil, message, "unauthorized", hint
end

local methods = {}
local metatable = { __name = "batch.callers", __index = methods }

function metatable.__tostring(self)
    return ("batch.callers (%d tokens)"):format(#self._entries)
end

--- Tells who sends a header.
-- @tparam ?string header the value of Authorization
-- @tparam ?string host the value of Host, where a browser may have sent it; looked at only if there
-- is no token
-- @treturn[1] string the caller; `local`, whatever the header says, if no token is configured
-- @treturn[1] string the class of the caller's jobs
-- @treturn[2] nil
-- @treturn[2] string what is wrong; says nothing about what was sent
-- @treturn[2] string `unauthorized`
-- @treturn[2] ?string a hint, if there is a better one than to send a token
function methods:identify(header, host)
    if #self._entries == 0 then
        local is_meant, message, hint = loopback.check_host(host)
        if not is_meant then
            return unauthorized(message, hint)
        end
        return LOCAL_CALLER, NO_CLASS
    elseif header == nil or header == "" then
        return unauthorized "a token is needed"
    end
    local token = token_in(header)
    if not token then
        return unauthorized "the Authorization header must be 'Bearer' and one token"
    end
    local words, found = words_of(digest.new("sha256"):final(token)), nil
    for _, entry in ipairs(self._entries) do
        if difference(words, entry.words) == 0 then
            found = entry -- and on: the time is the same for the first and the last caller
        end
    end
    if not found then
        return unauthorized "the token is unknown"
    end
    return found.caller, found.class
end

--- Tells whether there are tokens, without which everybody is the same caller.
-- @treturn boolean
function methods:has_tokens()
    return #self._entries > 0
end

local function refuse_twins(token, other)
    return nil, ("callers %s and %s have the same sha256: each needs a token of its own"):format(
        field_types.shown(other.caller), field_types.shown(token.caller)), "invalid"
end

--- Makes the callers of a configuration.
-- @tparam {table,...} tokens the `auth.token` of batch.config: `caller`, `class`, `sha256` in hex
-- @treturn[1] batch.callers
-- @treturn[2] nil
-- @treturn[2] string which two have the same token
-- @treturn[2] string `invalid`
local function new(tokens)
    local entries, by_hash = {}, {}
    for i, token in ipairs(tokens) do
        local hash = token.sha256:lower()
        assert(hash:find "^%x+$" and #hash == 64, "sha256 must be 64 hexadecimal digits")
        if by_hash[hash] then
            return refuse_twins(token, by_hash[hash])
        end
        by_hash[hash] = token
        local words = words_of(bytes_of(hash))
        entries[i] = { caller = token.caller, class = token.class or NO_CLASS, words = words }
    end
    return setmetatable({ _entries = entries }, metatable)
end

--- Refuses to let strangers in: without tokens a server may only listen where no other machine
-- reaches it.
-- @tparam string listen as in a file's `[server]`
-- @tparam boolean has_tokens
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string what to do
-- @treturn[2] string `invalid`
local function check_listen(listen, has_tokens)
    local host = listen:match("^(.+):%d+$")
    if has_tokens or listen:find("^unix:") or host and loopback.is_loopback(host) then
        return true
    end
    return nil, ("server.listen = %s lets everyone in who reaches it: add an [[auth.token]], "
        .. "or listen on 127.0.0.1, [::1], localhost or a unix socket"):format(
        field_types.shown(listen)), "invalid"
end

--- @export
return { new = new, check_listen = check_listen }
