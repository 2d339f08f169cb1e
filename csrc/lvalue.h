// SPDX-License-Identifier: MIT
//
// Lua values on their way into the core, and decoded ones on their way out: targets, a result's
// meta and names become plain bytes, checked on the way. Called in any state, from its thread.
//
// What a value may hold is ljson.h's to say: all that JSON holds, at most 100 tables deep and
// 256 MiB long.
//
// The functions that give a status run no Lua code and never raise while they hold memory. They
// return 0, STATUS_INVALID or STATUS_NO_MEMORY; the fault names place, rule and value. Targets
// count from 0 in it, as everywhere; lists inside of options from 1, as in Lua.

#ifndef BATCH_LVALUE_H
#define BATCH_LVALUE_H

#include "buffer.h"
#include "compat.h"
#include "status.h"
#include "targets.h"

#include <stddef.h>

// Reads a list of {url = text, options = table or nil}, calling take with each, which lives until
// take returns. take raises nothing; what it returns, if not 0, ends the reading. NULL: the list is
// only checked.
int lvalue_each_target(lua_State *L, int index,
                       int (*take)(void *context, const struct target *target), void *context,
                       struct fault *fault);

// Appends such a list to targets, which are empty after a failure. The caller releases them.
int lvalue_targets(lua_State *L, int index, struct targets *targets, struct fault *fault);

// Appends one target, whose idx is their number up to now. Failure appends nothing.
int lvalue_target(lua_State *L, int index, struct targets *targets, struct fault *fault);

// Appends a result's meta, a table that is an object. Failure appends nothing.
int lvalue_json(lua_State *L, int index, struct buffer *out, struct fault *fault);

// Finds UTF-8 text, such as a caller's name; the fault calls it by name. The bytes belong to Lua.
int lvalue_text(lua_State *L, int index, const char *name, const char **out_text, size_t *out_len,
                struct fault *fault);

// Turns integral floats up to 2^53 into integers, at every depth of a table that lua-cjson decoded,
// because cjson decodes 3 as 3.0. Leaves any other value alone, and all of them in LuaJIT. Raises
// when Lua's stack cannot grow.
void lvalue_integers(lua_State *L, int index);

#endif
