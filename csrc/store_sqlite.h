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

struct sqlite {
    struct store store;
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_N_STATEMENTS];  // prepared at first use
    int64_t give_up_at_us;                       // when the busy handler stops waiting
    uint64_t jitter;                             // state of the busy handler's dice
    struct buffer texts;                         // of the job row read last
    struct store_cursor *cursor;                 // open one; a connection has at most one
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

int sqlite_migrate(struct sqlite *sqlite);

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
int sqlite_count_unowned(struct store *, int64_t *out_count);
int sqlite_release_jobs(struct store *, int64_t owner, int64_t *out_count);
int sqlite_fail_jobs(struct store *, const struct mass_failure *, int64_t *out_count);
int sqlite_note_death(struct store *, int64_t key, int64_t idx, struct job_row *out_job);

int sqlite_read_gauges(struct store *, struct store_gauges *out_gauges);
int sqlite_drop_expired(struct store *, int64_t now, int64_t limit, int64_t *out_count);
int sqlite_drop_oldest(struct store *, int64_t max_bytes);
int sqlite_clear_dropped(struct store *, int64_t limit);
int sqlite_shrink(struct store *);
int sqlite_check(struct store *, void (*report)(void *context, const char *text), void *context);
int sqlite_backup(struct store *, const char *path);

#endif
