// SPDX-License-Identifier: MIT
//
// Reading many rows from SQLite: inputs a window at a time, and cursors over jobs, targets and
// changes. A connection has at most one cursor, and its statement stands until it is closed.

#include "store_sqlite.h"

#include <string.h>

// Inputs are as large as users make them; a window of them need not be.
enum { WINDOW_BYTES = 65536 };

struct store_cursor {
    struct sqlite *sqlite;
    sqlite3_stmt *statement;
    bool is_feed;  // rows name their job
};

static struct target input_of(sqlite3_stmt *statement, int column) {
    struct bytes url = sqlite_column(statement, column);
    struct bytes options = sqlite_column(statement, column + 1);
    if (!options.start)
        options = (struct bytes){"{}", 2};
    return (struct target){url.start, url.len, options.start, options.len};
}

int sqlite_read_inputs(struct store *store, int64_t key, int64_t from, int64_t limit,
                       struct targets *out_targets) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int status = sqlite_run(sqlite, SQL_READ_INPUTS, "iii", key, from, limit);
    if (status)
        return status == STATUS_NOTHING ? STATUS_OK : status;
    sqlite3_stmt *statement = sqlite->statements[SQL_READ_INPUTS];
    int code = SQLITE_ROW;
    while (code == SQLITE_ROW) {
        struct target target = input_of(statement, 0);
        targets_add(out_targets, &target);
        code = out_targets->packed.len < WINDOW_BYTES ? sqlite3_step(statement) : SQLITE_DONE;
    }
    status = code == SQLITE_DONE ? STATUS_OK : sqlite_fail(sqlite, code, "read the targets");
    sqlite3_reset(statement);
    if (!status && out_targets->packed.is_broken)
        status =
            fault_set(&store->fault, STATUS_NO_MEMORY, "cannot read the targets: out of memory");
    return status;
}

static int open_cursor(struct sqlite *sqlite, enum sql sql, bool is_feed,
                       struct store_cursor **out_cursor) {
    int status;
    *out_cursor = NULL;
    sqlite3_stmt *statement = sqlite_statement(sqlite, sql, &status);
    if (!statement)
        return status;
    struct store_cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return fault_set(&sqlite->store.fault, STATUS_NO_MEMORY, "out of memory");
    sqlite_cursor_close(sqlite->cursor);
    *cursor = (struct store_cursor){sqlite, statement, is_feed};
    sqlite->cursor = *out_cursor = cursor;
    return STATUS_OK;
}

void sqlite_cursor_close(struct store_cursor *cursor) {
    if (!cursor)
        return;
    sqlite3_reset(cursor->statement);
    sqlite3_clear_bindings(cursor->statement);
    cursor->sqlite->cursor = NULL;
    sqlite3_free(cursor);
}

static void bind_text(sqlite3_stmt *statement, int place, struct bytes text) {
    if (text.start)
        sqlite3_bind_text64(statement, place, text.start, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    else
        sqlite3_bind_null(statement, place);
}

int sqlite_list_jobs(struct store *store, const struct job_filter *filter,
                     struct store_cursor **out_cursor) {
    bool is_callers = filter->caller.start != NULL;
    enum sql sql = is_callers ? SQL_LIST_JOBS_OF_CALLER : SQL_LIST_JOBS;
    if (filter->status >= 0 && job_is_live(filter->status))
        sql = is_callers ? SQL_LIST_LIVE_OF_CALLER : SQL_LIST_LIVE;
    else if (filter->status >= 0)
        sql = is_callers ? SQL_LIST_ENDED_OF_CALLER : SQL_LIST_ENDED;
    int status = open_cursor((struct sqlite *)store, sql, false, out_cursor);
    if (status)
        return status;
    sqlite3_stmt *statement = (*out_cursor)->statement;
    bind_text(statement, 1, filter->caller);
    sqlite3_bind_text(statement, 2, job_status_name(filter->status), -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, filter->before, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 4, filter->limit);
    return STATUS_OK;
}

int sqlite_list_targets(struct store *store, const struct target_range *range,
                        struct store_cursor **out_cursor) {
    enum sql sql = range->has_outcomes ? SQL_LIST_OUTCOMES : SQL_LIST_TARGETS;
    int status = open_cursor((struct sqlite *)store, sql, false, out_cursor);
    if (status)
        return status;
    sqlite3_stmt *statement = (*out_cursor)->statement;
    sqlite3_bind_int64(statement, 1, range->job_key);
    sqlite3_bind_int64(statement, 2, range->from);
    sqlite3_bind_int64(statement, 3, range->limit);
    sqlite3_bind_int(statement, 4, range->has_content);
    return STATUS_OK;
}

int sqlite_list_changes(struct store *store, int64_t after_seq, int64_t limit,
                        struct store_cursor **out_cursor) {
    int status = open_cursor((struct sqlite *)store, SQL_LIST_CHANGES, true, out_cursor);
    if (status)
        return status;
    sqlite3_bind_int64((*out_cursor)->statement, 1, after_seq);
    sqlite3_bind_int64((*out_cursor)->statement, 2, limit);
    return STATUS_OK;
}

static int step(struct store_cursor *cursor) {
    int code = sqlite3_step(cursor->statement);
    if (code == SQLITE_ROW)
        return STATUS_OK;
    if (code == SQLITE_DONE)
        return STATUS_NOTHING;
    return sqlite_fail(cursor->sqlite, code, "read the store");
}

int sqlite_next_job(struct store_cursor *cursor, struct job_row *out_job) {
    int status = step(cursor);
    return status ? status : sqlite_job_row(cursor->sqlite, cursor->statement, out_job);
}

int sqlite_next_target(struct store_cursor *cursor, struct target_row *out_target) {
    int status = step(cursor);
    if (status)
        return status;
    sqlite3_stmt *statement = cursor->statement;
    memset(out_target, 0, sizeof *out_target);
    out_target->seq = sqlite3_column_int64(statement, 0);
    out_target->job_key = sqlite3_column_int64(statement, 1);
    out_target->idx = sqlite3_column_int64(statement, 2);
    out_target->input = input_of(statement, 3);
    struct outcome *outcome = &out_target->outcome;
    outcome->job_key = out_target->job_key;
    outcome->idx = out_target->idx;
    outcome->content = sqlite_column(statement, 5);
    outcome->meta = sqlite_column(statement, 6);
    outcome->error = sqlite_column(statement, 7);
    outcome->hint = sqlite_column(statement, 8);
    outcome->attempts = sqlite3_column_int64(statement, 9);
    outcome->started_at = sqlite3_column_int64(statement, 10);
    outcome->finished_at = sqlite3_column_int64(statement, 11);
    struct bytes id = sqlite_column(statement, 12);
    if (cursor->is_feed && id.len < JOB_ID_SIZE)
        memcpy(out_target->job_id, id.start, id.len);
    return STATUS_OK;
}
