// SPDX-License-Identifier: MIT
//
// A target written in Lua: a file that returns a function of the input, which raises when a claim
// does not hold. It runs in one state for all inputs, with this build's core in the program itself.
// libFuzzer sees which lines follow each other in Lua as it sees branches in C: through counters
// that a line hook moves.

#include "fuzz.h"
#include "lcore.h"

#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_COUNTERS = 1 << 15 };

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[N_COUNTERS];

static lua_State *state;

static void count_line(lua_State *L, lua_Debug *line) {
    static uint32_t last;
    lua_getinfo(L, "S", line);
    // A file's name lies in one place as long as its functions live.
    uint32_t here = (uint32_t)((uintptr_t)line->source >> 4) ^ (uint32_t)line->currentline << 16;
    here *= 2654435761u;
    here ^= here >> 15;
    uint8_t *counter = &counters[(here ^ (last >> 1)) % N_COUNTERS];
    *counter += *counter < UINT8_MAX;
    last = here;
}

static int add_trace(lua_State *L) {
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

static void call(int n_arguments, int n_results) {
    int handler = lua_gettop(state) - n_arguments;
    lua_pushcfunction(state, add_trace);
    lua_insert(state, handler);
    if (lua_pcall(state, n_arguments, n_results, handler) != LUA_OK)
        fuzz_fail(FUZZ_LUA, 0, lua_tostring(state, -1));
    lua_remove(state, handler);
}

static void open_state(void) {
    state = luaL_newstate();
    if (!state)
        abort();
    luaL_openlibs(state);
    luaL_requiref(state, "batch.core", luaopen_batch_core, 0);
    lua_settop(state, 0);
    if (luaL_loadfile(state, FUZZ_LUA) != LUA_OK)
        fuzz_fail(FUZZ_LUA, 0, lua_tostring(state, -1));
    call(0, 1);
    lua_sethook(state, count_line, LUA_MASKLINE, 0);
}

// The function of the target is all that lies on the stack between two inputs.
void fuzz_one(const char *bytes, size_t len) {
    if (!state)
        open_state();
    lua_pushvalue(state, 1);
    lua_pushlstring(state, bytes, len);
    call(1, 0);
}
