-- SPDX-License-Identifier: MIT
--
-- The URLs that are never fetched, in all the spellings that people have found for them. None of
-- these tests leaves the machine: what is refused is refused before a packet is sent.

local http = require("batch.core").http

local GUARD_HINT =
    "only public addresses are fetched; --allow or [fetch] allow names networks that are let "
    .. "through"

describe("a URL that must not be fetched", function()
    local refused = {
        guard = {
            "http://127.0.0.1/", "http://127.0.0.1:8080/x", "http://127.1/",
            "http://127.255.255.254/",
            "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/",
            "http://017700000001/", "http://0/", "http://0.0.0.0/", "http://%31%32%37.0.0.1/",
            "http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/",
            "http://172.31.255.255/", "http://192.168.1.1/", "http://169.254.169.254/latest/",
            "http://2852039166/latest/", "http://0xa9fea9fe/", "http://100.64.0.1/",
            "http://192.0.0.1/", "http://192.0.2.1/", "http://198.18.0.1/", "http://198.51.100.1/",
            "http://203.0.113.1/", "http://224.0.0.1/", "http://240.0.0.1/",
            "http://255.255.255.255/", "http://[::1]/", "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:ffff:a00:1]/", "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/", "http://[64:ff9b:1::a00:1]/", "http://[2002:7f00:1::]/",
            "http://[2001::1]/", "http://[fe80::1]/", "http://[fc00::1]/", "http://[fd12::1]/",
            "http://[fec0::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/",
            "http://localhost/", "http://LOCALHOST/", "http://bücher.localhost/",
            "https://127.0.0.1/", "https://[::1]:8443/", "http://127。0。0。1/",
        },
        url = {
            "", " ", "nonsense", "/etc/passwd", "//127.0.0.1/", "http://", "http:///",
            "http://[::1",
            "http://a b/", "file:///etc/passwd", "FILE:///etc/passwd", "ftp://127.0.0.1/",
            "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/", "data:text/html,hello",
            "javascript:alert(1)", "mailto:a@example.org", "http://user@example.org/",
            "http://user:secret@example.org/", "http://:secret@example.org/",
            "http://example.org@127.0.0.1/", "http://example.org\\@127.0.0.1/",
            "http://example.org:25/", "http://example.org:6667/",
            "http://example.org:0/", "http://example.org:65536/", "http://example.org:x/",
            "http://example.org/\r\nHost: 127.0.0.1", "http://example.org\r\n/",
            "http://example.org/\0.html", "http://exa\9mple.org/",
            "http://example.org/" .. ("x"):rep(64 * 1024),
        },
    }

    for kind, urls in pairs(refused) do
        for _, url in ipairs(urls) do
            it(("is refused as %s: %q"):format(kind, url:sub(1, 50)), function()
                local client = assert(http.new {})
                local _, _, _, found = client:get(url, { timeout = 5 })
                client:close()
                assert.same(kind, found)
            end)
        end
    end

    it("is named with what is wrong about it", function()
        local client = assert(http.new {})
        local sentences = {
            ["http://127.0.0.1/"] = "address not allowed",
            ["http://a:b@example.org/"] = "user names in URLs are not allowed",
            ["ftp://example.org/"] = "scheme 'ftp' is not allowed",
            ["http://example.org:25/"] = "port 25 is not allowed",
            ["http://example.org/\n"] = "control characters in URLs are not allowed",
            ["example"] = "'example' is no URL",
        }
        for url, sentence in pairs(sentences) do
            local _, message = client:get(url)
            assert.same(sentence, message)
        end
    end)

    it("comes with a hint how the guard can be opened", function()
        local client = assert(http.new {})
        local _, _, hint, kind = client:get "http://localhost/"
        assert.same({ GUARD_HINT, "guard" }, { hint, kind })
    end)
end)
