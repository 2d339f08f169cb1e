-- SPDX-License-Identifier: MIT
--
-- The name of the program that runs the specs, for those that start another Lua: a module built for
-- one VM does not load in another.

return os.getenv "LUA" or (rawget(_G, "jit") and "luajit" or (_VERSION:lower():gsub(" ", "")))
