-- SPDX-License-Identifier: MIT
--
-- `luabatch run` from the outside: a process with files, exit codes and signals, as users see it.
-- Each spec works in a folder of its own, with a fetch module that notes what it is asked for.

local cjson = require "cjson"

local FETCH = [[
return function(target, ctx)
    local notes = assert(io.open(os.getenv("NOTES"), "a"))
    notes:write(target.url, "\n")
    notes:close()
    if target.url == os.getenv("SIGNAL_AT") then
        -- Not by os.execute, which has the process ignore SIGINT meanwhile.
        io.popen("kill -s " .. os.getenv("SIGNAL") .. " $PPID"):close()
    end
    if target.url:find("missing") then
        return nil, "404 not found", "look elsewhere"
    elseif target.url:find("defect") then
        error("a defect")
    elseif target.url:find("slow") and not ctx:sleep(0.02) then
        return nil, "cancelled"
    elseif target.url:find("bytes") then
        return "\255\0"
    end
    return { content = "of " .. target.url, meta = { status = 200 } }
end
]]

local folder

local function quote(text)
    return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function path(name)
    return folder .. "/" .. name
end

local function write(name, text)
    local file = assert(io.open(path(name), "wb"))
    file:write(text)
    file:close()
end

local function read(name)
    local file = io.open(path(name), "rb")
    if not file then
        return ""
    end
    local text = file:read("*a")
    file:close()
    return text
end

local function lines_of(text)
    local lines = {}
    for line in text:gmatch("[^\n]+") do
        lines[#lines + 1] = line
    end
    return lines
end

-- Runs a shell command in the folder; returns its exit code, output and errors.
local function shell(command)
    -- What the shell itself has to say of a killed process is nobody's concern.
    os.execute(("exec 2>/dev/null; cd %s; export NOTES=notes LUA_PATH=\"./?.lua;$LUA_PATH\"; "
        .. "(%s) >out 2>err; echo $? >code"):format(quote(folder), command))
    return tonumber(read("code")), read("out"), read("err")
end

local function luabatch(arguments)
    return shell("luabatch " .. arguments)
end

local function run(arguments)
    return luabatch("run -c config.toml " .. arguments)
end

local function decode(text)
    local outcomes = {}
    for i, line in ipairs(lines_of(text)) do
        outcomes[i] = cjson.decode(line)
    end
    return outcomes
end

-- The lines of the input that the outcomes answer, in the input's order.
local function answered(text)
    local numbers = {}
    for i, outcome in ipairs(decode(text)) do
        numbers[i] = outcome.line
    end
    table.sort(numbers)
    return numbers
end

local function count_to(n)
    local numbers = {}
    for i = 1, n do
        numbers[i] = i
    end
    return numbers
end

local function write_list(n_lines, kind)
    local lines = {}
    for i = 1, n_lines do
        lines[i] = ("http://%s/%d\n"):format(kind or "page", i)
    end
    write("urls.txt", table.concat(lines))
end

local function fetched()
    return lines_of(read("notes"))
end

-- A run that sends itself a signal from the fetch of its fortieth target.
local function interrupt(signal, arguments)
    return shell(("SIGNAL=%s SIGNAL_AT=http://slow/40 luabatch run -c config.toml %s"):format(
        signal, arguments))
end

before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    write("noting_fetch.lua", FETCH)
    write("config.toml", '[batch]\nfetch = "noting_fetch"\n')
end)

after_each(function()
    os.execute("rm -rf " .. folder)
end)

