// SPDX-License-Identifier: MIT
//
// Points at which a test may have the core fail, wait or die: the N-th time that one is passed. Off
// until fault_point_begin, and then at the price of a branch that is never taken. Process-wide, as
// the memory, the threads and the death that they stand for are: this is the one state that two
// runners of a process share. Knows nothing of what lies behind a point. Safe from any thread.

#ifndef BATCH_FAULT_POINT_H
#define BATCH_FAULT_POINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum fault_at {
    FAULT_AT_IO,  // any of the next four, and what else is asked of the file system
    FAULT_AT_READ,
    FAULT_AT_WRITE,
    FAULT_AT_SYNC,
    FAULT_AT_LOCK,
    FAULT_AT_COMMIT,
    FAULT_AT_ALLOCATION,  // of the core
    FAULT_AT_STORE_ALLOCATION,
    FAULT_AT_THREAD,
    FAULT_N_POINTS,
};

enum fault_answer {
    FAULT_GO_ON,  // nothing is to go wrong
    FAULT_FAIL,   // in the one way that the point knows
    FAULT_BUSY,
    FAULT_FULL,
    FAULT_IOERR,
    FAULT_CORRUPT,
    FAULT_TEAR,   // do half of it, then fault_point_die
    FAULT_DIE,    // never seen by a point
    FAULT_DELAY,  // nor is this
};

enum { FAULT_EXIT_STATUS = 86 };

struct fault_plan {
    enum fault_answer answer;
    int64_t nth;       // from 1: the passage, from now on, at which it begins
    int64_t times;     // how many passages it lasts
    int64_t delay_us;  // of FAULT_DELAY
};

extern _Atomic bool fault_point_is_on;

// Starts to count passages. May be called again.
void fault_point_begin(void);

// Begins the count of a point again, with a plan.
void fault_point_set(enum fault_at at, const struct fault_plan *plan);

// Drops the plan of a point. Its count goes on.
void fault_point_clear(enum fault_at at);

// How often the point was passed since its count began.
int64_t fault_point_passed(enum fault_at at);

// Ends the process as a crash would: nothing is written, closed or told.
_Noreturn void fault_point_die(void);

enum fault_answer fault_point_count(enum fault_at at);

// What is to happen here and now. Does not come back to die, and late from a delay.
static inline enum fault_answer fault_point_pass(enum fault_at at) {
    if (__builtin_expect(!atomic_load_explicit(&fault_point_is_on, memory_order_relaxed), 1))
        return FAULT_GO_ON;
    return fault_point_count(at);
}

#endif
