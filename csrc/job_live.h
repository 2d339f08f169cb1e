// SPDX-License-Identifier: MIT
//
// A live job in the memory of the process that owns it, and the map that finds it by its key. Its
// size does not depend on its number of targets: inputs are read from the store a window at a time.
// Holds no lock: whoever owns the map guards it.

#ifndef BATCH_JOB_LIVE_H
#define BATCH_JOB_LIVE_H

#include "rotation.h"
#include "store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task;

struct live {
    struct turn turn;   // first, so that a turn is its job
    struct live *next;  // in the map's bucket
    int64_t key;
    char id[JOB_ID_SIZE];
    struct bytes caller;  // in the same allocation
    struct bytes class_name;
    int64_t targets_total;
    int64_t next_idx;
    int64_t created_at;
    int64_t submitted_us;     // monotonic; 0: not submitted to this process
    int64_t started_at;       // wall clock; 0: no target was handed out yet
    int64_t attempts;         // of the target at next_idx
    int64_t busy_ms;          // of that target, towards retry_for
    int64_t deaths;           // of processes that had that target in flight
    int64_t busy_since_us;    // when it last came back busy and impatient; 0: not
    uint64_t seen_announced;  // what was announced when its status was last known
    struct task *task;        // in flight or being stored; NULL: none
    bool is_cancelled;
    bool is_refilling;  // a thread reads its window without the lock
    bool is_leaving;  // on its way back to everybody: in no rotation, and nobody ends it meanwhile
    struct targets window;
    size_t window_offset;  // of the input at next_idx
};

struct live_map {
    struct live **buckets;
    size_t n_buckets;  // a power of two
    size_t count;
};

// Returns 0 or STATUS_NO_MEMORY; after it, adding never fails.
int live_map_init(struct live_map *map);
// Frees the jobs too. Harmless on a map that is all zero.
void live_map_fini(struct live_map *map);

// A copy of what is known from its row. NULL when memory ran out.
struct live *live_new(const struct job_row *job);
void live_free(struct live *live);

void live_map_add(struct live_map *map, struct live *live);
struct live *live_map_find(const struct live_map *map, int64_t key);
void live_map_remove(struct live_map *map, struct live *live);

// Visits every job; visit may not change the map.
void live_map_each(const struct live_map *map, void (*visit)(struct live *live, void *context),
                   void *context);

// The input at next_idx. STATUS_NOTHING when the window has to be filled first.
int live_input(const struct live *live, struct target *out_target);

// Fills the window of a job that has not begun with the first of its inputs, which saves reading
// them back. Without memory for it the window stays empty.
void live_prime(struct live *live, const struct targets *targets);

// Moves on to the next target.
void live_advance(struct live *live);

#endif
