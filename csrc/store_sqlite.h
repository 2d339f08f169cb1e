// SPDX-License-Identifier: MIT
//
// What the files of the SQLite maker share: the connection, its statements, and the one place where
// SQLite's codes become statuses.

#ifndef BATCH_STORE_SQLITE_H
#define BATCH_STORE_SQLITE_H

#include "buffer.h"
#include "store.h"
#include "store_sql.h"

#include <sqlite3.h>

// Reads inputs one by one, in any order; quickest when those of a job follow one another.
struct inputs {
    enum sql sql;      // SQL_FIND_INPUT or SQL_READ_INPUTS
    int64_t job_key;   // whose chunk is at hand; 0: none is
    int64_t next_idx;  // of the target at offset
    size_t offset;
    struct bytes chunk;  // what the statement stands on, or the copy
    bool has_copy;       // the chunk outlives the statement's next use
    struct buffer copy;
};

enum { N_RECENT_INPUTS = 64 };

struct sqlite {
    struct store store;
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_N_STATEMENTS];  // prepared at first use
    int64_t give_up_at_us;                       // when the busy handler stops waiting
    uint64_t jitter;                             // state of the busy handler's dice
    struct buffer texts;                         // of the job row read last
    struct store_cursor *cursor;                 // open one; a connection has at most one
    // For the feed of changes, which goes from job to job, a page at a time: the chunk of a job
    // lies at its key modulo the number of places. It never gets stale, for inputs never change and
    // no key is used twice.
    struct inputs recent[N_RECENT_INPUTS];
};

extern const struct store_ops sqlite_ops;

// Turns a code of SQLite into a status, and says in the fault what was being done.
int sqlite_fail(struct sqlite *sqlite, int code, const char *doing);

// The statement, ready to be bound. NULL on failure (the fault is set; *out_status says which).
sqlite3_stmt *sqlite_statement(struct sqlite *sqlite, enum sql sql, int *out_status);

// Binds values in order: i int64_t, t struct bytes as text, b struct bytes as blob, s const char *.
// Then steps once and, unless there is a row, resets. Returns 0 when a row is there (the caller
// reads and resets it), STATUS_NOTHING when there is none, else the failure.
int sqlite_run(struct sqlite *sqlite, enum sql sql, const char *types, ...);

// The same for statements that give no row: 0 instead of STATUS_NOTHING.
int sqlite_write(struct sqlite *sqlite, enum sql sql, const char *types, ...);

// The same for statements that give one number. STATUS_NOTHING when there is no row.
int sqlite_number(struct sqlite *sqlite, enum sql sql, int64_t *out_number, const char *types, ...);

void sqlite_reset(struct sqlite *sqlite, enum sql sql);

// Copies the columns of a job, in their order in store_sql.c, out of a row; texts go to the
// connection's buffer.
int sqlite_job_row(struct sqlite *sqlite, sqlite3_stmt *statement, struct job_row *out_job);

struct bytes sqlite_column(sqlite3_stmt *statement, int column);

// The file system for stores: SQLite's own (NULL), or the one with fault points before it.
const char *sqlite_vfs_name(void);

// What SQLite would say for an answer of a fault point.
int sqlite_fault_code(int answer);

int sqlite_migrate(struct sqlite *sqlite);

// Calls missing with each table and index that a store should have and this one has not, and the
// SQL that makes it; ends early when that returns a failure.
typedef int sqlite_missing(void *context, const char *type, const char *name, const char *sql);
int sqlite_find_missing(struct sqlite *sqlite, sqlite_missing *missing, void *context);

// out_target's bytes live until the next call. STATUS_NOTHING when the job has no such target,
// STATUS_STORE also when what is stored cannot be read.
int sqlite_find_input(struct sqlite *sqlite, struct inputs *inputs, int64_t job_key, int64_t idx,
                      struct target *out_target);

// The same over many jobs, by the chunks at hand of the last ones.
int sqlite_find_recent(struct sqlite *sqlite, int64_t job_key, int64_t idx,
                       struct target *out_target);
void sqlite_forget_recent(struct sqlite *sqlite);

// Stores targets of which the first has that idx.
int sqlite_insert_inputs(struct sqlite *sqlite, int64_t job_key, int64_t first,
                         const struct targets *targets);

// Moves the inputs of a store of version 1 from the table target to where they lie now.
int sqlite_pack_inputs(struct sqlite *sqlite);

// The functions of the table, by the file that has them.
int sqlite_find_job(struct store *, struct bytes caller,
                    const unsigned char key[CANONICAL_KEY_BYTES], int64_t now,
                    struct job_row *out_job);
int sqlite_read_job(struct store *, const char *id, struct job_row *out_job);
int sqlite_count_live_of(struct store *, struct bytes caller, int64_t *out_count);
int sqlite_count_live(struct store *, int64_t *out_count);
int sqlite_insert_job(struct store *, const struct new_job *job, int64_t *out_key);
int sqlite_start_job(struct store *, int64_t key, int64_t now);
int sqlite_cancel_job(struct store *, const char *id, int64_t now, struct job_row *out_job);
int sqlite_touch_job(struct store *, const char *id, int64_t now, int64_t expires_at);
int sqlite_set_busy(struct store *, int64_t key, int64_t idx, int64_t attempts, int64_t busy_ms);
int sqlite_put_outcome(struct store *, const struct outcome *outcome, int *out_status);
int sqlite_read_inputs(struct store *, int64_t key, int64_t from, int64_t limit,
                       struct targets *out_targets);

int sqlite_list_jobs(struct store *, const struct job_filter *, struct store_cursor **out_cursor);
int sqlite_list_targets(struct store *, const struct target_range *,
                        struct store_cursor **out_cursor);
int sqlite_list_changes(struct store *, int64_t after_seq, int64_t limit,
                        struct store_cursor **out_cursor);
int sqlite_next_job(struct store_cursor *, struct job_row *out_job);
int sqlite_next_target(struct store_cursor *, struct target_row *out_target);
void sqlite_cursor_close(struct store_cursor *);

int sqlite_insert_owner(struct store *, int64_t pid, int64_t now, struct owner_row *out_owner);
int sqlite_delete_owner(struct store *, int64_t owner);
int sqlite_next_owner(struct store *, int64_t after, struct owner_row *out_owner);
int sqlite_claim_job(struct store *, int64_t owner, struct job_row *out_job);
int sqlite_has_unowned(struct store *, bool *out_has);
int sqlite_release_job(struct store *, int64_t key, int64_t owner);
int sqlite_release_jobs(struct store *, int64_t owner, int64_t *out_count);
int sqlite_fail_jobs(struct store *, const struct mass_failure *, int64_t *out_count);
int sqlite_note_death(struct store *, int64_t key, int64_t idx, struct job_row *out_job);

int sqlite_read_gauges(struct store *, struct store_gauges *out_gauges);
int sqlite_drop_expired(struct store *, int64_t now, int64_t limit, int64_t *out_count);
int sqlite_drop_oldest(struct store *, int64_t max_bytes);
int sqlite_clear_dropped(struct store *, int64_t limit);
int sqlite_shrink(struct store *);
int sqlite_check(struct store *, void (*report)(void *context, const char *text), void *context);
int sqlite_repair(struct store *, const struct repair *repair);
int sqlite_backup(struct store *, const char *path);

#endif
