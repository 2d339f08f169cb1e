-- SPDX-License-Identifier: MIT
--
-- PDF documents: their text, the option pages, and those that cannot be read.

local child = require "batch.child"
local pdf = require "batch.pdf"
local cancelled = require "spec.support.cancelled"
local interpreter = require "spec.support.interpreter"
local make = require("spec.support.pdf").make
local shell = require "spec.support.shell"

local RAW_HINT = "mode 'raw' gives the bytes as they are"
local PAGES_HINT = "pages are named as in '1-3,7,10-', '-3' are the first three"

local function numbered(n)
    local texts = {}
    for i = 1, n do
        texts[i] = "page " .. i
    end
    return make(texts)
end

-- The numbers of the pages that are in a text.
local function numbers_in(text)
    local numbers = {}
    for number in text:gmatch("page (%d+)") do
        numbers[#numbers + 1] = number
    end
    return table.concat(numbers, " ")
end

local function refusal(bytes, pages, ctx)
    local text, message, hint = pdf.text(bytes, pages, ctx)
    assert.is_nil(text)
    return { message, hint }
end

describe("the text of a PDF", function()
    it("is that of all pages, in order, with a blank line between them", function()
        local text, meta = pdf.text(make { "one\nand a line", "two", "three" })
        assert.same("one\nand a line\n\ntwo\n\nthree", text)
        assert.same({ pages_total = 3 }, meta)
    end)

    it("is UTF-8", function()
        assert.same("caf\195\169 \226\130\172", (pdf.text(make { "caf\233 \128" })))
    end)

    it("leaves out pages without any", function()
        assert.same("one\n\nthree", (pdf.text(make { "one", false, "three" })))
    end)

    it("comes with the title", function()
        local _, meta = pdf.text(make({ "one" }, " On  PDF (1) "))
        assert.same({ pages_total = 1, title = "On  PDF (1)" }, meta)
    end)

    it("comes with the number of pages, whatever the title pretends", function()
        local _, meta = pdf.text(make({ "one", "two" }, "x\nPages:          99\n"))
        assert.same(2, meta.pages_total)
    end)

    it("is found behind blanks and a byte order mark", function()
        assert.same("one", (pdf.text("\239\187\191\r\n" .. make { "one" })))
    end)

    it("is found though junk follows the document", function()
        assert.same("one", (pdf.text(make { "one" } .. ("<p>junk</p>\n"):rep(50))))
    end)

    it("of a long document is whole", function()
        local text, meta = pdf.text(numbered(400))
        assert.same(400, meta.pages_total)
        assert.matches("^page 1\n\npage 2\n\n.*\n\npage 400$", text)
    end)
end)

describe("pages", function()
    local document = numbered(12)

    local choices = {
        ["1"] = "1", ["12"] = "12", ["2-4"] = "2 3 4", ["5-5"] = "5", ["10-"] = "10 11 12",
        ["-3"] = "1 2 3", ["12-"] = "12", ["-12"] = "1 2 3 4 5 6 7 8 9 10 11 12",
        ["1-3,7,10-"] = "1 2 3 7 10 11 12", ["007"] = "7",
    }
    for option, expected in pairs(choices) do
        it(("'%s' are %s"):format(option, expected), function()
            assert.same(expected, numbers_in((pdf.text(document, option))))
        end)
    end

    it("may be named with spaces between", function()
        assert.same("1 2 3 7", numbers_in((pdf.text(document, " 1 - 3 ,\t7 "))))
    end)

    it("come in the document's order, and each once", function()
        assert.same("1 2 3 4 8", numbers_in((pdf.text(document, "8,2-4,3,1-2,8"))))
    end)

    it("have no more text together than a document may have", function()
        local run, page = child.run, ("x"):rep(2 ^ 20)
        finally(function()
            child.run = run
        end)
        function child.run(spec, ctx)
            if spec.program == "pdftotext" then
                return { status = 0, output = page, errors = "" }
            end
            return run(spec, ctx)
        end
        local odd = {}
        for number = 1, 129, 2 do
            odd[#odd + 1] = tostring(number)
        end
        assert.same({ "these pages have more than 64 MiB of text",
            "the option 'pages' takes a part of the document" },
            refusal(numbered(130), table.concat(odd, ",")))
    end)

    it("come with the number of all pages", function()
        local _, meta = pdf.text(document, "2")
        assert.same(12, meta.pages_total)
    end)

    for _, option in ipairs { "13", "13-", "12-13", "1,40", "-13", "99999999999999999999" } do
        it(("'%s' of twelve are out of range, which the hint says"):format(option), function()
            local part = option:match("[^,]*$")
            assert.same({ ("pages: '%s' is out of range"):format(part),
                "the document has 12 pages" }, refusal(document, option))
        end)
    end

    it("out of range of a single page are told so", function()
        assert.same("the document has 1 page", refusal(numbered(1), "2")[2])
    end)

    local mistakes = {
        { "x", "pages: 'x' is neither a page nor a range" },
        { "1,x-3", "pages: 'x-3' is neither a page nor a range" },
        { "1--3", "pages: '1--3' is neither a page nor a range" },
        { "1 2", "pages: '1 2' is neither a page nor a range" },
        { "1-2-3", "pages: '1-2-3' is neither a page nor a range" },
        { "1.5", "pages: '1.5' is neither a page nor a range" },
        { "-", "pages: '-' is neither a page nor a range" },
        { "1,,2", "pages: a part is empty" },
        { "1,", "pages: a part is empty" },
        { " ", "pages: a part is empty" },
        { "0", "pages: '0': the first page is 1" },
        { "0-3", "pages: '0-3': the first page is 1" },
        { "-0", "pages: '-0': the first page is 1" },
        { ("1,"):rep(3000), "pages must be at most 4096 bytes, got 6000" },
    }
    for _, mistake in ipairs(mistakes) do
        it(("'%s' are refused"):format(mistake[1]:sub(1, 10)), function()
            assert.same({ mistake[2], PAGES_HINT }, refusal(document, mistake[1]))
            assert.same({ nil, mistake[2], PAGES_HINT }, { pdf.check_pages(mistake[1]) })
        end)
    end

    it("that run backwards are refused with what was meant", function()
        assert.same({ "pages: '7-3' runs backwards", "did you mean '3-7'?" },
            refusal(document, "7-3"))
    end)

    it("are checked before there is a document", function()
        assert.is_true(pdf.check_pages("1-3,7,10-"))
        assert.same({ nil, "pages must be a string, got a number", "such as '1-3,7,10-'" },
            { pdf.check_pages(3) })
    end)
end)

describe("a PDF that cannot be read", function()
    before_each(shell.start)
    after_each(shell.finish)

    -- What qpdf makes of a document.
    local function encrypted(user)
        shell.write("plain.pdf", make { "secret" })
        local command = "qpdf --encrypt '%s' owner 256 --extract=n -- plain.pdf locked.pdf"
        assert.same(0, (shell.run(command:format(user))))
        return shell.read("locked.pdf")
    end

    it("is one that is encrypted", function()
        assert.same({ "the PDF is encrypted",
            "it cannot be read without its password; " .. RAW_HINT }, refusal(encrypted "user"))
    end)

    it("is not one that opens without a password", function()
        assert.same("secret", (pdf.text(encrypted "")))
    end)

    it("is one that is cut off, wherever", function()
        local whole = numbered(20)
        for length = 10, #whole - 10, math.floor(#whole / 15) do
            assert.same({ "the PDF is cut off: its end is missing", RAW_HINT },
                refusal(whole:sub(1, length)))
        end
    end)

    it("is told at once, however large it is", function()
        local begun = os.clock()
        assert.same("the PDF is cut off: its end is missing",
            refusal("%PDF-1.4\n" .. (" 1 "):rep(2 ^ 22))[1])
        assert.is_true(os.clock() - begun < 5)
    end)

    it("is one that was added to, and cut off there", function()
        local whole = numbered(3)
        assert.same("the PDF is cut off: its end is missing",
            refusal(whole .. "9 0 obj\n<< /Length 1000 >>\nstream\nxxx")[1])
    end)

    it("is one that is damaged", function()
        local document = "%PDF-1.4\n" .. ("\255\0x"):rep(1000) .. "\nstartxref\n9\n%%EOF\n"
        assert.same({ "the PDF is damaged", RAW_HINT }, refusal(document))
    end)

    it("is one without pages", function()
        assert.same({ "the PDF is damaged", RAW_HINT }, refusal(make {}))
    end)

    it("is one of images", function()
        assert.same({ "the PDF has no text", "its pages may be images; it would need OCR" },
            refusal(make { false, false }))
    end)

    it("is one whose pages that were asked for are images", function()
        assert.same({ "these pages of the PDF have no text",
            "its pages may be images; it would need OCR" },
            refusal(make { "one", false }, "2"))
    end)

    it("is content of another kind", function()
        for _, content in ipairs { "", "x", "<p>about %PDF-1.4</p>", "%PDF" } do
            assert.same({ "the content is no PDF", "the option 'pages' is for PDF documents" },
                refusal(content, "1"))
        end
    end)

    it("is any where the programs are missing", function()
        shell.write("document.pdf", numbered(1))
        shell.write("read.lua", [[
            local file = io.open("document.pdf", "rb")
            print(require("batch.pdf").text(file:read("*a")))]])
        local lua = io.popen("command -v " .. interpreter):read("*l")
        local _, output, errors = shell.run("PATH=/nonexistent " .. lua .. " read.lua")
        assert.same("nil\tthe program 'pdfinfo' is missing\tinstall the package 'poppler-utils'\n",
            output, errors)
    end)

    it("is any when the target's time is up, or the fetch is cancelled", function()
        assert.same("timed out", refusal(numbered(1), nil, { deadline = os.time() - 1 })[1])
        assert.same("cancelled", refusal(numbered(1), nil, cancelled.ctx())[1])
    end)
end)
