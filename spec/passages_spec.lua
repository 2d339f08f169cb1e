-- SPDX-License-Identifier: MIT
--
-- Which parts of a long page a question's answer is looked for in.

local blocks = require "batch.question.blocks"
local passages = require "batch.question.passages"
local words = require "batch.question.words"

local LARGE = 10000

local function filler(n, word)
    local lines = {}
    for i = 1, n do
        lines[i] = ("Paragraph %d tells of %s at some length."):format(i, word or "nothing")
    end
    return table.concat(lines, "\n\n")
end

describe("the words of a text", function()
    it("are alike in lower case, as plurals and within marks", function()
        assert.same({ "price", "of", "two", "class" }, words.split "Prices, of “Two” CLASS!")
        assert.same({ "größe", "äpfel", "москва" }, words.split "GRÖßE – Äpfel «МОСКВА»")
    end)

    it("are pairs of characters where there are no spaces", function()
        assert.same({ "日本", "本語" }, words.split "日本語。")
        assert.same({ "東", "abc" }, words.split "東abc")
    end)
end)

describe("the blocks of a text", function()
    it("are its paragraphs, each with the headings above it", function()
        assert.same({ "a\nb", "c", "# H\n\n## I\n\nd", "# J\ne" },
            blocks.split("a\nb\n\n \n\nc\n\n# H\n\n## I\n\nd\n# J\ne\n", LARGE))
    end)

    it("are code blocks with the empty lines in them", function()
        assert.same({ "a", "```lua\nx\n\ny\n```", "b", "~~~\n```\n\nz\n~~~", "c" },
            blocks.split("a\n\n```lua\nx\n\ny\n```\nb\n\n~~~\n```\n\nz\n~~~\n\nc", LARGE))
    end)

    it("are whole tables and code blocks, also long ones", function()
        local table_of = "| a | b |\n" .. ("| c | d |\n"):rep(500) .. "| e | f |"
        local code = "```\n" .. ("some code\n\n"):rep(500) .. "```"
        assert.same({ table_of, code }, blocks.split(table_of .. "\n\n" .. code, LARGE))
    end)

    it("are cut when they are too long: at lines, sentences, spaces, characters", function()
        assert.same({ "aaa\nbbb", "ccc" }, blocks.split("aaa\nbbb\nccc\n", 9))
        assert.same({ "A b. C d.", "E f. G" }, blocks.split("A b. C d. E f. G", 12))
        assert.same({ "aaa bbb", "ccc ddd" }, blocks.split("aaa bbb ccc ddd", 9))
        assert.same({ "éé", "éé", "é" }, blocks.split("ééééé", 5))
        assert.same({ "é", "é" }, blocks.split("éé", 2))
    end)

    it("are none of an empty text", function()
        assert.same({}, blocks.split("", LARGE))
        assert.same({}, blocks.split("\n \n", LARGE))
    end)
end)

describe("the passages for a question", function()
    it("are the whole text when it is short enough", function()
        local text = filler(10)
        assert.same({ text, false }, { passages.cut(text, "what?", #text) })
    end)

    it("are the beginning and what has the question's words, in the text's order", function()
        local text = "# The shop\n\n" .. filler(200) .. "\n\nA golden pear costs 12 euros.\n\n"
            .. filler(200) .. "\n\nThe golden pear is sold on Mondays.\n\n" .. filler(200)
        local cut, is_cut = passages.cut(text, "What does a golden pear cost?", 400)
        assert.is_true(is_cut)
        assert.is_true(#cut <= 400)
        assert.is_truthy(cut:find("^# The shop"))
        local costs = cut:find("A golden pear costs 12 euros.", 1, true)
        local sold = cut:find("The golden pear is sold on Mondays.", 1, true)
        assert.is_true(costs < sold)
        assert.is_truthy(cut:find("\n\n[…]\n\nA golden pear", 1, true))
    end)

    it("prefer rare words to common ones", function()
        local text = filler(300, "pears") .. "\n\nOne quince is here.\n\n" .. filler(300, "pears")
        local cut = passages.cut(text, "pears and a quince", 300)
        assert.is_truthy(cut:find("One quince is here.", 1, true))
    end)

    it("never take more than the limit, whatever the text is", function()
        local texts = { ("x"):rep(5000), ("é"):rep(5000), ("a b\n"):rep(2000), ("\n\na"):rep(5000),
            "```\n" .. ("a\n\n"):rep(3000), ("| a |\n"):rep(2000), ("# h\n"):rep(2000) }
        for _, text in ipairs(texts) do
            for _, max_bytes in ipairs { 30, 100, 1000, 4999 } do
                local cut, is_cut = passages.cut(text, "a question", max_bytes)
                assert.is_true(is_cut)
                assert.is_true(#cut <= max_bytes and #cut > 0)
                assert.is_nil(cut:find "^[\128-\191]")
            end
        end
    end)

    it("are the best ones first where a few are wanted, and none without a common word", function()
        local text = "Pears are green.\n\nA pear, a pear: pears!\n\nApples are red."
        assert.same({ "A pear, a pear: pears!", "Pears are green." },
            passages.best(text, "pear", 2))
        assert.same({}, passages.best(text, "quince", 2))
    end)

    it("are all of a text that has no more, in whatever words it is asked about", function()
        assert.same({ "Birnen sind grün." }, passages.best("Birnen sind grün.", "pear", 2))
    end)
end)
