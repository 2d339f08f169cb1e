// SPDX-License-Identifier: MIT
//
// Names of points and answers, and the calls that set them.

#include "lfault.h"

#include "fault_point.h"
#include "store.h"

#include <math.h>

static const char *const names[FAULT_N_POINTS + 1] = {
    [FAULT_AT_IO] = "io",
    [FAULT_AT_READ] = "read",
    [FAULT_AT_WRITE] = "write",
    [FAULT_AT_SYNC] = "sync",
    [FAULT_AT_LOCK] = "lock",
    [FAULT_AT_COMMIT] = "commit",
    [FAULT_AT_ALLOCATION] = "allocation",
    [FAULT_AT_STORE_ALLOCATION] = "store_allocation",
    [FAULT_AT_THREAD] = "thread",
};

static const char *const answers[] = {
    [FAULT_GO_ON] = "none",   [FAULT_FAIL] = "fail",   [FAULT_BUSY] = "busy",
    [FAULT_FULL] = "full",    [FAULT_IOERR] = "ioerr", [FAULT_CORRUPT] = "corrupt",
    [FAULT_TEAR] = "tear",    [FAULT_DIE] = "die",     [FAULT_DELAY] = "delay",
    [FAULT_DELAY + 1] = NULL,
};

// begin(): stores that are opened from now on have points of their own
static int function_begin(lua_State *L) {
    (void)L;
    fault_point_begin();
    store_use_faults();
    return 0;
}

static int64_t count_arg(lua_State *L, int index) {
    double value = luaL_checknumber(L, index);
    luaL_argcheck(L, value >= 1, index, "must be at least 1");
    return (int64_t)fmin(floor(value), 9007199254740992.0);
}

// set(at, answer, nth, times, seconds)
static int function_set(lua_State *L) {
    enum fault_at at = (enum fault_at)luaL_checkoption(L, 1, NULL, names);
    struct fault_plan plan = {
        .answer = (enum fault_answer)luaL_checkoption(L, 2, NULL, answers),
        .nth = count_arg(L, 3),
        .times = count_arg(L, 4),
        .delay_us = llround(fmin(fmax(luaL_checknumber(L, 5), 0), 1e6) * 1e6),
    };
    fault_point_set(at, &plan);
    return 0;
}

static void push_counts(lua_State *L) {
    lua_createtable(L, 0, FAULT_N_POINTS);
    for (int at = 0; at < FAULT_N_POINTS; at++) {
        lua_pushinteger(L, (lua_Integer)fault_point_passed((enum fault_at)at));
        lua_setfield(L, -2, names[at]);
    }
}

// passed() → how often each point was passed since its count began, by name
static int function_passed(lua_State *L) {
    push_counts(L);
    return 1;
}

// clear(): drops all plans and gives what passed would
static int function_clear(lua_State *L) {
    static const struct fault_plan none = {.answer = FAULT_GO_ON, .nth = 1, .times = 1};
    push_counts(L);
    for (int at = 0; at < FAULT_N_POINTS; at++) {
        fault_point_set((enum fault_at)at, &none);
        fault_point_clear((enum fault_at)at);
    }
    return 1;
}

static const luaL_Reg functions[] = {
    {"begin", function_begin}, {"set", function_set}, {"passed", function_passed},
    {"clear", function_clear}, {NULL, NULL},
};

void lfault_open(lua_State *L) {
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
}
