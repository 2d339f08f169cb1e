// SPDX-License-Identifier: MIT
//
// Where a Lua value lies, and the sentence that refuses it there: "target 3: option 'a.b[2]': must
// be a finite number, got nan". Runs no Lua code, raises nothing, and needs four free slots of
// Lua's stack. Knows no rule itself.

#ifndef BATCH_LPLACE_H
#define BATCH_LPLACE_H

#include "buffer.h"
#include "compat.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One step on the way down from the outermost value.
struct lplace {
    const struct lplace *outer;  // NULL: the outermost value
    const char *key;             // NULL: an item of a list
    size_t key_len;
    int64_t item;  // from 1
};

// What all sentences about one outermost value share.
struct lplace_subject {
    lua_State *L;
    struct fault *fault;  // may be NULL
    int64_t idx;          // of the target that it belongs to, -1: none
    const char *name;     // of the outermost value: "options"
    const char *inner;    // of what lies inside of it: "option"
};

// What the sentence shows: nothing, the value at the top of the stack, or the key below it.
enum lplace_got { LPLACE_GOT_NOTHING = 0, LPLACE_GOT_VALUE = -1, LPLACE_GOT_KEY = -2 };

// Says where, what must be, and what is there instead. place is NULL when the rule itself names
// what it speaks of. Returns STATUS_INVALID or STATUS_NO_MEMORY.
int lplace_refuse(const struct lplace_subject *subject, const struct lplace *place,
                  const char *rule, enum lplace_got got);

// Whether it is cjson.null.
bool lplace_is_null(lua_State *L, int index);

// Whether the table has no field.
bool lplace_is_empty(lua_State *L, int index);

#endif
