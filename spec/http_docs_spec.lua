-- SPDX-License-Identifier: MIT
--
-- The manual of the HTTP API, held against the API: each request of it is made and answered as it
-- says, and its tables are those of the code.

local answers = require "batch.api.answers"
local callers = require "spec.support.tokens"
local config = require "batch.config"
local fresh = require "spec.support.fresh"
local limits = require "batch.server.limits"
local make_certificate = require "spec.support.certificate"
local routes = require "batch.api.routes"
local service = require "spec.support.service"

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

local manual = read "docs/http.md"

-- The indented blocks, without their indentation.
local function blocks()
    local found, block = {}, nil
    for line in (manual .. "\n"):gmatch "([^\n]*)\n" do
        local code = line:match "^    (.*)$"
        if code then
            block = block and block .. "\n" .. code or code
        elseif block then
            found[#found + 1], block = block, nil
        end
    end
    return found
end

-- The requests: the command, and the status and body that it is answered with. Blocks behind an
-- answer that begin with a field of an event belong to it.
local function examples()
    local list = {}
    for _, block in ipairs(blocks()) do
        local status, body = block:match "^(%d%d%d) (.*)$"
        local last = list[#list]
        if block:find "^curl " then
            list[#list + 1] = { command = block }
        elseif status then
            last.status, last.body = tonumber(status), body
        elseif block:find "^id: " or block:find "^event: " then
            last.body = last.body .. block
        end
    end
    return list
end

-- Without what only makes a text legible: line feeds, and the spaces behind them.
local function joined(text)
    return (text:gsub("\n%s*", ""))
end

local function pattern_of(body)
    return "^" .. joined(body):gsub("%p", "%%%0"):gsub("\226%%?\128%%?\166", ".-") .. "$"
end

-- The rows of the table whose first column has this head.
local function rows(head)
    local list = {}
    local from = assert(manual:find("\n| " .. head .. " |", 1, true)) + 1
    for line in manual:sub(from):gmatch "([^\n]*)\n" do
        if line:sub(1, 1) ~= "|" then
            break
        end
        local cells = {}
        for cell in line:gmatch "|([^|]*)%f[|]" do
            cells[#cells + 1] = cell:match "^%s*(.-)%s*$"
        end
        list[#list + 1] = cells
    end
    return { (table.unpack or unpack)(list, 3) }
end

describe("the manual of the HTTP API", function()
    before_each(fresh.start)
    after_each(fresh.finish)

    it("has every request answered as it says", function()
        local token = callers.section("alice"):gsub("%[%[auth.token%]%]", '%0\nclass = "user"')
        local certificate, _, section = make_certificate()
        local server = service.start { more = token }
        local by_tls = service.start { more = token, server = section }
        local socket = fresh.path "http.sock"
        service.start { server = ('listen = "unix:%s"'):format(socket) }
        local places = {
            ["http://127.0.0.1:8080"] = server.base, ["https://127.0.0.1:8443"] = by_tls.base,
            ["/run/luabatch.sock"] = socket, ["/etc/luabatch/certificate.pem"] = certificate,
        }
        local id, n = "", 0
        for _, example in ipairs(examples()) do
            local command = example.command
            for place, real in pairs(places) do
                command = command:gsub(place:gsub("%p", "%%%0"), (real:gsub("%%", "%%%%")))
            end
            local pipe = assert(io.popen(("TOKEN=token-of-alice ID=%s; %s -sS --max-time 20 "
                .. "-w '\\n%%{http_code}' 2>&1"):format(id, command)))
            local body, status = pipe:read("*a"):match "^(.*)\n(%d+)$"
            pipe:close()
            assert.equal(example.status, tonumber(status), command .. "\n" .. tostring(body))
            local pattern = pattern_of(assert(example.body, command))
            assert.is_truthy(joined(body):find(pattern), command .. "\ngave " .. body)
            if id == "" then
                id = body:match '"id":"([^"]+)'
                server:await_status(id, "partial", callers.bearer "alice")
            end
            n = n + 1
        end
        assert.is_true(n > 15)
    end)

    it("shows a configuration that a server takes", function()
        local shown = {}
        for _, block in ipairs(blocks()) do
            shown[#shown + 1] = block:match "^%[.*"
        end
        local parsed = assert(config.parse(table.concat(shown, "\n")))
        assert.equal("alice", parsed.auth.token[1].caller)
    end)

    it("has every endpoint with its parameters, and no other", function()
        local expected, told = {}, {}
        for _, route in ipairs(routes.routes) do
            for _, method in ipairs(routes.METHODS) do
                local names = {}
                for i, parameter in ipairs(route[method] and route[method].parameters or {}) do
                    names[i] = "`" .. parameter.name .. "`"
                end
                if route[method] then
                    expected["`" .. method .. " " .. route.path .. "`"] = table.concat(names, ", ")
                end
            end
        end
        for _, row in ipairs(rows "request") do
            told[row[1]] = row[3]
        end
        assert.same(expected, told)
    end)

    it("has every code of an error with its status", function()
        local expected, told = {}, {}
        for code, status in pairs(answers.statuses) do
            expected["`" .. code .. "`"] = ("%d"):format(status)
        end
        for _, row in ipairs(rows "status") do
            told[row[2]] = row[1]
            assert.is_true(#row[3] > 15, row[2])
        end
        assert.same(expected, told)
    end)

    it("has the limits that there are", function()
        local all, told = limits.with(), {}
        local function kib(bytes)
            return ("%d KiB"):format(bytes / 1024)
        end
        local function seconds(number)
            return ("%d s"):format(number)
        end
        local function count(number)
            return ("%d"):format(number)
        end
        for _, row in ipairs(rows "limit") do
            told[#told + 1] = row[2]
        end
        local max_body = config.parse("").server.max_body
        assert.same({
            kib(all.request_line_bytes), kib(all.head_bytes), count(all.head_fields),
            ("`max_body` (%dMiB)"):format(max_body / 1024 ^ 2), seconds(all.head_seconds),
            seconds(all.body_seconds), seconds(all.stalled_seconds), seconds(all.idle_seconds),
            count(all.connections), count(all.streams),
        }, told)
    end)
end)
