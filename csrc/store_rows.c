// SPDX-License-Identifier: MIT
//
// Reading many rows from SQLite: cursors over jobs, targets and changes. A connection has at most
// one cursor, and its statements stand until it is closed.

#include "store_sqlite.h"

#include <string.h>

struct store_cursor {
    struct sqlite *sqlite;
    sqlite3_stmt *statement;  // gives jobs or outcomes
    struct inputs inputs;
    bool is_feed;      // rows name their job
    bool has_pending;  // of targets: those without an outcome, too; then there are
    int64_t job_key;
    int64_t idx;          // of the next target
    int64_t end_idx;      // behind the last one
    int64_t outcome_idx;  // of the outcome that stands; INT64_MAX: no more of them
};

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
    *cursor = (struct store_cursor){.sqlite = sqlite,
                                    .statement = statement,
                                    .inputs = {.sql = SQL_FIND_INPUT},
                                    .is_feed = is_feed};
    sqlite->cursor = *out_cursor = cursor;
    return STATUS_OK;
}

void sqlite_cursor_close(struct store_cursor *cursor) {
    if (!cursor)
        return;
    sqlite3_reset(cursor->statement);
    sqlite3_clear_bindings(cursor->statement);
    sqlite_reset(cursor->sqlite, SQL_FIND_INPUT);
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

// Has the cursor give targets without an outcome, too.
static void add_pending(struct store_cursor *cursor, const struct target_range *range) {
    int64_t total = range->targets_total;
    cursor->has_pending = true;
    cursor->job_key = range->job_key;
    cursor->idx = range->from;
    cursor->outcome_idx = -1;
    cursor->end_idx = total - range->from < range->limit ? total : range->from + range->limit;
}

int sqlite_list_targets(struct store *store, const struct target_range *range,
                        struct store_cursor **out_cursor) {
    int status = open_cursor((struct sqlite *)store, SQL_LIST_OUTCOMES, false, out_cursor);
    if (status)
        return status;
    sqlite3_stmt *statement = (*out_cursor)->statement;
    sqlite3_bind_int64(statement, 1, range->job_key);
    sqlite3_bind_int64(statement, 2, range->from);
    sqlite3_bind_int64(statement, 3, range->limit);
    sqlite3_bind_int(statement, 4, range->has_content);
    if (!range->has_outcomes)
        add_pending(*out_cursor, range);
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

static void read_outcome(struct store_cursor *cursor, struct target_row *out_target) {
    sqlite3_stmt *statement = cursor->statement;
    struct outcome *outcome = &out_target->outcome;
    out_target->seq = sqlite3_column_int64(statement, 0);
    out_target->job_key = outcome->job_key = sqlite3_column_int64(statement, 1);
    out_target->idx = outcome->idx = sqlite3_column_int64(statement, 2);
    outcome->content = sqlite_column(statement, 3);
    outcome->meta = sqlite_column(statement, 4);
    outcome->error = sqlite_column(statement, 5);
    outcome->hint = sqlite_column(statement, 6);
    outcome->attempts = sqlite3_column_int64(statement, 7);
    outcome->started_at = sqlite3_column_int64(statement, 8);
    outcome->finished_at = sqlite3_column_int64(statement, 9);
    struct bytes id = sqlite_column(statement, 10);
    if (cursor->is_feed && id.len < JOB_ID_SIZE)
        memcpy(out_target->job_id, id.start, id.len);
}

// The next one with an outcome.
static int next_ended(struct store_cursor *cursor, struct target_row *out_target) {
    int status = step(cursor);
    if (!status)
        read_outcome(cursor, out_target);
    return status;
}

// The next one with or without: the outcomes come in idx order, and stand until their turn comes.
static int next_in_order(struct store_cursor *cursor, struct target_row *out_target) {
    if (cursor->idx >= cursor->end_idx)
        return STATUS_NOTHING;
    if (cursor->outcome_idx < cursor->idx) {
        int status = step(cursor);
        if (status && status != STATUS_NOTHING)
            return status;
        cursor->outcome_idx = status ? INT64_MAX : sqlite3_column_int64(cursor->statement, 2);
    }
    if (cursor->outcome_idx == cursor->idx)
        read_outcome(cursor, out_target);
    out_target->job_key = out_target->outcome.job_key = cursor->job_key;
    out_target->idx = out_target->outcome.idx = cursor->idx++;
    return STATUS_OK;
}

static int find_input(struct store_cursor *cursor, struct target_row *out_target) {
    int64_t job_key = out_target->job_key, idx = out_target->idx;
    struct sqlite *sqlite = cursor->sqlite;
    int status = cursor->is_feed
                     ? sqlite_find_recent(sqlite, job_key, idx, &out_target->input)
                     : sqlite_find_input(sqlite, &cursor->inputs, job_key, idx, &out_target->input);
    if (status != STATUS_NOTHING)
        return status;
    return fault_set(&sqlite->store.fault, STATUS_STORE,
                     "cannot read the targets: job %lld has none with idx %lld", (long long)job_key,
                     (long long)idx);
}

int sqlite_next_target(struct store_cursor *cursor, struct target_row *out_target) {
    memset(out_target, 0, sizeof *out_target);
    int status =
        cursor->has_pending ? next_in_order(cursor, out_target) : next_ended(cursor, out_target);
    return status ? status : find_input(cursor, out_target);
}
