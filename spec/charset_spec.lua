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

    it("reads what the world writes, as UTF-8", function()
        local known = {
            { "shift_jis", "\x93\xfa\x96\x7b\x8c\xea\x81\x60\x5c", "日本語～\\" },
            { "euc-jp", "\xc6\xfc\xcb\xdc\xb8\xec\xad\xa1", "日本語①" },
            { "iso-2022-jp", "\x1b$BF|K\\\x1b(B.", "日本." },
            { "gbk", "\xd6\xd0\xce\xc4", "中文" },
            { "gb18030", "\x81\x30\x89\x38", "ß" },
            { "big5", "\xa4\xa4\xa4\xe5", "中文" },
            { "euc-kr", "\xc7\xd1\xb1\xb9", "한국" },
            { "koi8-r", "\xf0\xd2\xc9\xd7\xc5\xd4", "Привет" },
            { "windows-1251", "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет" },
            { "iso-8859-5", "\xbf\xe0\xd8\xd2\xd5\xe2", "Привет" },
            { "windows-1252", "\x93caf\xe9\x94 \x80", "“café” €" },
            { "iso-8859-15", "\xa4\xbd", "€œ" },
            { "iso-8859-2", "\xb3\xf3d\xbc", "łódź" },
            { "iso-8859-7", "\xea\xe1\xeb\xe7", "καλη" },
            { "windows-1256", "\xe3\xd1\xcd\xc8\xc7", "مرحبا" },
            { "tis-620", "\xca\xc7\xd1\xca", "สวัส" },
            { "utf-16le", "\x2d\x4e\x3d\xd8\x00\xde", "中😀" },
            { "utf-16be", "\x4e\x2d\xd8\x3d\xde\x00", "中😀" },
        }
        for _, row in ipairs(known) do
            assert.same({ row[1], row[3] }, { row[1], (http.decode(row[2], row[1])) })
        end
    end)

    it("knows the labels of the encoding standard, which are not what they say", function()
        local labels = {
            { "latin1", "\x80", "€" }, { "ascii", "\x80", "€" }, { "ISO_8859-1:1987", "\x80", "€" },
            { " UTF8\t", "é", "é" }, { "x-sjis", "\x83\x41", "ア" }, { "ms_kanji", "\x83\x41", "ア" },
            { "gb2312", "\x81\x41", "丄" }, { "ks_c_5601-1987", "\x81\x41", "갂" },
            { "latin5", "\xfe", "ş" }, { "unicode", "a\0", "a" }, { "866", "\x80", "А" },
            { "koi", "\xc1", "а" }, { "iso-8859-8-i", "\xe0", "א" }, { "mac", "\x8e", "é" },
            { "x-mac-cyrillic", "\xe0", "а" },
        }
        for _, row in ipairs(labels) do
            assert.same({ row[1], row[3] }, { row[1], (http.decode(row[2], row[1])) })
        end
    end)

    it("believes a byte order mark more than a label", function()
        for _, label in ipairs { "utf-8", "iso-8859-1", "shift_jis", "nonsense" } do
            assert.same({ "aé", "utf-16le" }, { http.decode("\xff\xfea\0\xe9\0", label) })
            assert.same({ "aé", "utf-16be" }, { http.decode("\xfe\xff\0a\0\xe9", label) })
            assert.same({ "é", "utf-8" }, { http.decode("\xef\xbb\xbfé", label) })
        end
    end)

    it("gives valid UTF-8 for what is declared wrongly, with marks where it failed", function()
        local wrong = {
            { "utf-8", "caf\xe9!", "caf\u{fffd}!" },
            { "utf-8", "\xed\xa0\x80", nil },
            { "utf-8", "\xc0\xaf", nil },
            { "utf-8", "a\xf4\x90\x80\x80", "a" .. ("\u{fffd}"):rep(4) },
            { "shift_jis", "\x81\n", "\u{fffd}\n" },
            { "euc-jp", "\xc6<b>", "\u{fffd}<b>" },
            { "utf-16le", "abc", nil },
            { "iso-8859-1", "é", "Ã©" },
            { "gb18030", ("\xff"):rep(1000), ("\u{fffd}"):rep(1000) },
        }
        for _, row in ipairs(wrong) do
            local text = http.decode(row[2], row[1])
            assert.same(text, (http.decode(text, "utf-8")))
            assert.same({ row[1], row[3] or text }, { row[1], text })
        end
    end)

    it("is done with megabytes of nonsense soon", function()
        -- A sanitizer looks at all that is left before each call of iconv.
        local count = os.getenv "SANITIZER" and 10000 or 1000000
        local begun = os.clock()
        for _, label in ipairs { "utf-8", "shift_jis", "utf-16le", "gb18030", "euc-jp" } do
            http.decode(("\xff\xd8"):rep(count), label)
        end
        assert.is_true(os.clock() - begun < 5)
    end)

    it("refuses charsets that the web does not use", function()
        assert.same({ nil, "unknown charset 'iso-2022-cn-ext'", "invalid" },
            { http.decode("a", "ISO-2022-CN-EXT") })
        for _, label in ipairs { "", "utf-7", "utf-8 utf8", "hz-gb-2312", "x", ("x"):rep(100) } do
            local text, _, code = http.decode("a", label)
            assert.same({ label, nil, "invalid" }, { label, text, code })
        end
    end)
end)
