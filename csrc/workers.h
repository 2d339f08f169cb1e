// SPDX-License-Identifier: MIT
//
// The hands: threads that take targets and work on them, one at a time each. Starts them, lets them
// sleep and wakes them, replaces one that is stuck in code that cannot be stopped. What the work
// is, the runner knows; a hand's flags are all that its fetch may touch once it was abandoned.

#ifndef BATCH_WORKERS_H
#define BATCH_WORKERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct workers;

// A hand's state: one of these in the low bits, above them a number that moves with each fetch, so
// that nobody takes the next fetch for the one he saw.
enum {
    HAND_IDLE,
    HAND_FETCHING,   // the fetch runs; whoever moves it on from here owns its outcome
    HAND_STORING,    // the fetch came back in time
    HAND_ABANDONED,  // it did not; the thread ends by itself once its code returns
    HAND_STATE_BITS = 2,
};

struct hand {
    _Atomic uint64_t state;
    _Atomic int64_t deadline_us;  // of the fetch that runs
    _Atomic int64_t job_key;      // of the fetch that runs
    _Atomic bool is_cancelled;    // the fetch that runs should end early
    int wake_fd;                  // readable while is_cancelled
    int index;                    // its place among the workers
    struct workers *workers;
    void *state_of_fetch;  // what begin returned
};

struct workers_config {
    int count;
    void *context;
    // In the hand's own thread: makes and ends the state that its fetches run in.
    void *begin_context;
    void *(*begin)(void *begin_context, struct hand *hand);
    void (*end)(void *state);
    // Takes and does one target. Returns whether there was one.
    bool (*work)(void *context, struct hand *hand);
};

// Starts the threads. Returns 0 or STATUS_NO_MEMORY (then none runs).
int workers_open(const struct workers_config *config, struct workers **out_workers);

// Waits for the hands until due_at_us of the monotonic clock. Returns 0, or STATUS_TIMEOUT: they
// still work, and this may be called again. No work is begun after the first call.
int workers_stop(struct workers *workers, int64_t due_at_us);

// After workers_stop.
void workers_close(struct workers *workers);

// Says that there is work: wakes up to n sleeping hands, and keeps those awake that were about to
// sleep. Cheap when none sleeps. workers_stay_awake does the latter alone.
void workers_wake(struct workers *workers, unsigned n);
void workers_stay_awake(struct workers *workers);
unsigned workers_idle(const struct workers *workers);
unsigned workers_alive(const struct workers *workers);

// Whether the calling thread is a hand of any runner: it looks for work by itself when it is done.
bool workers_is_hand(void);

// A hand without a thread of its own, for a program that fetches in its own thread. Returns 0 or
// STATUS_NO_MEMORY.
int hand_init(struct hand *hand);
void hand_fini(struct hand *hand);

// Takes back a cancel, before the next target is taken.
void hand_reset(struct hand *hand);

// Between these the hand's fetch runs. hand_end says whether it came back in time; if not, the hand
// was abandoned: nothing but the hand itself may be touched from then on.
void hand_begin(struct hand *hand, int64_t job_key, int64_t deadline_us);
bool hand_end(struct hand *hand);

// Makes the fetch that runs end early.
void hand_cancel(struct hand *hand);

// A fetch that was seen running.
struct overdue {
    int index;
    uint64_t state;
    int64_t job_key;
};

// Starts hands in places that have none, as far as threads can be had. Not after workers_stop.
void workers_replace(struct workers *workers);

// Finds a fetch that was due before due_us. Returns whether there is one.
bool workers_find_overdue(struct workers *workers, int64_t due_us, struct overdue *out_overdue);

// Abandons exactly the fetch that was found, if it still runs, and starts another hand in its place
// unless no_more. Returns whether it was abandoned.
bool workers_abandon(struct workers *workers, const struct overdue *overdue, bool no_more);

#endif
