// SPDX-License-Identifier: MIT
//
// The Lua face of http, guard and charset.

#ifndef BATCH_LHTTP_H
#define BATCH_LHTTP_H

#include <lua.h>

// Pushes the table {new, check_header, decode}.
int lhttp_open(lua_State *L);

#endif
