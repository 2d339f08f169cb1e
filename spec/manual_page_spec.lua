-- SPDX-License-Identifier: MIT
--
-- The manual page says what --help says, and is one that man can read.

local shell = require "spec.support.shell"

local SECTIONS = {
    "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXIT STATUS", "FILES", "ENVIRONMENT",
    "EXAMPLES",
}

local page

-- The page as it is read: without the marks of fonts and the escapes of hyphens.
local function readable(text)
    return (text:gsub("\\f[BIR]", ""):gsub("\\&", ""):gsub("\\%-", "-"))
end

before_each(function()
    shell.start()
    local code, err
    code, page, err = shell.luabatch "manual"
    assert.same({ 0, "" }, { code, err })
end)
after_each(shell.finish)

-- The lines of --help below a title: {first word of the line, …}.
local function words_below(help, title)
    local words = {}
    local block = (help .. "\n"):match("\n" .. title .. ":\n(.-)\n\n") or ""
    for word in ("\n" .. block):gmatch("\n   ([^ ,\n]+)") do
        words[#words + 1] = word
    end
    return words
end

describe("the manual page", function()
    it("has the sections that one looks for, in their order", function()
        local found = {}
        for title in page:gmatch("\n%.SH ([^\n]+)") do
            found[#found + 1] = title
        end
        assert.same(SECTIONS, found)
    end)

    it("has every command with each of its options", function()
        local _, help = shell.luabatch "--help"
        local commands = words_below(help, "Commands")
        assert.is_true(#commands >= 6)
        for _, command in ipairs(commands) do
            local part = readable(page):match("\n%.SS luabatch " .. command .. "\n(.-)\n%.S")
            assert.is_string(part, command)
            local _, command_help = shell.luabatch(command .. " --help")
            for _, option in ipairs(words_below(command_help, "Options")) do
                assert.is_truthy(part:find("\n" .. option, 1, true), command .. " " .. option)
            end
        end
    end)

    it("is made without a fault that mandoc knows", function()
        if not shell.has "mandoc" then
            return pending "mandoc is not installed"
        end
        shell.write("luabatch.1", page)
        assert.same({ 0, "", "" }, { shell.run "mandoc -T lint -W error luabatch.1" })
    end)

    it("is the same on every day", function()
        assert.match('^%.TH LUABATCH 1 "" "batch %d', page)
    end)
end)

describe("make install", function()
    local function make(target)
        local code, _, err = shell.run(("make -s -C %s %s DESTDIR=%s PREFIX=/usr"):format(
            shell.quote(os.getenv "PWD"), target, shell.quote(shell.path "root")))
        assert.same({ 0, "" }, { code, err })
    end

    local function installed()
        local _, out = shell.run("cd root/usr/share && find . -type f -not -path './lua/*' | sort")
        return out
    end

    it("puts the manual page and the completions where they are looked for, and takes them away",
        function()
            make "install"
            assert.equal("./bash-completion/completions/luabatch\n"
                .. "./fish/vendor_completions.d/luabatch.fish\n"
                .. "./man/man1/luabatch.1\n"
                .. "./zsh/site-functions/_luabatch\n", installed())
            assert.equal(page, shell.read "root/usr/share/man/man1/luabatch.1")
            make "uninstall"
            assert.equal("", installed())
        end)
end)
