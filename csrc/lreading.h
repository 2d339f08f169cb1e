// SPDX-License-Identifier: MIT
//
// A read on its way from Lua into the store and back: rows become values inside a protected call,
// for an error of Lua there, such as running out of memory, must not lose the connection that was
// lent.

#ifndef BATCH_LREADING_H
#define BATCH_LREADING_H

#include "buffer.h"
#include "compat.h"
#include "runner.h"

enum { LREADING_PAGE_BYTES = 4 * 1024 * 1024 };  // of contents in one page of targets

struct reading {
    struct runner *runner;
    struct store *store;
    int status;  // of the store
    const char *id;
    struct job_filter filter;
    struct target_range range;
    int64_t next_idx;       // of the job's target that is pending and may have come back busy
    int64_t next_attempts;  // so often
    int64_t after_seq;
    bool is_page;         // may end early
    int argument;         // on the caller's stack, that push gets as its second; 0: none
    struct bytes caller;  // whose job it has to be; absent: anybody's
    struct buffer text;   // push's own, released after the read
};

// Calls push(reading) in protected mode with a connection. Returns the number of values it left on
// the stack, or pushes the refusal.
int lreading_run(lua_State *L, struct reading *reading, lua_CFunction push);

// An optional argument that counts.
int64_t lreading_count(lua_State *L, int index, int64_t if_absent);

// The arguments caller, status, limit, before from the second on.
void lreading_filter(lua_State *L, struct job_filter *filter);

#endif
