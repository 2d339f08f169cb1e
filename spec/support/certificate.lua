-- SPDX-License-Identifier: MIT
--
-- A certificate of its own for a test, for 127.0.0.1.

local fresh = require "spec.support.fresh"

--- Makes a certificate in the test's folder by openssl, or another in its place.
-- @tparam[opt="localhost"] string name
-- @treturn string the path of the certificate
-- @treturn string that of its key
-- @treturn string the lines of `[server]` that name both
return function(name)
    local certificate, key = fresh.path "certificate.pem", fresh.path "key.pem"
    assert(os.execute(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
        .. "-days 2 -subj /CN=%s -addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s "
        .. "2>/dev/null"):format(name or "localhost", key, certificate)))
    return certificate, key,
        ('tls_certificate = "%s"\ntls_key = "%s"'):format(certificate, key)
end
