// SPDX-License-Identifier: MIT
//
// The Lua face of charset.

#ifndef BATCH_LCHARSET_H
#define BATCH_LCHARSET_H

#include "compat.h"

// Adds decode to the table at the top.
void lcharset_add(lua_State *L);

#endif
