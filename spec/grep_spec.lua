-- SPDX-License-Identifier: MIT
--
-- The option `grep`: which lines come, and what happens to patterns that are wrong or wild.

local grep = require "batch.grep"

-- expected: the lines, each with its end; the last one's is not part of the content.
local function found(expected, text, pattern, has_context)
    local _, n_expected = expected:gsub("[^\n]*\n", "")
    local lines, n_matches = grep.lines(text, pattern, has_context)
    assert.same((expected:gsub("\r?\n$", "")), lines)
    if not has_context then
        assert.same(n_expected, n_matches)
    end
end

describe("grep", function()
    it("gives the matching lines in order, and how many there are", function()
        found("one\nthree one\n", "one\ntwo\nthree one\n", "one")
        found("b\n", "a\nb", "b")
        found("1\n22\n", "1\na\n22\n", [[^\d+$]])
    end)

    it("gives an empty content when nothing matches", function()
        assert.same({ "", 0 }, { grep.lines("a\nb\n", "c") })
        assert.same({ "", 0 }, { grep.lines("", "c") })
        assert.same({ "", 0 }, { grep.lines("", "^$") })
    end)

    it("matches each line for itself", function()
        found("ab\n", "ab\na\nb\n", "a[^x]*b")
        found("a\n", "a\nb\n", [[a\z]])
        found("a\nba\n", "a\nba\n", [[a(?!\s*c)]])
        found("b\n", "a\nb\n", [[\Ab]])
        found("", "a\nb\n", [[(?s)a.b]])
        found("", "a\nb\n", [[a\nb]])
    end)

    it("does not let a pattern see the end of a line, in files from Windows neither", function()
        found("a\r\nba\r\n", "a\r\nba\r\nab\r\n", "a$")
        found("\r\n\n", "a\r\n\r\n\n", "^$")
        found("a\rb\n", "a\rb\n", "^a.b$")
    end)

    it("takes every line for a pattern that matches nothing at all", function()
        found("a\n\nb\n", "a\n\nb\n", "x*")
        found("a\n\nb\n", "a\n\nb", "(?:)")
    end)

    it("knows letters beyond ASCII", function()
        found("Ä\n", "Ä\nx\n", "(?i)^ä$")
        found("é\n", "é\nee\n", "^.$")
        found("日本\n", "日本\na b\n", [[^\w{2}$]])
        found("ß\n", "ß\na\n", "[ßü]")
        found("une été\n", "une été\n", [[\bété\b]])
    end)

    it("finds what stands around bytes that are no UTF-8, which match nothing", function()
        found("caf\xe9 one\n", "caf\xe9 one\ntwo\n", "one$")
        found("\xff\xfe é\n", "\xff\xfe é\n", "é")
        found("", "a\xe9b\n", "a.b")
        found("a\0b\n", "a\0b\nab\n", "a\0b")
    end)

    it("has backreferences, lookarounds, names, comments and unclosed quotes", function()
        found("abab\n", "abab\nabba\n", [[^(ab)\1$]])
        found("price 5\n", "price 5\ncost 5\n", [[(?<=price )\d]])
        found("aa\n", "aa\nab\n", [[(?<c>a)\k<c>]])
        found("ab\n", "ab\na b\n", "(?x) a b # in a row")
        found("a.b)\n", "a.b)\naxb)\n", [[\Qa.b)]])
        found("(())\n", "(())\n(()\n", [[^(\((?1)*\))$]])
    end)

    it("takes patterns of 10 kB", function()
        local words = {}
        for i = 1, 1200 do
            words[i] = "word" .. i
        end
        found("word1200\n", "word\nword1200\n", table.concat(words, "|"))
        local long_line = ("x"):rep(70000)
        local _, message, hint = grep.lines(long_line, table.concat(words, "|"))
        assert.same("the grep pattern cannot be matched on line 1: a line of 70000 bytes is too"
            .. " long for a pattern as large as this", message)
        assert.is_string(hint)
    end)
