-- SPDX-License-Identifier: MIT

--- TLS for the server: a context from PEM files, HTTP/2 or HTTP/1.1 by ALPN, TLS 1.2 and later.
-- What may be wrong with the files is looked for before luaossl is asked: with OpenSSL 3 each of
-- its failures reads the reason from memory that is freed already.

local context = require "openssl.ssl.context"
local chain = require "openssl.x509.chain"
local pkey = require "openssl.pkey"
local x509 = require "openssl.x509"
local http_tls = require "http.tls"

local CERTIFICATE = "%-%-%-%-%-BEGIN [^\n]*CERTIFICATE%-%-%-%-%-.-%-%-%-%-%-END [^\n]*%-%-%-%-%-"
local KEY = "%-%-%-%-%-BEGIN [^\n]*PRIVATE KEY%-%-%-%-%-.-%-%-%-%-%-END [^\n]*%-%-%-%-%-"

local tls = {}

local function read_file(path)
    local file, why = io.open(path, "rb")
    if not file then
        return nil, "cannot read " .. why
    end
    local text, read_why = file:read("*a")
    file:close()
    if not text then
        return nil, ("cannot read %s: %s"):format(path, read_why)
    end
    return text
end

-- The server's own certificate, and those that lead from it to a root.
local function read_certificates(path)
    local text, message = read_file(path)
    if not text then
        return nil, message
    end
    local first, others = nil, chain.new()
    for pem in text:gmatch(CERTIFICATE) do
        local is_fine, certificate = pcall(x509.new, pem, "PEM")
        if not is_fine then
            return nil, path .. " holds a certificate that is malformed"
        elseif not first then
            first = certificate
        else
            others:add(certificate)
        end
    end
    if not first then
        return nil, path .. " holds no certificate in PEM form"
    end
    return first, others
end

local function read_key(path)
    local text, message = read_file(path)
    if not text then
        return nil, message
    elseif text:find("ENCRYPTED", 1, true) then
        -- OpenSSL would ask for the passphrase on the terminal.
        return nil, path .. " holds a key that is encrypted"
    end
    local pem = text:match(KEY)
    if not pem then
        return nil, path .. " holds no private key in PEM form"
    end
    local is_fine, key = pcall(pkey.new, pem, "PEM")
    if not is_fine then
        return nil, path .. " holds a private key that is malformed"
    end
    return key
end

local function select_protocol(_, offered)
    for _, wanted in ipairs { "h2", "http/1.1", "http/1.0" } do
        for _, protocol in ipairs(offered) do
            if protocol == wanted then
                return wanted
            end
        end
    end
    return nil
end

local function new_context()
    local made = http_tls.new_server_context()
    made:setOptions(context.OP_NO_TLSv1 + context.OP_NO_TLSv1_1
        + context.OP_CIPHER_SERVER_PREFERENCE)
    if made.setGroups then
        made:setGroups("X25519:P-256:P-384")
    end
    made:setAlpnSelect(select_protocol)
    return made
end

--- Makes a context from files.
-- @tparam string certificate_path the certificate, behind it those that lead to a root
-- @tparam string key_path
-- @treturn[1] userdata
-- @treturn[2] nil
-- @treturn[2] string names the file
function tls.load(certificate_path, key_path)
    local certificate, others = read_certificates(certificate_path)
    if not certificate then
        return nil, others
    end
    local key, message = read_key(key_path)
    if not key then
        return nil, message
    end
    if certificate:getPublicKey():toPEM("public") ~= key:toPEM("public") then
        return nil, key_path .. " is not the key of the certificate in " .. certificate_path
    end
    local made = new_context()
    if not pcall(made.setCertificate, made, certificate)
        or not pcall(made.setPrivateKey, made, key) then
        return nil, certificate_path .. " holds a certificate that cannot be used"
    end
    made:setCertificateChain(others)
    return made
end

--- @export
return tls
