-- SPDX-License-Identifier: MIT
--
-- luabatch from the outside: a process in a folder of the test's own, with its exit code and what
-- it printed. A spec calls start before and finish after each test.

local shell = {}

local folder

local function quote(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

function shell.start()
    local pipe = assert(io.popen "mktemp -d")
    folder = pipe:read "*l"
    pipe:close()
end

function shell.finish()
    os.execute("rm -rf " .. quote(folder))
end

--- The path of a name in this test's folder.
function shell.path(name)
    return folder .. "/" .. name
end

function shell.write(name, text)
    local file = assert(io.open(shell.path(name), "wb"))
    file:write(text)
    file:close()
end

--- What is in a file; nil where there is none.
function shell.read(name)
    local file = io.open(shell.path(name), "rb")
    local text = file and file:read("*a")
    if file then
        file:close()
    end
    return text
end

--- Runs a shell command in the folder; returns its exit code, output and errors.
function shell.run(command)
    os.execute(("exec 2>/dev/null; cd %s; (%s) >out 2>err; echo $? >code"):format(
        quote(folder), command))
    return tonumber(shell.read("code")), shell.read("out"), shell.read("err")
end

function shell.luabatch(arguments)
    return shell.run("luabatch " .. arguments)
end

--- Whether a program is installed.
function shell.has(program)
    local pipe = assert(io.popen("command -v " .. program))
    local path = pipe:read("*l")
    pipe:close()
    return path ~= nil
end

--- Whether a command of the shell ends with 0.
function shell.succeeds(command)
    local pipe = assert(io.popen(("(%s) >/dev/null 2>&1 </dev/null; echo $?"):format(command)))
    local code = pipe:read("*l")
    pipe:close()
    return code == "0"
end

shell.quote = quote

return shell
