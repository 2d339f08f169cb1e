-- SPDX-License-Identifier: MIT

--- What a server takes from its configuration while it runs: tokens, log level, TLS files. All of
-- a new configuration or nothing, so that a slip in the file never leaves a server half changed.

local callers = require "batch.callers"

local reload = {}

--- The callers of a configuration, if they may be let in where it listens.
-- @tparam table config as batch.config gives it
-- @treturn[1] batch.callers
-- @treturn[2] nil
-- @treturn[2] string what is wrong
function reload.callers(config)
    local known, message = callers.new(config.auth.token)
    local may_listen = known
    if known then
        may_listen, message = callers.check_listen(config.server.listen, known:has_tokens())
    end
    if not may_listen then
        return nil, message
    end
    return known
end

local function load_tls(server, section, has_tls)
    local has_files = section.tls_certificate ~= ""
    if has_files ~= has_tls then
        return nil, has_tls and "server.tls_certificate cannot go while the server runs"
            or "server.tls_certificate cannot be added while the server runs"
    elseif not has_files then
        return true
    end
    return server:reload_tls(section.tls_certificate, section.tls_key)
end

--- Takes over what may change.
-- @tparam table parts `started`: the section `[server]` that the server was started with; `server`;
-- `log`
-- @tparam table config the new one
-- @treturn[1] batch.callers whom to let in from now on
-- @treturn[2] nil, and nothing has changed
-- @treturn[2] string what is wrong
function reload.apply(parts, config)
    if config.server.listen ~= parts.started.listen then
        return nil, "server.listen cannot change while the server runs"
    end
    local known, message = reload.callers(config)
    if not known then
        return nil, message
    end
    local is_loaded, tls_message = load_tls(parts.server, config.server,
        parts.started.tls_certificate ~= "")
    if not is_loaded then
        return nil, tls_message
    end
    parts.log:set_level(config.log.level)
    return known
end

--- @export
return reload
