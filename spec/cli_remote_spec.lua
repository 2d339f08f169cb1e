-- SPDX-License-Identifier: MIT
--
-- `luabatch submit`, `status`, `results`, `cancel`, `watch` and `list` against a server, as users
-- see them: processes with files, exit codes and signals.

local cjson = require "cjson"
local eventually = require "spec.support.eventually"
local host = require "spec.support.host"
local shell = require "spec.support.shell"

local TOKEN = "a-token-of-alice"
local UUID = "^%x+%-%x+%-7%x+%-%x+%-%x+\n$"

local server

local function serve(words)
    server = host.start(("store=%s token=%s %s"):format(shell.path "host.db", TOKEN, words or ""))
end

-- Runs a command against the server, with the token in the environment.
local function luabatch(arguments)
    return shell.run(("LUABATCH_TOKEN=%s luabatch %s --server %s"):format(
        TOKEN, arguments, server.url))
end

local function write_list(...)
    shell.write("urls.txt", table.concat({ ... }, "\n") .. "\n")
end

local function submit(arguments)
    local code, out, err = luabatch("submit " .. (arguments or "urls.txt"))
    assert.same({ 0, "" }, { code, err })
    return out:gsub("\n$", "")
end

-- Submits targets and waits for the job's end.
local function finish(...)
    write_list(...)
    local id = submit()
    luabatch("watch " .. id)
    return id
end

