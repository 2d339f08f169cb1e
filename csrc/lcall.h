// SPDX-License-Identifier: MIT
//
// One call of a fetch function in some Lua state: what it is given, its time-out, and the verdict
// that its return values mean. Shared by the workers' states and by a program that drains in its
// own.

#ifndef BATCH_LCALL_H
#define BATCH_LCALL_H

#include "clock.h"
#include "compat.h"
#include "task.h"
#include "workers.h"

#include <stdbool.h>

enum { LCALL_MAX_CACHED = 64 };  // jobs for which a state keeps what their contexts share

// Belongs to one Lua state and its thread.
struct lcall {
    lua_State *L;
    struct hand *hand;
    const struct clock *clock;
    struct task *task;    // NULL between calls
    int64_t deadline_us;  // of what runs; INT64_MAX: none
    bool is_timed_out;
    bool is_out_of_memory;  // the last call ended so: nobody knows what in its state is whole
    int n_cached;  // jobs in that cache; LCALL_MAX_CACHED: what is there is of another store
};

// Takes the function that decodes JSON (cjson.decode) at the top of the stack, and pops it.
void lcall_use_decode(lua_State *L);

// Pushes a decoded JSON value; {} for an absent one.
void lcall_push_json(lua_State *L, struct bytes json);

// Makes this the call whose hand and task the state's ctx speaks of, and returns the one before;
// may raise.
struct lcall *lcall_attach(lua_State *L, struct lcall *call);

// Stops Lua code of the state at a moment of the call's clock, or never (INT64_MAX); coroutines
// made later are covered too.
void lcall_limit(struct lcall *call, int64_t deadline_us);

// A function of Lua: whether what runs is being stopped.
int lcall_is_timed_out(lua_State *L);

// Calls the function at the top of the stack, which it pops, on a task, and sets the task's
// verdict. Raises nothing.
void lcall_run(struct lcall *call, struct task *task);

// Reads the values from index first up to the top as a fetch's return values, and drops those that
// have no meaning; may raise.
// Returns false when they mean nothing: then the task has failed with an internal error.
bool lcall_verdict(lua_State *L, int first, struct task *task);

#endif
