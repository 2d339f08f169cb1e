-- SPDX-License-Identifier: MIT

--- Decides about archived copies: which failures one can heal, where it would lie, and what the
-- archive's answer means. Sends no request itself.

local http = require("batch.core").http
local reason = require "batch.reason"
local retry = require "batch.retry"

-- Gone, or closed to us. The others of these statuses say that the request was wrong, or too early.
local HEALABLE_STATUSES = {
    [401] = true, [402] = true, [403] = true, [404] = true, [406] = true, [408] = true,
    [410] = true, [451] = true,
}

local BUSY_STATUSES = { [429] = true, [503] = true }

-- Kinds of refusal, as of the client. Not among them: guard and url, for what must not be fetched
-- must not be told to an archive either; too_large, for a copy would be too; and what is ours.
local HEALABLE_KINDS = {
    connect = true, resolve = true, timeout = true, tls = true, redirects = true, protocol = true,
}

--- Whether an archived copy may help: the page is gone, blocked or unreachable.
-- @tparam table failure of the page: `status` of an answer, or the `kind` of a refusal
-- @treturn boolean
local function is_healable(failure)
    local status = failure.status
    if not status then
        return HEALABLE_KINDS[failure.kind] or false
    end
    return HEALABLE_STATUSES[status] or (status >= 500 and not BUSY_STATUSES[status])
end

--- Where the newest archived copy of a page lies. Archives want the whole URL as it would be
-- requested behind their prefix, not escaped once more, and without the fragment.
-- @tparam string prefix `[fetch] archive`
-- @tparam string url
-- @treturn[1] string
-- @treturn[2] nil
-- @treturn[2] string why the URL is none
-- @treturn[2] ?string a hint
local function address(prefix, url)
    local requested, message, hint = http.address(url)
    if not requested then
        return nil, message, hint
    end
    return prefix .. requested
end

local function host_of(prefix)
    local _, host = http.address(prefix)
    return ((host or prefix):gsub(":%d+$", ""))
end

--- What the archive's answer means. Whatever it is, a failure is told as that of the page itself,
-- for that is what the user asked for.
-- @tparam table failure of the page: `error`, and `hint` if there is one
-- @tparam table archived `status` of its answer and `retry_after`, or the `error` of a refusal
-- @tparam string prefix `[fetch] archive`
-- @treturn[1] boolean true: the answer is the copy
-- @treturn[2] nil
-- @treturn[2] string|table the page's error, or a `retry.later` where the archive is busy
-- @treturn[2] ?string a hint that says what the archive said
local function judge(failure, archived, prefix)
    local status = archived.status
    if status and status >= 200 and status < 300 then
        return true
    elseif BUSY_STATUSES[status] then
        local message = "the archive is busy: " .. reason.words(status)
        return nil, retry.later(message, archived.retry_after)
    elseif status == 404 then
        return nil, failure.error, ("%s has no archived copy"):format(host_of(prefix))
    end
    local why = status and reason.words(status) or archived.error
    return nil, failure.error, ("no archived copy could be had from %s: %s"):format(
        host_of(prefix), why)
end

--- @export
return { is_healable = is_healable, address = address, judge = judge }
