// SPDX-License-Identifier: MIT
//
// The Lua face of a store alone: batch.store.

#ifndef BATCH_LSTORE_H
#define BATCH_LSTORE_H

#include "compat.h"
#include "place.h"

// core.store_open(path) → store, or nil, message, code.
int lstore_open(lua_State *L);

// The place of an open store at that index; NULL when it is none.
const struct place *lstore_place(lua_State *L, int index);

void lstore_register(lua_State *L);

#endif
