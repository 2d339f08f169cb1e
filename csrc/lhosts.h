// SPDX-License-Identifier: MIT
//
// The Lua face of hosts and of addresses.

#ifndef BATCH_LHOSTS_H
#define BATCH_LHOSTS_H

#include "compat.h"
#include "http.h"

// Adds enter and address to the table at the top.
void lhosts_add(lua_State *L);

// Pushes nil, message, hint and kind, and returns 4.
int lhosts_refuse(lua_State *L, const struct http_fault *fault);

#endif
