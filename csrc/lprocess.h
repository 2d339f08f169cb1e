// SPDX-License-Identifier: MIT
//
// What Lua code needs of the process and its time: the moment, waiting for a descriptor, the
// terminal, signals for a command line, and virtual clocks for tests.

#ifndef BATCH_LPROCESS_H
#define BATCH_LPROCESS_H

#include "clock.h"
#include "compat.h"

extern const luaL_Reg lprocess_functions[];

void lprocess_register(lua_State *L);

// Raises when there is no virtual clock at that index.
struct clock *lprocess_check_clock(lua_State *L, int index);

#endif
