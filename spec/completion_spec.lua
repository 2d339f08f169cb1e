-- SPDX-License-Identifier: MIT
--
-- What each shell offers for the beginning of a command line, asked of the shell itself, where it
-- is installed. The last word is the one to complete.

local shell = require "spec.support.shell"

local function write_script(name)
    local code, out = shell.luabatch("completion " .. name)
    assert.equal(0, code)
    shell.write("completion", out)
end

local function sorted_lines(text)
    local lines = {}
    for line in text:gmatch("[^\n]+") do
        lines[#lines + 1] = line
    end
    table.sort(lines)
    return lines
end

local function run_script(program, text)
    shell.write("script", text)
    local code, out, err = shell.run(program .. " script")
    assert.same({ 0, "" }, { code, err })
    return sorted_lines(out)
end

local offers = {}

-- As readline would, which splits at = as well. Outside of it compopt is an error.
local BASH = [=[
source ./completion
compopt() { :; }
COMP_WORDS=(luabatch %s) COMP_CWORD=%d
_luabatch
[[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%%s\n' "${COMPREPLY[@]}"
]=]

function offers.bash(words)
    local quoted = {}
    for i, word in ipairs(words) do
        quoted[i] = shell.quote(word)
    end
    return run_script("bash", BASH:format(table.concat(quoted, " "), #words))
end

local FISH = [[
source ./completion
complete -C %s | string replace -r '\t.*' '' || true
]]

function offers.fish(words)
    return run_script("fish --no-config",
        FISH:format(shell.quote("luabatch " .. table.concat(words, " "))))
end

-- zsh completes on a terminal only, and there its compadd is made to tell what it is given.
local ZSH = [=[
zmodload zsh/zpty
zpty z "TERM=dumb zsh -f -i"
zpty -w z "source ./asking"
repeat 500; do [[ -e ready ]] && break; sleep 0.02; done
zpty -n -w z $'\x14'
repeat 500; do [[ -e asked ]] && break; sleep 0.02; done
zpty -d z
cat offers
]=]

local ZSH_ASKING = [=[
autoload -U compinit
compinit -u -D
source ./completion
compadd() {
    if [[ ${*[(I)-[OAD]*]} -gt 0 ]]; then
        builtin compadd "$@"
        return
    fi
    local -a found
    builtin compadd -O found "$@"
    [[ $#found -eq 0 ]] || print -l -- $found >>offers
    builtin compadd "$@"
}
ask() {
    BUFFER=%s CURSOR=$#BUFFER
    zle list-choices
    touch asked
}
zle -N ask
bindkey '^T' ask
touch offers ready
]=]

function offers.zsh(words)
    os.execute(("cd %s && rm -f offers asked ready"):format(shell.quote(shell.path "")))
    shell.write("asking",
        ZSH_ASKING:format(shell.quote("luabatch " .. table.concat(words, " "))))
    return run_script("zsh -f", ZSH)
end

local COMMANDS = "backup cancel check completion list manual purge results run serve status submit "
    .. "watch"

-- Why a shell cannot be asked here; nil if it can.
local function obstacle(name)
    if not shell.has(name) then
        return name .. " is not installed"
    elseif name == "zsh" and not shell.succeeds "zsh -fc 'zmodload zsh/zpty && zpty z true'" then
        return "zsh completes on a terminal only, and there are no pseudo terminals here"
    end
end

for _, name in ipairs { "bash", "fish", "zsh" } do
    describe("completion in " .. name, function()
        local why_not = obstacle(name)
        if why_not then
            pending(why_not)
            return
        end

        before_each(function()
            shell.start()
            write_script(name)
        end)
        after_each(shell.finish)

        local function offer(...)
            return table.concat(offers[name] { ... }, " ")
        end

        it("offers the commands", function()
            assert.equal(COMMANDS, offer "")
            assert.equal("completion", offer "comp")

        end)

        it("offers a command's own options", function()
            assert.match("--allow", offer("run", "--"), 1, true)
            assert.equal("--json", offer("check", "--j"))
            assert.equal("", offer("check", "--a"))
        end)

        it("offers what an option may be", function()
            assert.equal("auto html links markdown meta raw text", offer("run", "--mode", ""))
            assert.equal("bash fish zsh", offer("completion", ""))
            assert.equal("queued", offer("list", "--status", "q"))
        end)

        it("offers files where files are meant, and only there", function()
            shell.write("urls.txt", "")
            assert.equal("urls.txt", offer("run", "ur"))
            assert.equal("urls.txt", offer("check", "--store", "ur"))
            assert.equal("", offer("check", "ur"))
            assert.equal("", offer("run", "--workers", "ur"))
        end)

        it("goes by the command, not by what a file is called", function()
            assert.match("--mode", offer("run", "check", "--m"), 1, true)
        end)
    end)
end

it("another shell is wrong usage", function()
    shell.start()
    local code, out, err = shell.luabatch("completion tcsh")
    shell.finish()
    assert.same({ 2, "" }, { code, out })
    assert.match("bash", err, 1, true)
end)
