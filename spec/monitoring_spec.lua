-- SPDX-License-Identifier: MIT
--
-- The dashboard and the alerts that operators start from: they ask for metrics that there are, in
-- expressions that Prometheus reads, and the alerts fire when they should.

local cjson = require "cjson"
local json = require "batch.json"
local metrics = require "batch.metrics"
local promtool = require "spec.support.promtool"

local ALERTS = "examples/alerts.yml"
local ALERTS_TEST = "spec/fixtures/alerts_test.yml"
local DASHBOARD = "examples/grafana.json"

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

-- Every name that a scrape may have: of a histogram, those of its parts.
local function scraped_names()
    local names = {}
    for _, metric in ipairs(metrics.METRICS) do
        if metric.type == "histogram" then
            for _, part in ipairs { "_bucket", "_sum", "_count" } do
                names[metric.name .. part] = true
            end
        else
            names[metric.name] = true
        end
    end
    return names
end

local function unknown_names(text)
    local known, unknown = scraped_names(), {}
    for name in text:gmatch("%f[%w_]batch_[%w_]+") do
        if not known[name] then
            unknown[#unknown + 1] = name
        end
    end
    return unknown
end

local function expressions(dashboard)
    local found = {}
    for _, panel in ipairs(dashboard.panels) do
        for _, target in ipairs(panel.targets) do
            found[#found + 1] = target.expr
        end
    end
    return found
end

local function need_promtool()
    if not promtool.is_here then
        pending("needs promtool")
    end
end

describe("the dashboard", function()
    local dashboard = cjson.decode(read(DASHBOARD))

    it("asks for metrics that there are, and for every one", function()
        local text = table.concat(expressions(dashboard), "\n")
        assert.same({}, unknown_names(text))
        local missing = {}
        for _, metric in ipairs(metrics.METRICS) do
            if not text:find(metric.name, 1, true) then
                missing[#missing + 1] = metric.name
            end
        end
        assert.same({}, missing)
    end)

    it("takes its data source, jobs and instances from variables", function()
        local names = {}
        for i, variable in ipairs(dashboard.templating.list) do
            names[i] = variable.name
            assert.same({}, unknown_names(variable.definition or ""))
        end
        assert.same({ "datasource", "job", "instance" }, names)
        for _, panel in ipairs(dashboard.panels) do
            for _, target in ipairs(panel.targets) do
                assert.equal("${datasource}", target.datasource.uid)
                assert.matches('job=~"$job", instance=~"$instance"', target.expr, 1, true)
            end
        end
    end)

    it("gives every panel its place, its number and a title of its own", function()
        local taken = {}
        local function take(key)
            assert.is_nil(taken[key], key)
            taken[key] = true
        end
        for _, panel in ipairs(dashboard.panels) do
            take("id " .. panel.id)
            take("title " .. panel.title)
            local place = panel.gridPos
            for x = place.x, place.x + place.w - 1 do
                for y = place.y, place.y + place.h - 1 do
                    take(("place %d, %d"):format(x, y))
                end
            end
            assert.is_true(place.x + place.w <= 24)
        end
    end)

    it("has expressions that Prometheus reads", function()
        need_promtool()
        local rules = { "groups: [{name: dashboard, rules: [" }
        for i, expression in ipairs(expressions(dashboard)) do
            local plain = expression:gsub("%$__rate_interval", "5m"):gsub("%$%l+", ".*")
            rules[#rules + 1] = ("{record: 'dashboard:%d', expr: %s},"):format(i,
                json.encode(plain))
        end
        rules[#rules + 1] = "]}]"
        local path = os.tmpname()
        local file = assert(io.open(path, "w"))
        file:write(table.concat(rules, "\n"))
        file:close()
        local output, is_content = promtool.run("check rules " .. path)
        os.remove(path)
        assert.is_true(is_content, output)
    end)
end)

describe("the alerts", function()
    local alerts = read(ALERTS)

    local function names_in(text, pattern)
        local names = {}
        for name in text:gmatch(pattern) do
            names[name] = true
        end
        return names
    end

    it("ask for metrics that there are", function()
        assert.same({}, unknown_names(alerts))
    end)

    it("are rules that Prometheus reads", function()
        need_promtool()
        local output, is_content = promtool.run("check rules " .. ALERTS)
        assert.is_true(is_content, output)
    end)

    it("are all tested", function()
        assert.same(names_in(alerts, "%- alert: (%w+)"),
            names_in(read(ALERTS_TEST), "%- alertname: (%w+)\n"))
    end)

    it("fire when they should, and not before", function()
        need_promtool()
        local output, is_content = promtool.run("test rules " .. ALERTS_TEST)
        assert.is_true(is_content, output)
    end)
end)
