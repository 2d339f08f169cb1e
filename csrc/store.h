// SPDX-License-Identifier: MIT
//
// The store: the truth about jobs, targets and outcomes, behind a small table of functions. A
// struct store is one connection, used by one thread at a time. SQLite is the first maker; nothing
// above this header may know which one it is.
//
// Functions that return int give 0, a semantic status named beside them, or STATUS_STORE,
// STATUS_LOCKED or STATUS_NO_MEMORY with the sentence in store->fault. All writing happens between
// begin and commit; after a failure the caller rolls back, and nothing of the transaction is left.
// Moments are wall-clock milliseconds, spans are milliseconds, idx counts from 0.

#ifndef BATCH_STORE_H
#define BATCH_STORE_H

#include "canonical.h"
#include "caps.h"
#include "job.h"
#include "place.h"
#include "targets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum store_durability { DURABILITY_NORMAL, DURABILITY_FULL };

struct bytes {
    const char *start;  // NULL: absent
    size_t len;
};

// A job as it is read. The texts belong to the connection and live until its next call.
struct job_row {
    int64_t key;  // the store's own number for it
    char id[JOB_ID_SIZE];
    int status;
    const char *error;  // NULL: none
    struct bytes caller;
    struct bytes class_name;
    int64_t owner;  // 0: nobody
    int64_t targets_total;
    int64_t targets_done;
    int64_t targets_failed;
    int64_t bytes;
    int64_t created_at;
    int64_t started_at;   // 0: not yet
    int64_t finished_at;  // 0: not yet
    int64_t expires_at;
    // Of the target whose turn it is:
    int64_t attempts;  // calls of fetch so far
    int64_t busy_ms;   // time that counts towards retry_for
    int64_t deaths;    // processes that died with it in flight
};

struct new_job {
    char id[JOB_ID_SIZE];
    unsigned char idem_key[CANONICAL_KEY_BYTES];
    struct bytes caller;
    struct bytes class_name;
    int64_t owner;  // 0: nobody yet
    int64_t now;
    int64_t expires_at;
    const struct targets *targets;
};

struct outcome {
    int64_t job_key;
    int64_t idx;
    struct bytes content;  // start is NULL for a failure
    struct bytes meta;     // JSON; absent when there is none
    struct bytes error;    // absent for a result
    struct bytes hint;
    int64_t attempts;
    int64_t started_at;
    int64_t finished_at;
    int64_t expires_at;  // the job's lease from now on
    bool is_last;        // no target of the job comes after it
};

// An outcome as it is read, or a pending target (seq 0). Lives until the cursor's next step.
struct target_row {
    int64_t seq;  // its place in the order of commits
    int64_t job_key;
    char job_id[JOB_ID_SIZE];  // filled by the feed of changes only
    int64_t idx;
    struct target input;
    struct outcome outcome;  // meaningful when seq is not 0
};

struct job_filter {
    struct bytes caller;  // absent: any
    int status;           // -1: any
    const char *before;   // id; NULL: from the newest on
    int64_t limit;
};

struct target_range {
    int64_t job_key;
    int64_t from;           // first idx
    int64_t limit;          // at most so many rows
    bool has_outcomes;      // only those with an outcome, else also the pending ones
    bool has_content;       // whether results are read
    int64_t targets_total;  // of the job, for the pending ones
};

// Jobs that fail all at once.
struct mass_failure {
    int64_t owner;  // whose; 0: nobody's
    const char *reason;
    int64_t now;
    int64_t limit;  // at most so many; -1: all
    // Called with each as it is afterwards; may be NULL.
    void (*visit)(void *context, const struct job_row *job);
    void *context;
};

// What a repair asks, and what it tells.
struct repair {
    bool (*is_alive)(void *context, int64_t owner);
    void (*mended)(void *context, const char *text);  // once for each thing that was mended
    void (*left)(void *context, const char *text);    // once for each fault that is left
    void *context;
};

struct owner_row {
    int64_t id;
    int64_t slot;
};

struct store_gauges {
    int64_t live_jobs;
    int64_t stored_bytes;
    int64_t oldest_created_at;  // of a live job; 0: none
};

struct store;
struct store_cursor;

struct store_ops {
    void (*close)(struct store *store);

    // Begins to write, waiting at most patience_ms for other processes (then STATUS_LOCKED).
    int (*begin)(struct store *store, int64_t patience_ms);
    int (*commit)(struct store *store);
    void (*rollback)(struct store *store);
    // Begins and ends a consistent view for reading.
    int (*begin_read)(struct store *store);
    void (*end_read)(struct store *store);
    // A number that changes whenever another connection has committed.
    int (*data_version)(struct store *store, int64_t *out_version);

