// SPDX-License-Identifier: MIT
//
// The Lua face of child.

#ifndef BATCH_LCHILD_H
#define BATCH_LCHILD_H

#include <lua.h>

// Makes the metatable that lchild_run needs.
void lchild_register(lua_State *L);

// A function of Lua: child{program =, arguments =, …} -> result, or nil, message, code.
int lchild_run(lua_State *L);

// A function of Lua: whether programs run under a filter of system calls.
int lchild_is_filtered(lua_State *L);

#endif
