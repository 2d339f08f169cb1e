// SPDX-License-Identifier: MIT
//
// Jobs in SQLite: found, counted, inserted, and moved by conditional statements; and the outcomes
// that move them.

#include "store_sqlite.h"

#include <string.h>

static struct bytes keep_text(struct buffer *texts, struct bytes text) {
    if (!text.start)
        return text;
    char *place = buffer_reserve(texts, text.len + 1);
    if (!place)
        return (struct bytes){NULL, 0};
    memcpy(place, text.start, text.len);
    place[text.len] = '\0';
    texts->len += text.len + 1;
    return (struct bytes){place, text.len};
}

int sqlite_job_row(struct sqlite *sqlite, sqlite3_stmt *statement, struct job_row *out_job) {
    struct bytes id = sqlite_column(statement, 1);
    struct bytes status = sqlite_column(statement, 2);
    struct bytes error = sqlite_column(statement, 3);
    struct bytes caller = sqlite_column(statement, 4);
    struct bytes class_name = sqlite_column(statement, 5);
    memset(out_job, 0, sizeof *out_job);
    buffer_clear(&sqlite->texts);
    // Reserved at once, so that no later text moves an earlier one.
    if (!buffer_reserve(&sqlite->texts, status.len + error.len + caller.len + class_name.len + 4))
        return fault_set(&sqlite->store.fault, STATUS_NO_MEMORY, "out of memory");
    out_job->key = sqlite3_column_int64(statement, 0);
    memcpy(out_job->id, id.start, id.len < JOB_ID_SIZE ? id.len : JOB_ID_SIZE - 1);
    out_job->status = job_status_parse(keep_text(&sqlite->texts, status).start);
    out_job->error = keep_text(&sqlite->texts, error).start;
    out_job->caller = keep_text(&sqlite->texts, caller);
    out_job->class_name = keep_text(&sqlite->texts, class_name);
    int64_t *const numbers[] = {
        &out_job->owner,          &out_job->targets_total, &out_job->targets_done,
        &out_job->targets_failed, &out_job->bytes,         &out_job->created_at,
        &out_job->started_at,     &out_job->finished_at,   &out_job->expires_at,
        &out_job->attempts,       &out_job->busy_ms,       &out_job->deaths,
    };
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
        *numbers[i] = sqlite3_column_int64(statement, 6 + i);
    return STATUS_OK;
}

// Takes the row that sqlite_run left standing, if there is one.
static int take_job(struct sqlite *sqlite, enum sql sql, int status, struct job_row *out_job) {
    if (status)
        return status == STATUS_NOTHING ? STATUS_NOT_FOUND : status;
    status = sqlite_job_row(sqlite, sqlite->statements[sql], out_job);
    sqlite_reset(sqlite, sql);
    return status;
}

int sqlite_find_job(struct store *store, struct bytes caller,
                    const unsigned char key[CANONICAL_KEY_BYTES], int64_t now,
                    struct job_row *out_job) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct bytes key_bytes = {(const char *)key, CANONICAL_KEY_BYTES};
    int status = sqlite_run(sqlite, SQL_FIND_JOB, "tbi", caller, key_bytes, now);
    return take_job(sqlite, SQL_FIND_JOB, status, out_job);
}

int sqlite_read_job(struct store *store, const char *id, struct job_row *out_job) {
    struct sqlite *sqlite = (struct sqlite *)store;
    return take_job(sqlite, SQL_READ_JOB, sqlite_run(sqlite, SQL_READ_JOB, "s", id), out_job);
}

int sqlite_count_live_of(struct store *store, struct bytes caller, int64_t *out_count) {
    return sqlite_number((struct sqlite *)store, SQL_COUNT_LIVE_OF_CALLER, out_count, "t", caller);
}

int sqlite_count_live(struct store *store, int64_t *out_count) {
    return sqlite_number((struct sqlite *)store, SQL_COUNT_LIVE, out_count, "");
}

int sqlite_insert_job(struct store *store, const struct new_job *job, int64_t *out_key) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct bytes key_bytes = {(const char *)job->idem_key, CANONICAL_KEY_BYTES};
    *out_key = 0;
    int status = sqlite_write(sqlite, SQL_INSERT_JOB, "sttbiiii", job->id, job->caller,
                              job->class_name, key_bytes, job->owner, (int64_t)job->targets->count,
                              job->now, job->expires_at);
    if (status)
        return status;
    int64_t key = sqlite3_last_insert_rowid(sqlite->db);
    status = sqlite_insert_inputs(sqlite, key, 0, job->targets);
    if (!status)
        status = sqlite_write(sqlite, SQL_GAUGE_ADD_JOB, "");
    if (!status)
        *out_key = key;
    return status;
}

