// SPDX-License-Identifier: MIT
//
// A Lua table on its way into JSON: the only file that knows what of Lua JSON can hold. That is
// UTF-8 text, booleans, finite numbers (integral ones up to 2^53), tables with string keys, and
// lists without holes. An empty table is an object. cjson.null is null in a list and as if absent
// in an object. Metatables are not looked at.

#ifndef BATCH_LJSON_H
#define BATCH_LJSON_H

#include "compat.h"
#include "json.h"
#include "lplace.h"

enum {
    LJSON_MAX_DEPTH = 100,
    LJSON_STACK_SLOTS = 2 * LJSON_MAX_DEPTH + 20,  // a key and a value a table, and the rest
    LJSON_MAX_BYTES = 256 * 1024 * 1024,           // tables that share tables unfold to any length
};

// What the members of the outermost table are: anything, or a target's options, whose known ones
// have their types and their order.
enum ljson_kind { LJSON_ANY, LJSON_OPTIONS };

// Appends the value at the top of Lua's stack, which has to be an object, to the writer's output.
// Raises nothing and runs no Lua code, so that the caller may hold memory; for that it wants
// LJSON_STACK_SLOTS free beforehand. Returns 0, STATUS_INVALID with the fault set, or
// STATUS_NO_MEMORY; then the output holds a part, and Lua's stack more than before.
int ljson_write(const struct lplace_subject *subject, enum ljson_kind kind, struct json *json);

// Counts the items of the table at the top. Returns false when a key is no index, and leaves that
// key and its value on the stack. Where all keys are, a hole shows itself: one of the items from 1
// to n_items is nil.
bool ljson_count_items(lua_State *L, int64_t *out_n_items);

#endif
