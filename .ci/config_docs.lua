-- SPDX-License-Identifier: MIT
--
-- Writes what is made from the table of fields: the reference of the configuration, and the example
-- of a file. Run by make docs; a spec fails when they are stale.

local files = {
    ["docs/configuration.md"] = require("batch.config_reference").markdown(),
    ["examples/luabatch.toml"] = require("batch.config_text").toml(),
}

for path, text in pairs(files) do
    local file = assert(io.open(path, "wb"))
    assert(file:write(text))
    assert(file:close())
end
