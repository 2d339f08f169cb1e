// SPDX-License-Identifier: MIT
//
// How every function of the Lua face takes numbers, guards its handle, and refuses.

#ifndef BATCH_LARGS_H
#define BATCH_LARGS_H

#include "compat.h"
#include "status.h"

#include <stdint.h>

// A refusal by the world: pushes nil, message and the status's code, and returns 3.
int largs_refuse(lua_State *L, int status, const char *message);

// The number as counts and moments are kept: rounded down, and what is beyond 2^53, infinities
// included, cut to it.
int64_t largs_whole(double number);

// The same of an argument times unit. Raises for NaN.
int64_t largs_check_whole(lua_State *L, int index, double unit);

// An argument of seconds as milliseconds: -1 when it is absent, 0 when the time is over already.
// Raises for NaN.
int64_t largs_opt_span_ms(lua_State *L, int index);

// Raises when what is used was opened by another process than this one: pid, if not 0.
void largs_check_process(lua_State *L, int64_t pid);

#endif
