-- SPDX-License-Identifier: MIT
--
-- Bytes of the web as UTF-8.

local http = require("batch.core").http

describe("http.decode", function()
    it("makes UTF-8 of what was named, marked, or can be guessed", function()
        local known = {
            { "caf\xe9", "iso-8859-1", "café", "iso-8859-1" },
            { "\x80 5", "ISO-8859-1", "€ 5", "iso-8859-1" },
            { "\x80 5", "windows-1252", "€ 5", "windows-1252" },
            { "\xff\xfea\0\xe9\0", nil, "aé", "utf-16le" },
            { "\xfe\xff\0a\0\xe9", "utf-8", "aé", "utf-16be" },
            { "\xef\xbb\xbfé", nil, "é", "utf-8" },
            { "é", nil, "é", "utf-8" },
            { "\xe9", nil, "é", "windows-1252" },
            { "a\xffb", "utf-8", "a\u{fffd}b", "utf-8" },
            { "a\xe9", "utf-8", "a\u{fffd}", "utf-8" },
            { "a\0\0\xd8b\0c", "utf-16le", "a\u{fffd}b\u{fffd}", "utf-16le" },
            { "\x93\xfa\x96\x7b", "Shift_JIS", "日本", "shift_jis" },
            { "\xd0\xd2", "koi8-r", "пр", "koi8-r" },
            { "a\0b", nil, "a\0b", "utf-8" },
            { "", nil, "", "utf-8" },
        }
        for _, row in ipairs(known) do
            assert.same({ row[3], row[4] }, { http.decode(row[1], row[2]) })
        end
    end)

    it("refuses charsets that the web does not use", function()
        assert.same({ nil, "unknown charset 'iso-2022-cn-ext'", "invalid" },
            { http.decode("a", "ISO-2022-CN-EXT") })
    end)
end)
