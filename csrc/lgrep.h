// SPDX-License-Identifier: MIT
//
// The Lua face of pattern and grep.

#ifndef BATCH_LGREP_H
#define BATCH_LGREP_H

#include <lua.h>

// Pushes the table {lines, check}.
int lgrep_open(lua_State *L);

#endif
