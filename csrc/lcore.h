// SPDX-License-Identifier: MIT
//
// The module batch.core: what the Lua files of this library stand on. The only exported symbol.

#ifndef BATCH_LCORE_H
#define BATCH_LCORE_H

#include "compat.h"
#include "status.h"

#include <stdint.h>

// A refusal by the world: pushes nil, message, code and returns 3.
int lcore_refuse(lua_State *L, int status, const char *message);

// The argument times unit as counts and moments are kept: rounded down, and what is beyond 2^53,
// infinities included, cut to it. Raises for NaN.
int64_t lcore_check_whole(lua_State *L, int index, double unit);

// Raises when what is used was opened by another process than this one: pid, if not 0.
void lcore_check_process(lua_State *L, int64_t pid);

__attribute__((visibility("default"))) int luaopen_batch_core(lua_State *L);

#endif
