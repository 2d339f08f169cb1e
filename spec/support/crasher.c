// SPDX-License-Identifier: MIT
//
// A C library with a fault, for specs that are written in Lua.

#include <lauxlib.h>
#include <lua.h>

#include <stdlib.h>

// crash(): takes the process with it
static int function_crash(lua_State *L) {
    (void)L;
    abort();
}

__attribute__((visibility("default"))) int luaopen_crasher(lua_State *L);

int luaopen_crasher(lua_State *L) {
    lua_pushcfunction(L, function_crash);
    return 1;
}
