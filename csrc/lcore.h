// SPDX-License-Identifier: MIT
//
// The module batch.core: what the Lua files of this library stand on. The only exported symbol.

#ifndef BATCH_LCORE_H
#define BATCH_LCORE_H

#include "compat.h"

__attribute__((visibility("default"))) int luaopen_batch_core(lua_State *L);

#endif