int sqlite_start_job(struct store *store, int64_t key, int64_t now) {
    return sqlite_write((struct sqlite *)store, SQL_START_JOB, "ii", key, now);
}

int sqlite_cancel_job(struct store *store, const char *id, int64_t now, struct job_row *out_job) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int status = sqlite_run(sqlite, SQL_CANCEL_JOB, "si", id, now);
    status = take_job(sqlite, SQL_CANCEL_JOB, status, out_job);
    return status ? status : sqlite_write(sqlite, SQL_GAUGE_END_JOB, "i", out_job->key);
}

// Whether the last statement changed a row.
static int changed(struct sqlite *sqlite, int status) {
    if (status)
        return status;
    return sqlite3_changes(sqlite->db) > 0 ? STATUS_OK : STATUS_NOT_FOUND;
}

int sqlite_touch_job(struct store *store, const char *id, int64_t now, int64_t expires_at) {
    struct sqlite *sqlite = (struct sqlite *)store;
    return changed(sqlite, sqlite_write(sqlite, SQL_TOUCH_JOB, "sii", id, now, expires_at));
}

int sqlite_set_busy(struct store *store, int64_t key, int64_t idx, int64_t attempts,
                    int64_t busy_ms) {
    return sqlite_write((struct sqlite *)store, SQL_SET_BUSY, "iiii", key, idx, attempts, busy_ms);
}

static int64_t stored_bytes(const struct outcome *outcome) {
    return (int64_t)(outcome->content.len + outcome->meta.len);
}

// Moves a job on by one target. STATUS_NOTHING when it is not live or not at that target.
static int advance_live(struct sqlite *sqlite, const struct outcome *outcome, int *out_status) {
    int64_t n_failed = outcome->content.start ? 0 : 1;
    if (!outcome->is_last) {
        int status = sqlite_write(sqlite, SQL_PROGRESS_JOB, "iiiii", outcome->job_key, outcome->idx,
                                  n_failed, stored_bytes(outcome), outcome->expires_at);
        *out_status = JOB_RUNNING;
        status = changed(sqlite, status);
        return status == STATUS_NOT_FOUND ? STATUS_NOTHING : status;
    }
    int status = sqlite_run(sqlite, SQL_END_JOB, "iiiiii", outcome->job_key, outcome->idx, n_failed,
                            stored_bytes(outcome), outcome->expires_at, outcome->finished_at);
    if (status)
        return status;
    *out_status =
        job_status_parse((const char *)sqlite3_column_text(sqlite->statements[SQL_END_JOB], 0));
    sqlite_reset(sqlite, SQL_END_JOB);
    return sqlite_write(sqlite, SQL_GAUGE_END_JOB, "i", outcome->job_key);
}

// The job ended while its target was in flight (cancelled): the outcome is kept, the status too.
static int advance_ended(struct sqlite *sqlite, const struct outcome *outcome, int *out_status) {
    int64_t n_failed = outcome->content.start ? 0 : 1;
    int status = sqlite_run(sqlite, SQL_LATE_OUTCOME, "iiiii", outcome->job_key, outcome->idx,
                            n_failed, stored_bytes(outcome), outcome->expires_at);
    if (status)
        return status == STATUS_NOTHING ? STATUS_NOT_FOUND : status;
    *out_status = job_status_parse(
        (const char *)sqlite3_column_text(sqlite->statements[SQL_LATE_OUTCOME], 0));
    sqlite_reset(sqlite, SQL_LATE_OUTCOME);
    return sqlite_write(sqlite, SQL_GAUGE_ADD_BYTES, "i", stored_bytes(outcome));
}

int sqlite_put_outcome(struct store *store, const struct outcome *outcome, int *out_status) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int status = advance_live(sqlite, outcome, out_status);
    if (status == STATUS_NOTHING)
        status = advance_ended(sqlite, outcome, out_status);
    if (status)
        return status;
    return sqlite_write(sqlite, SQL_INSERT_OUTCOME, "iibtttiii", outcome->job_key, outcome->idx,
                        outcome->content, outcome->meta, outcome->error, outcome->hint,
                        outcome->attempts, outcome->started_at, outcome->finished_at);
}
