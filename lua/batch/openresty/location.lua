-- SPDX-License-Identifier: MIT

--- What `serve` is told of its location: the options, checked, and who calls. Knows no runner.

local loopback = require "batch.loopback"
local nearest = require "batch.nearest"

local DEFAULT_MAX_BODY = 2 ^ 20 -- bytes, as [server] max_body
local NAMES = { "prefix", "caller", "max_body" }
local KINDS = { prefix = "string", caller = "function", max_body = "number" }

local function check(options)
    for name, value in pairs(options) do
        local kind = KINDS[name]
        if not kind then
            local near = nearest.nearest(tostring(name), NAMES)
            error(("serve: unknown option '%s'%s"):format(tostring(name),
                near and (": did you mean '%s'?"):format(near) or ""), 4)
        elseif type(value) ~= kind then
            error(("serve: %s must be a %s, got %s"):format(name, kind, type(value)), 4)
        end
    end
end

local function is_loopback(address)
    return address:find "^127%." or address == "::1"
end

-- Who calls where nobody says it: as the stand-alone server has it without tokens.
local function local_caller()
    local address = ngx.var.remote_addr
    if address == "unix:" then
        return "local"
    elseif is_loopback(address) then
        local is_meant, message = loopback.check_host(ngx.var.http_host)
        return is_meant and "local" or nil, message
    end
    return nil, "only loopback is served, for serve was given no function caller"
end

-- Who calls as the location's own function says. False is nobody, as nil is: to the API it would be
-- one who sees all jobs.
local function identify(request)
    local caller, class = request.identify()
    if not caller then
        return nil, request.identify == local_caller and class or nil
    elseif type(caller) ~= "string" and type(caller) ~= "number" then
        error("caller must return a name, or nil for nobody, got a " .. type(caller))
    end
    return tostring(caller), class
end

--- Reads the options of `serve`.
-- @tparam ?table options
-- @treturn string prefix, without a slash at its end
-- @treturn function caller
-- @treturn integer bytes that a body may have
-- @raise for what it does not know, or of a wrong type
local function read(options)
    if options == nil then
        return "", local_caller, DEFAULT_MAX_BODY
    elseif type(options) ~= "table" then
        error("serve: options must be a table, got " .. type(options), 3)
    end
    check(options)
    local prefix = options.prefix or ""
    if prefix:sub(-1) == "/" then
        prefix = prefix:gsub("/+$", "")
    end
    return prefix, options.caller or local_caller, options.max_body or DEFAULT_MAX_BODY
end

--- @export
return { read = read, identify = identify }
