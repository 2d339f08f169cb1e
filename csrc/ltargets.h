// SPDX-License-Identifier: MIT
//
// A list of targets that a program in Lua adds to one by one, and submits as a whole: for those
// whose targets do not lie in a table.

#ifndef BATCH_LTARGETS_H
#define BATCH_LTARGETS_H

#include "compat.h"
#include "targets.h"

// core.targets() → list, with add(target) → true or nil, message, code; and close()
int ltargets_new(lua_State *L);

// The list at that index; NULL when it is none. Lives as long as the userdata.
const struct targets *ltargets_test(lua_State *L, int index);

void ltargets_register(lua_State *L);

#endif
