// SPDX-License-Identifier: MIT
//
// Small, and the same everywhere.

#include "largs.h"

#include <math.h>

int largs_refuse(lua_State *L, int status, const char *message) {
    lua_pushnil(L);
    lua_pushstring(L, message);
    lua_pushstring(L, status_code(status));
    return 3;
}

int64_t largs_whole(double number) {
    return (int64_t)fmax(fmin(floor(number), 0x1p53), -0x1p53);
}

int64_t largs_check_whole(lua_State *L, int index, double unit) {
    double number = luaL_checknumber(L, index) * unit;
    luaL_argcheck(L, !isnan(number), index, "it is not a number");
    return largs_whole(number);
}

int64_t largs_opt_span_ms(lua_State *L, int index) {
    double seconds = luaL_optnumber(L, index, -1);
    luaL_argcheck(L, !isnan(seconds), index, "it is not a number");
    if (lua_isnoneornil(L, index))
        return -1;
    return (int64_t)fmax(fmin(ceil(seconds * 1e3), 1e12), 0);
}

void largs_check_process(lua_State *L, int64_t pid) {
    if (pid)
        luaL_error(L,
                   "open the runner in init_worker_by_lua: nothing survives the fork"
                   " (this one was opened by process %d)",
                   (int)pid);
}
