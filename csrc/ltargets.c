// SPDX-License-Identifier: MIT
//
// The list as a userdata. It holds little in memory, for whoever makes one makes many.

#include "ltargets.h"

#include "largs.h"
#include "lvalue.h"

#define LTARGETS_TYPE "batch.targets"

enum { HELD_BYTES = 32 * 1024 };

int ltargets_new(lua_State *L) {
    struct targets *targets = lua_newuserdata(L, sizeof *targets);
    targets_init(targets);
    targets->max_held = HELD_BYTES;
    luaL_getmetatable(L, LTARGETS_TYPE);
    lua_setmetatable(L, -2);
    return 1;
}

const struct targets *ltargets_test(lua_State *L, int index) {
    return luaL_testudata(L, index, LTARGETS_TYPE);
}

static int method_add(lua_State *L) {
    struct targets *targets = luaL_checkudata(L, 1, LTARGETS_TYPE);
    struct fault fault;
    int status = lvalue_target(L, 2, targets, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    lua_pushboolean(L, true);
    return 1;
}

// Leaves an empty list.
static int method_close(lua_State *L) {
    targets_fini(luaL_checkudata(L, 1, LTARGETS_TYPE));
    return 0;
}

static const luaL_Reg methods[] = {
    {"add", method_add},
    {"close", method_close},
    {NULL, NULL},
};

void ltargets_register(lua_State *L) {
    luaL_newmetatable(L, LTARGETS_TYPE);
    lua_pushcfunction(L, method_close);
    lua_setfield(L, -2, "__gc");
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