local function decode_lines(text)
    local values = {}
    for line in text:gmatch("[^\n]+") do
        values[#values + 1] = cjson.decode(line)
    end
    return values
end

local function idxs(text)
    local list = {}
    for i, outcome in ipairs(decode_lines(text)) do
        list[i] = outcome.idx
    end
    return list
end

before_each(function()
    shell.start()
    server = nil
end)

after_each(function()
    if server then
        server:stop()
    end
    shell.finish()
end)

describe("luabatch submit", function()
    before_each(function() serve() end)

    it("prints the id of the job", function()
        write_list("http://a/", "# a comment", '{"url":"http://b/","options":{"mode":"raw"}}')
        local code, out, err = luabatch "submit urls.txt --mode text"
        assert.same({ 0, "" }, { code, err })
        assert.match(UUID, out)
        local _, lines = luabatch("results --follow " .. out:gsub("\n", ""))
        local modes = {}
        for i, outcome in ipairs(decode_lines(lines)) do
            modes[i] = outcome.options.mode
        end
        assert.same({ "text", "raw" }, modes)
    end)

    it("says when the job was known already", function()
        write_list "http://a/"
        local id = submit()
        local code, out, err = luabatch "submit urls.txt"
        assert.same({ 0, id .. "\n" }, { code, out })
        assert.match("^luabatch: known already: the job is %l+\n$", err)
    end)

    it("waits for the end if asked to, and ends as the job does", function()
        write_list("http://a/", "http://missing/")
        local code, out, err = luabatch "submit urls.txt --wait"
        assert.equal(1, code)
        assert.match(UUID, out)
        assert.match("luabatch: partial: 1 done, 1 failed of 2\n$", err)
        assert.equal(0, (luabatch "submit http://b/ --wait"))
    end)

    it("answers machines in JSON", function()
        local _, out, err = luabatch "submit http://a/ --json"
        assert.equal("", err)
        local answer = cjson.decode(out)
        assert.same({ false, 1 }, { answer.reused, answer.targets_total })
    end)

    it("names the line that is wrong, before anything is sent", function()
        shell.write("urls.txt", 'http://a/\n\n{"url":"http://b/"\n')
        local code, out, err = shell.run "luabatch submit urls.txt --server http://127.0.0.1:1"
        assert.same({ 2, "" }, { code, out })
        assert.match("^luabatch: urls.txt:3: not JSON", err)
    end)

    it("names the line of which the server says that it is wrong", function()
        shell.write("one.txt", "http://a/\n# a comment\n")
        shell.write("two.txt", "\nhttp://forbidden/\n")
        local code, _, err = luabatch "submit one.txt two.txt"
        assert.equal(2, code)
        assert.match("^luabatch: two.txt:2: not this one %(invalid%)\n$", err)
    end)

    it("leaves callers to the token", function()
        local code, _, err = luabatch "submit http://a/ --caller bob"
        assert.equal(2, code)
        assert.match("--caller is for a store", err, 1, true)
    end)
end)

describe("luabatch status", function()
    before_each(function() serve() end)

    it("shows the job and why targets failed", function()
        local id = finish("http://a/", "http://missing/1", "http://missing/2")
        local code, out, err = luabatch("status " .. id)
        assert.same({ 1, "" }, { code, err })
        assert.match("^id +" .. id:gsub("%-", "%%-") .. "\nstatus +partial\n", out)
        assert.match("\ntargets +3 of 3, 2 failed\ncaller +alice\nclass +user\n", out)
        assert.match("\nfinished +%d+%-%d%d%-%d%d %d%d:%d%d:%d%d UTC\n", out)
        assert.match("\n +2 x  404 not found\n +first at idx 1: http://missing/1\n"
            .. " +hint: look elsewhere\n$", out)
        assert.is_nil(out:find("\27", 1, true))
    end)

    it("ends with 0 for a job that goes on", function()
        local code, out = luabatch("status " .. submit "http://stuck/")
        assert.equal(0, code)
        assert.match("targets +0 of 1\n", out)
    end)

    it("prints the job for machines", function()
        local id = finish("http://a/")
        local code, out = luabatch("status --json " .. id)
        local job = cjson.decode(out)
        assert.same({ 0, id, "done", 1 }, { code, job.id, job.status, job.targets_done })
    end)

    it("ends with 1 for an id that is unknown, whatever it looks like", function()
        local unknown = "01a22da6-39da-7f75-aa57-6cea1c4c4ce0"
        for _, id in ipairs { "nonsense", "'../x?y=1 %'", unknown } do
            assert.same({ 1, "", "luabatch: unknown job (not_found); "
                .. "luabatch list shows the jobs that there are\n" },
                { luabatch("status " .. id) })
        end
    end)
end)

describe("luabatch results", function()
    it("prints the outcomes, from a given one on", function()
        serve()
        local id = finish("http://a/", "http://bytes/", "http://missing/")
        local code, out, err = luabatch("results " .. id)
        assert.same({ 1, "" }, { code, err })
        assert.same({ 0, 1, 2 }, idxs(out))
        assert.same({ content = "/wA=", encoding = "base64", meta = {} },
            decode_lines(out)[2].result)
        local _, rest = luabatch("results --from 2 " .. id)
        assert.same({ 2 }, idxs(rest))
    end)

    it("follows a job up to its end", function()
        serve()
        local id = submit "http://slow/1 http://slow/2 http://slow/3"
        local code, out = luabatch("results --follow " .. id)
        assert.equal(0, code)
        assert.same({ 0, 1, 2 }, idxs(out))
    end)

    it("writes to a file, which an unknown id leaves alone", function()
        serve()
        local id = finish("http://a/")
        shell.write("out.jsonl", "of last week")
        assert.equal(1, (luabatch "results nonsense -o out.jsonl"))
        assert.equal("of last week", shell.read "out.jsonl")
        assert.same({ 0, "", "" }, { luabatch("results -o out.jsonl " .. id) })
        assert.same({ 0 }, idxs(shell.read "out.jsonl"))
    end)

    it("asks again behind the last whole line when the answer breaks off", function()
        serve "cut=1"
        local id = submit "http://slow/1 http://slow/2 http://slow/3"
        local code, out, err = luabatch("results --follow " .. id)
        assert.equal(0, code)
        assert.same({ 0, 1, 2 }, idxs(out))
        assert.match("the answer broke off", err, 1, true)
    end)

    it("refuses a number that is none", function()
        serve()
        local code, _, err = luabatch "results --from two nonsense"
        assert.equal(2, code)
        assert.match("--from must be an integer from 0, got 'two'", err, 1, true)
    end)
end)

describe("luabatch cancel", function()
    before_each(function() serve() end)

    it("ends a job, once", function()
        local id = submit "http://stuck/1 http://stuck/2"
        assert.same({ 0, "cancelled\n", "" }, { luabatch("cancel " .. id) })
        assert.same({ 1, "", "luabatch: the job is cancelled already (already_finished); "
            .. "luabatch results prints the outcomes that it has\n" },
            { luabatch("cancel " .. id) })
        assert.equal(1, (luabatch("watch " .. id)))
    end)

    it("ends with 1 for an unknown id", function()
        assert.equal(1, (luabatch "cancel nonsense"))
    end)
end)

describe("luabatch watch", function()
    it("goes on when the server breaks off and comes back", function()
        serve "scheme=unix"
        write_list("http://a/", "http://stuck/", "http://b/")
        local id = submit()
        os.execute(("cd %s; (LUABATCH_TOKEN=%s luabatch watch --json %s --server %s >watched "
            .. "2>said; echo $? >ended) &"):format(shell.quote(shell.path ""), TOKEN, id,
            server.url))
        eventually(function()
            return (shell.read "host.db.requests"):find("/events?results=false", 1, true)
        end, 20)
        server:stop()
        eventually(function() return (shell.read "said"):find "trying again" end, 20)
        serve "scheme=unix"
        assert.equal(0, (luabatch("cancel " .. id)))
        eventually(function() return (shell.read "ended" or "") ~= "" end, 30)
        assert.equal("1\n", shell.read "ended")
        assert.equal("cancelled", cjson.decode(shell.read "watched").status)
    end)

    it("counts no outcome twice", function()
        serve "cut=1"
        local id = submit "http://slow/1 http://slow/2 http://slow/3 http://missing/"
        local code, _, err = luabatch("watch " .. id)
        assert.equal(1, code)
        assert.match("partial: 3 done, 1 failed of 4\n$", err)
    end)

    it("ends with 130 on Ctrl-C, and the job goes on", function()
        serve()
        local id = submit "http://stuck/"
        local code, out, err = shell.run(("luabatch watch %s --token %s --server %s & "
            .. "until grep -q events host.db.requests; do sleep 0.05; done; sleep 0.2; "
            .. "kill -INT $!; wait $!"):format(id, TOKEN, server.url))
        assert.same({ 130, "" }, { code, out })
        assert.match("luabatch: the job goes on\n$", err)
        local _, status = luabatch("status --json " .. id)
        assert.equal("running", cjson.decode(status).status)
    end)
end)

describe("luabatch list", function()
    before_each(function() serve() end)

    it("shows the jobs, newest first, in columns", function()
        local first, second = finish "http://a/", finish("http://b/", "http://missing/")
        local code, out, err = luabatch "list"
        assert.same({ 0, "" }, { code, err })
        local title, one, two = out:match("^([^\n]*)\n([^\n]*)\n([^\n]*)\n$")
        assert.match("^ID +STATUS +TARGETS +FAILED +RESULTS +CREATED %(UTC%) +CALLER$", title)
        assert.equal(second, one:match("^(%S+)  partial +2/2 +1 +%d+ bytes"))
        assert.equal(first, two:match("^(%S+)  done +1/1 +0 +%d+ bytes"))
        assert.equal(title:find("CALLER", 1, true), one:find("alice", 1, true))
    end)

    it("prints JSON Lines, of one status, as many as wanted", function()
        local first = finish "http://a/"
        finish "http://missing/"
        local third = finish "http://b/"
        local function ids(arguments)
            local list = {}
            for i, job in ipairs(decode_lines(select(2, luabatch("list --json " .. arguments)))) do
                list[i] = job.id
            end
            return list
        end
        assert.same({ third, first }, ids "--status done")
        assert.same({ third }, ids "--status done --limit 1")
    end)

    it("says that there is none", function()
        assert.same({ 0, "", "luabatch: there are no such jobs\n" },
            { luabatch "list --status failed" })
    end)

    it("refuses a status that is none", function()
        local code, _, err = luabatch "list --status finished"
        assert.equal(2, code)
        assert.match("'queued', 'running'", err, 1, true)
    end)
end)

describe("a server", function()
    local function list(more)
        return shell.run("luabatch list " .. more)
    end

    it("that is not there ends a command with 3", function()
        local code, out, err = list "--server http://127.0.0.1:1"
        assert.same({ 3, "" }, { code, out })
        assert.equal("luabatch: cannot reach http://127.0.0.1:1: connection refused\n", err)
        assert.equal(3, (list "--server unix:/nowhere/batch.sock"))
        assert.equal(3, (list "--server http://nowhere.invalid"))
    end)

    it("whose certificate nobody vouches for is not trusted", function()
        serve "scheme=https"
        local code, _, err = list("--server " .. server.url)
        assert.equal(3, code)
        assert.match(": certificate verify failed: self.signed certificate", err)
    end)

    it("that does not know the token means wrong usage", function()
        serve()
        for _, given in ipairs { "", " --token wrong" } do
            local code, out, err = list("--server " .. server.url .. given)
            assert.same({ 2, "" }, { code, out })
            assert.match("(unauthorized); --token or the variable LUABATCH_TOKEN", err, 1, true)
        end
        assert.equal(0, (list("--token " .. TOKEN .. " --server " .. server.url)))
    end)

    it("is found on a unix socket and below a prefix", function()
        serve "scheme=unix"
        assert.equal(0, (luabatch "list"))
        server:stop()
        serve "prefix=/batch/api"
        server.url = server.url .. "/batch/api/"
        assert.equal(0, (luabatch "list"))
    end)

    it("that is something else is told from one that refuses", function()
        for words, sentence in pairs {
            ["answer=200"] = "answered without JSON, which no batch server does",
            ["answer=302"] = "answered with status 302, which no batch server does",
            ["answer=404"] = "answered with status 404, which no batch server does",
            ["answer=503 body='{\"error\":{\"code\":\"closing\",\"message\":\"going down\"}}'"] =
                "luabatch: going down (closing)\n",
        } do
            serve(words)
            local code, out, err = luabatch "list"
            server:stop()
            assert.same({ words, 3, "" }, { words, code, out })
            assert.match(sentence, err, 1, true)
        end
    end)

    it("is reached whatever proxy the environment names", function()
        serve()
        local code = shell.run(("http_proxy=http://127.0.0.1:1 all_proxy=http://127.0.0.1:1 "
            .. "luabatch list --token %s --server %s"):format(TOKEN, server.url))
        assert.equal(0, code)
    end)

    it("has a URL, and not a store as well", function()
        for _, arguments in ipairs {
            "--server 127.0.0.1:8080", "--server ftp://127.0.0.1/", "--server http://a:b@host/",
            "--server http://127.0.0.1 --store x.db", "--token t",
            "--server http://127.0.0.1:1 --token 'a b'",
        } do
            local code, out, err = list(arguments)
            assert.same({ arguments, 2, "" }, { arguments, code, out })
            assert.match("^luabatch", err)
        end
    end)
end)