describe("luabatch run", function()
    it("prints the outcome of each line", function()
        write("urls.txt", "# two pages\nhttp://a/\n\nhttp://b/\n")
        local code, out = run "urls.txt"
        assert.equal(0, code)
        assert.same({ 2, 4 }, answered(out))
        for _, outcome in ipairs(decode(out)) do
            assert.equal("done", outcome.status)
            assert.same({ content = "of " .. outcome.url, meta = { status = 200 } }, outcome.result)
            assert.equal(1, outcome.attempts)
            assert.match("^%d+%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$", outcome.finished_at)
        end
    end)

    it("ends with 1 when a target failed, and says why", function()
        local code, out, err = run "http://a/ http://missing/"
        assert.equal(1, code)
        local failed = decode(out)[decode(out)[1].line == 2 and 1 or 2]
        assert.same({ "failed", "404 not found", "look elsewhere" },
            { failed.status, failed.error, failed.hint })
        assert.match("1 x  404 not found\n +line 2: http://missing/\n +hint: look elsewhere", err)
    end)

    it("shows where the fetch module raised, but not a hundred times", function()
        write_list(100, "defect")
        local code, out, err = run "urls.txt"
        assert.equal(1, code)
        assert.equal("internal error", decode(out)[1].error)
        assert.match("%(line %d+%): %./noting_fetch.lua:12: a defect", err)
        assert.match("further ones are not shown", err, 1, true)
        assert.equal(5, select(2, err:gsub("a defect", "")))
    end)

    it("ends with 1 when every target failed", function()
        local code = run "http://missing/1 http://missing/2"
        assert.equal(1, code)
    end)

    it("has as many workers as the configuration says, unless told otherwise", function()
        write("noting_fetch.lua", [[return { setup = function()
            local notes = assert(io.open(os.getenv("NOTES"), "a"))
            notes:write("a worker\n")
            notes:close()
        end, fetch = function(_, ctx)
            ctx:sleep(0.1) -- so that all have to help
            return "x"
        end }]])
        write_list(16)
        local function workers(config, arguments)
            write("config.toml", '[batch]\nfetch = "noting_fetch"\n' .. config)
            os.remove(path "notes")
            assert.equal(0, (run("--store :memory: urls.txt " .. arguments)))
            return #fetched()
        end
        assert.equal(8, workers("", ""))
        assert.equal(3, workers("workers = 3\n", ""))
        assert.equal(2, workers("workers = 3\n", "-j 2"))
        assert.equal(3, workers("workers = 3\n", "-j 0"))
        assert.equal(8, workers("", "-j 0"))
    end)

    it("passes the configuration's warnings on", function()
        write("config.toml", '[batch]\nfetch = "noting_fetch"\nttl = "soon"\n')
        local code, _, err = run "http://a/"
        assert.equal(0, code)
        assert.match('config.toml:3: batch.ttl = "soon" is no duration', err, 1, true)
    end)

    it("reads standard input, JSON Lines and URLs as one list", function()
        write("urls.txt", "http://a/\n")
        local code, out = shell("printf 'http://b/\\n{\"url\":\"http://c/\"}\\n' "
            .. "| luabatch run -c config.toml urls.txt - http://d/")
        assert.equal(0, code)
        assert.same({ 1, 2, 3, 4 }, answered(out))
    end)

    it("gives --mode to the targets that have none", function()
        write("urls.txt", 'http://a/\n{"url":"http://b/","options":{"mode":"text"}}\n')
        local _, out = run "urls.txt --mode raw"
        local modes = {}
        for _, outcome in ipairs(decode(out)) do
            modes[outcome.line] = outcome.options.mode
        end
        assert.same({ "raw", "text" }, modes)
    end)

    it("prints bytes as base64", function()
        local _, out = run "http://bytes/"
        assert.same({ content = "/wA=", encoding = "base64", meta = {} }, decode(out)[1].result)
    end)

    it("takes each of many equal lines as a target of its own", function()
        write("urls.txt", ("http://a/\n"):rep(100))
        local code, out = run "urls.txt"
        assert.equal(0, code)
        assert.same(count_to(100), answered(out))
        assert.equal(100, #fetched())
    end)

    it("takes lists that no server would", function()
        write_list(5000)
        local code, out = run "urls.txt"
        assert.equal(0, code)
        assert.same(count_to(5000), answered(out))
    end)

    it("keeps its results apart from everything else", function()
        local _, out, err = run "http://a/"
        assert.equal(1, #lines_of(out))
        assert.match("1 target in", err, 1, true)
        assert.is_nil(err:find("[\r\27]"))
    end)

    it("prints its summary as JSON, and nothing else, if asked to", function()
        local code, _, err = run "--json http://a/ http://missing/"
        assert.equal(1, code)
        assert.equal(1, #lines_of(err))
        local facts = cjson.decode(err)
        assert.same({ 2, 1, 1, 0 }, { facts.targets, facts.done, facts.failed, facts.pending })
        assert.equal("404 not found", facts.errors[1].error)
    end)
end)

describe("a run started again", function()
    it("prints the same outcomes and fetches nothing", function()
        write_list(100)
        local _, first = run "urls.txt"
        local code, second, err = run "urls.txt"
        assert.equal(0, code)
        assert.is_true(first == second)
        assert.equal(100, #fetched())
        assert.match("nothing was fetched", err, 1, true)
    end)

    it("leaves each outcome once in its file", function()
        write_list(100)
        for _ = 1, 2 do
            assert.equal(0, (run "urls.txt -o results.jsonl"))
            assert.same(count_to(100), answered(read("results.jsonl")))
        end
        assert.equal("", read("out"))
    end)

    it("finds its store beside the output, from any folder", function()
        write_list(10)
        shell("mkdir results")
        assert.equal(0, (run "urls.txt -o results/out.jsonl"))
        assert.is_true(#read("results/luabatch.db") > 0)
        assert.equal("", read("luabatch.db"))
    end)

    for signal, expected in pairs { INT = 130, TERM = 130, KILL = 137 } do
        it(("after SIG%s goes on where it stopped"):format(signal), function()
            write_list(300, "slow")
            assert.equal(expected, (interrupt(signal, "urls.txt -o results.jsonl -j 4")))
            local n_before = #fetched()
            assert.is_true(n_before < 300)
            local code = run "urls.txt -o results.jsonl -j 16"
            assert.equal(0, code)
            assert.same(count_to(300), answered(read("results.jsonl")))
            -- In flight were four. A killed process also loses those outcomes that its committer
            -- had not got to: at most one a job.
            local n_again = #fetched() - 300
            assert.is_true(n_again <= (signal == "KILL" and 64 or 4), n_again .. " fetched again")
        end)
    end

    it("after SIGKILL fetches nothing again that it had printed", function()
        write_list(300, "slow")
        interrupt("KILL", "urls.txt -o results.jsonl -j 4")
        local printed = decode((read("results.jsonl"):gsub("[^\n]*$", "")))
        run "urls.txt -o results.jsonl -j 4"
        local counts = {}
        for _, url in ipairs(fetched()) do
            counts[url] = (counts[url] or 0) + 1
        end
        for _, outcome in ipairs(printed) do
            assert.equal(1, counts[outcome.url])
        end
    end)

    it("after Ctrl-C says how to go on", function()
        write_list(300, "slow")
        local _, _, err = interrupt("INT", "urls.txt")
        assert.match("%d+ of 300 outcomes are in luabatch.db; the same command goes on", err)
    end)

    it("after its reader went away goes on where it stopped", function()
        write_list(300, "slow")
        shell("luabatch run -c config.toml urls.txt | head -n 1")
        local code, out = run "urls.txt"
        assert.equal(0, code)
        assert.same(count_to(300), answered(out))
        -- SIGPIPE kills as SIGKILL does.
        assert.is_true(#fetched() <= 364, #fetched() .. " fetches")
    end)

    it("with another list shares the store, but no outcomes", function()
        write_list(10)
        run "urls.txt"
        local code, out = run "http://page/1 http://page/2"
        assert.equal(0, code)
        assert.same({ 1, 2 }, answered(out))
        assert.equal(12, #fetched())
    end)
end)

describe("a wrong command line", function()
    local function refuses(arguments, ...)
        local code, out, err = luabatch(arguments)
        assert.equal("", out)
        assert.equal(2, code)
        for _, expected in ipairs { ... } do
            assert.match(expected, err, 1, true)
        end
        assert.same({}, fetched())
    end

    it("names a list that is missing", function()
        refuses("run nowhere.txt", "nowhere.txt: No such file")
    end)

    it("names a list that is empty", function()
        write("urls.txt", "# nothing yet\n\n")
        refuses("run urls.txt", "no targets in urls.txt")
        refuses("run - </dev/null", "no targets in stdin")
    end)

    it("names the line that is no JSON", function()
        write("urls.txt", 'http://a/\n{"url":"http://b/"\n')
        refuses("run -c config.toml urls.txt", "urls.txt:2: not JSON")
    end)

    it("names the line with an unknown option", function()
        write("urls.txt", 'http://a/\n\n{"url":"http://b/","options":{"mod":"raw"}}\n')
        refuses("run urls.txt", "urls.txt:3: ", "'mod'")
    end)

    it("names the line that is not UTF-8", function()
        write("urls.txt", "http://a/\nhttp://b/\255\n")
        refuses("run -c config.toml urls.txt", "urls.txt:2: url must be", "UTF-8")
    end)

    it("names a wrong number of workers", function()
        refuses("run -j many http://a/", 'workers must be an integer from 1 to 256, got "many"')
        refuses("run -j 0.5 http://a/", "workers must be an integer from 1 to 256")
    end)

    it("names a wrong network", function()
        refuses("run --allow everything http://a/", "everything")
    end)

    it("names a configuration that is missing", function()
        refuses("run -c nowhere.toml http://a/", "nowhere.toml")
    end)

    it("does not overwrite its own list or store", function()
        write("urls.txt", "http://a/\n")
        refuses("run urls.txt -o ./urls.txt", "urls.txt would be overwritten")
        refuses("run urls.txt -o luabatch.db", "luabatch.db would be overwritten")
        assert.equal("http://a/\n", read("urls.txt"))
    end)

    it("names an output that cannot be written", function()
        refuses("run http://a/ -o nowhere/out.jsonl", "cannot write nowhere/out.jsonl")
    end)

    it("is explained in two lines", function()
        refuses("", "a command is required", "Try 'luabatch --help'")
        refuses("run", "missing argument", "Try 'luabatch run --help'")
        refuses("rum", "unknown command 'rum'", "Did you mean 'run'")
        refuses("run --jobs 3 http://a/", "unknown option '--jobs'")
    end)
end)

describe("luabatch", function()
    it("ends with 3 when the store cannot be opened", function()
        local code, out, err = run "--store nowhere/batch.db http://a/"
        assert.equal(3, code)
        assert.equal("", out)
        assert.match("nowhere/batch.db", err, 1, true)
    end)

    it("ends with 3 when the store is something else", function()
        write("batch.db", ("this is no store\n"):rep(1000))
        local code, _, err = run "--store batch.db http://a/"
        assert.equal(3, code)
        assert.match("batch.db", err, 1, true)
    end)

    it("explains itself", function()
        for _, arguments in ipairs { "--help", "run --help", "run -h" } do
            local code, out, err = luabatch(arguments)
            assert.same({ 0, "" }, { code, err })
            assert.match("Usage: luabatch", out, 1, true)
            for line in out:gmatch("[^\n]+") do
                assert.is_true(#line <= 80)
            end
        end
        local _, out = luabatch "run --help"
        assert.match("\n +%-o, %-%-output OUT +Write", out)
    end)

    it("tells its version", function()
        local code, out = luabatch("--version")
        assert.equal(0, code)
        assert.match("^luabatch %d+%.%d+%.%d+\n$", out)
    end)
end)