    // --- jobs ---
    // The newest job of that caller and key whose lease is open at now. STATUS_NOT_FOUND.
    int (*find_job)(struct store *store, struct bytes caller,
                    const unsigned char key[CANONICAL_KEY_BYTES], int64_t now,
                    struct job_row *out_job);
    int (*read_job)(struct store *store, const char *id, struct job_row *out_job);
    // Of one caller that takes time in proportion to the count; in all it does not.
    int (*count_live_of)(struct store *store, struct bytes caller, int64_t *out_count);
    int (*count_live)(struct store *store, int64_t *out_count);
    int (*insert_job)(struct store *store, const struct new_job *job, int64_t *out_key);
    // queued → running; nothing when it is not queued.
    int (*start_job)(struct store *store, int64_t key, int64_t now);
    // live → cancelled. STATUS_NOT_FOUND when it is unknown or not live.
    int (*cancel_job)(struct store *store, const char *id, int64_t now, struct job_row *out_job);
    // Moves the lease. STATUS_NOT_FOUND when there is no such job or it has lapsed.
    int (*touch_job)(struct store *store, const char *id, int64_t now, int64_t expires_at);
    int (*set_busy)(struct store *store, int64_t key, int64_t idx, int64_t attempts,
                    int64_t busy_ms);
    // Stores an outcome with all that follows from it. out_status: the job's afterwards.
    // STATUS_NOT_FOUND when that target has one already or the job is gone: nothing is written.
    int (*put_outcome)(struct store *store, const struct outcome *outcome, int *out_status);
    // Appends to out_targets the inputs from idx on: at most limit of them, and fewer, but at least
    // one, when they are large.
    int (*read_inputs)(struct store *store, int64_t key, int64_t from, int64_t limit,
                       struct targets *out_targets);

    // --- cursors; each ends with cursor_close, also after a failure ---
    int (*list_jobs)(struct store *store, const struct job_filter *filter,
                     struct store_cursor **out_cursor);
    int (*list_targets)(struct store *store, const struct target_range *range,
                        struct store_cursor **out_cursor);
    // Outcomes of all jobs committed after seq, in commit order.
    int (*list_changes)(struct store *store, int64_t after_seq, int64_t limit,
                        struct store_cursor **out_cursor);
    // STATUS_NOTHING at the end.
    int (*next_job)(struct store_cursor *cursor, struct job_row *out_job);
    int (*next_target)(struct store_cursor *cursor, struct target_row *out_target);
    void (*cursor_close)(struct store_cursor *cursor);

    // --- owners ---
    int (*insert_owner)(struct store *store, int64_t pid, int64_t now, struct owner_row *out_owner);
    // Leaves it where it is while live jobs are its.
    int (*delete_owner)(struct store *store, int64_t owner);
    // The first owner with an id above after. STATUS_NOTHING when there is none.
    int (*next_owner)(struct store *store, int64_t after, struct owner_row *out_owner);
    // Gives the oldest job without an owner to owner. STATUS_NOTHING when there is none.
    int (*claim_job)(struct store *store, int64_t owner, struct job_row *out_job);
    int (*has_unowned)(struct store *store, bool *out_has);
    // Makes a live job of that owner everybody's again (queued). STATUS_NOT_FOUND when it is none.
    int (*release_job)(struct store *store, int64_t key, int64_t owner);
    // The same of all its live jobs.
    int (*release_jobs)(struct store *store, int64_t owner, int64_t *out_count);
    // Fails live jobs of an owner.
    int (*fail_jobs)(struct store *store, const struct mass_failure *failure, int64_t *out_count);
    // Notes that a process died with that target in flight. out_job: the job afterwards;
    // STATUS_NOT_FOUND when that target is not pending any more.
    int (*note_death)(struct store *store, int64_t key, int64_t idx, struct job_row *out_job);

    // --- upkeep ---
    int (*read_gauges)(struct store *store, struct store_gauges *out_gauges);
    // Drops at most limit finished jobs whose lease lapsed before now; their rows go in
    // clear_dropped.
    int (*drop_expired)(struct store *store, int64_t now, int64_t limit, int64_t *out_count);
    // Drops the job that finished longest ago if the stored bytes are above max_bytes and a newer
    // finished one stays. STATUS_NOTHING when nothing has to go.
    int (*drop_oldest)(struct store *store, int64_t max_bytes);
    // Removes about limit rows of dropped jobs. STATUS_NOTHING when none is left.
    int (*clear_dropped)(struct store *store, int64_t limit);
    // Gives some free pages back to the disk. STATUS_NOTHING when too few are free for that.
    int (*shrink)(struct store *store);
    // Proves the invariants; calls report once for each fault found.
    int (*check)(struct store *store, void (*report)(void *context, const char *text),
                 void *context);
    // Mends what can be mended, inside of a transaction. No live job of an owner that lives is
    // touched.
    int (*repair)(struct store *store, const struct repair *repair);
    // Copies the whole store to a new file at path.
    int (*backup)(struct store *store, const char *path);
};

// What every maker's connection begins with.
struct store {
    const struct store_ops *ops;
    struct fault fault;  // the sentence of the last failure
};

// Opens a connection; makes and migrates the store when is_first (then under the lock of the owners
// file, which the caller holds). Returns 0 or a status with the sentence in fault.
int store_open(const struct place *place, enum store_durability durability, bool is_first,
               struct store **out_store, struct fault *fault);

// Puts fault points below the stores in files that are opened from now on, and before SQLite's
// memory if nobody has used SQLite yet. For the whole process, and for good.
void store_use_faults(void);

#endif
