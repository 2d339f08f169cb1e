-- SPDX-License-Identifier: MIT
--
-- Builds the module forker for the Lua that runs the specs.

local LUA = require "spec.support.interpreter"

--- Leaves forker.so in a folder.
return function(folder)
    local command = "cc -shared -fPIC $(pkg-config --cflags %s) -o %s/forker.so %s"
    local built = os.execute(command:format(LUA, folder, "spec/support/forker.c"))
    assert(built == true or built == 0)  -- LuaJIT gives the exit status
end
