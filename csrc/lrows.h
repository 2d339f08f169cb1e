// SPDX-License-Identifier: MIT
//
// Rows of the store as Lua tables. Each function pushes one table and may raise.

#ifndef BATCH_LROWS_H
#define BATCH_LROWS_H

#include "compat.h"
#include "store.h"

#include <stdbool.h>

void lrows_push_job(lua_State *L, const struct job_row *job);

// A target with its outcome, if it has one. has_content: whether results are wanted.
void lrows_push_target(lua_State *L, const struct target_row *target, bool has_content);

// Sets fields of the table at the top; an absent value or a moment of 0 is left out.
void lrows_set_text(lua_State *L, const char *name, struct bytes text);
void lrows_set_word(lua_State *L, const char *name, const char *word);
void lrows_set_moment(lua_State *L, const char *name, int64_t ms);
void lrows_set_integer(lua_State *L, const char *name, int64_t value);

#endif