end)

describe("grep with context", function()
    local function numbers(from, to)
        local lines = {}
        for i = from, to do
            lines[#lines + 1] = i .. "\n"
        end
        return table.concat(lines)
    end

    it("gives three lines on either side, groups parted by --", function()
        found(numbers(7, 13) .. "--\n" .. numbers(27, 30), numbers(1, 30), "^[13]0$", true)
        assert.same(2, select(2, grep.lines(numbers(1, 30), "^[13]0$", true)))
    end)

    it("runs groups together that touch or overlap", function()
        found(numbers(2, 11), numbers(1, 20), "^[58]$", true)
        found(numbers(2, 15), numbers(1, 20), "^(5|12)$", true)
        found(numbers(2, 8) .. "--\n" .. numbers(10, 16), numbers(1, 20), "^(5|13)$", true)
    end)

    it("ends where the text does", function()
        found("1\n2\n3\n", "1\n2\n3", "2", true)
        found("", "1\n2\n3", "4", true)
    end)
end)

describe("a grep pattern that is wrong", function()
    local function refused(reason, pattern)
        local is_fine, message, hint = grep.check(pattern)
        assert.is_nil(is_fine)
        assert.same("the grep pattern is wrong: " .. reason, message)
        assert.is_truthy(hint:find("backslash", 1, true))
        assert.same({ nil, message, hint }, { grep.lines("a", pattern) })
    end

    it("is refused with the place", function()
        refused("missing closing parenthesis, at byte 3", "a(")
        refused("missing terminating ] for character class, at byte 3", "[a")
        refused("quantifier does not follow a repeatable item, at byte 1", "*a")
        refused("lookbehind assertion is not fixed length, at byte 1", "(?<=a+)b")
        refused("(*VERB) not recognized or malformed, at byte 6", "(*FOO)a")
    end)

    it("is refused when it would see half a character, or is no UTF-8", function()
        refused([[using \C is disabled by the application, at byte 3]], [[\C]])
        refused("UTF-8 error: illegal byte (0xfe or 0xff), at byte 2", "a\xff")
    end)

    it("is refused when it would grow without bound", function()
        refused("regular expression is too large, at byte 30", "((a{1,1000}){1,1000}){1,1000}")
        refused("parentheses are too deeply nested, at byte 252",
            ("("):rep(300) .. (")"):rep(300))
    end)

    it("does not fail the check when it is right", function()
        assert.is_true(grep.check [[^\w+(?=;)|(?i)é]])
    end)
end)

describe("a grep pattern that would take for ever", function()
    local function ends(line_number, text, pattern)
        local started = os.clock()
        local lines, message, hint = grep.lines(text, pattern)
        assert.is_nil(lines)
        assert.same("the grep pattern takes too long on line " .. line_number, message)
        assert.is_truthy(hint:find("possessive", 1, true))
        return os.clock() - started
    end

    it("ends at once by the number of ways that it tries", function()
        assert.is_true(ends(2, "a\n" .. ("a"):rep(60) .. "b\n", "(a+)+$") < 3)
        assert.is_true(ends(1, ("a"):rep(3000) .. "b\n", "^(a|aa)+$") < 3)
    end)

    it("cannot lift the limits", function()
        ends(1, ("a"):rep(60) .. "b", "(*LIMIT_MATCH=4000000000)(*LIMIT_HEAP=4000000000)(a+)+$")
        ends(1, ("a"):rep(60) .. "b", "(*NO_JIT)(a+)+$")
    end)

    it("ends after 5 seconds when each try is cheap but there are too many", function()
        local seconds = ends(1, ("a"):rep(1e6), "[a-y]*[bc]d?")
        assert.is_true(seconds > 4 and seconds < 12)
    end)

    it("ends with a sentence when it calls itself for nothing", function()
        local _, message = grep.lines("aaa", "(?R)?a")
        assert.same("the grep pattern cannot be matched on line 1: nested recursion at the same"
            .. " subject position", message)
    end)
end)
