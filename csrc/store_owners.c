// SPDX-License-Identifier: MIT
//
// Who owns which job in SQLite. Whether an owner lives is not known here: that is the lock's part.

#include "store_sqlite.h"

int sqlite_insert_owner(struct store *store, int64_t pid, int64_t now,
                        struct owner_row *out_owner) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int status = sqlite_run(sqlite, SQL_INSERT_OWNER, "ii", pid, now);
    if (status)
        return status;
    out_owner->id = sqlite3_column_int64(sqlite->statements[SQL_INSERT_OWNER], 0);
    out_owner->slot = sqlite3_column_int64(sqlite->statements[SQL_INSERT_OWNER], 1);
    sqlite_reset(sqlite, SQL_INSERT_OWNER);
    return STATUS_OK;
}

int sqlite_delete_owner(struct store *store, int64_t owner) {
    return sqlite_write((struct sqlite *)store, SQL_DELETE_OWNER, "i", owner);
}

int sqlite_next_owner(struct store *store, int64_t after, struct owner_row *out_owner) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int status = sqlite_run(sqlite, SQL_NEXT_OWNER, "i", after);
    if (status)
        return status;
    out_owner->id = sqlite3_column_int64(sqlite->statements[SQL_NEXT_OWNER], 0);
    out_owner->slot = sqlite3_column_int64(sqlite->statements[SQL_NEXT_OWNER], 1);
    sqlite_reset(sqlite, SQL_NEXT_OWNER);
    return STATUS_OK;
}

int sqlite_claim_job(struct store *store, int64_t owner, struct job_row *out_job) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int64_t key;
    int status = sqlite_number(sqlite, SQL_FIRST_UNOWNED, &key, "");
    if (!status)
        status = sqlite_run(sqlite, SQL_CLAIM_JOB, "ii", key, owner);
    if (status)
        return status;
    status = sqlite_job_row(sqlite, sqlite->statements[SQL_CLAIM_JOB], out_job);
    sqlite_reset(sqlite, SQL_CLAIM_JOB);
    return status;
}

int sqlite_has_unowned(struct store *store, bool *out_has) {
    int64_t key;
    int status = sqlite_number((struct sqlite *)store, SQL_FIRST_UNOWNED, &key, "");
    *out_has = status == STATUS_OK;
    return status == STATUS_NOTHING ? STATUS_OK : status;
}

int sqlite_release_job(struct store *store, int64_t key, int64_t owner) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int status = sqlite_write(sqlite, SQL_RELEASE_JOB, "ii", key, owner);
    if (status)
        return status;
    return sqlite3_changes(sqlite->db) > 0 ? STATUS_OK : STATUS_NOT_FOUND;
}

int sqlite_release_jobs(struct store *store, int64_t owner, int64_t *out_count) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int status = sqlite_write(sqlite, SQL_RELEASE_JOBS, "i", owner);
    *out_count = status ? 0 : sqlite3_changes64(sqlite->db);
    return status;
}

// Visits the rows that the statement has changed; the first one stands. Returns STATUS_NOTHING
// behind the last.
static int visit_failed(struct sqlite *sqlite, const struct mass_failure *failure,
                        int64_t *out_count, int64_t *out_bytes) {
    sqlite3_stmt *statement = sqlite->statements[SQL_FAIL_JOBS];
    int code = SQLITE_ROW;
    while (code == SQLITE_ROW) {
        struct job_row job;
        int status = sqlite_job_row(sqlite, statement, &job);
        if (status)
            return status;
        ++*out_count;
        *out_bytes += job.bytes;
        if (failure->visit)
            failure->visit(failure->context, &job);
        code = sqlite3_step(statement);
    }
    return code == SQLITE_DONE ? STATUS_NOTHING : sqlite_fail(sqlite, code, "fail the jobs");
}

int sqlite_fail_jobs(struct store *store, const struct mass_failure *failure, int64_t *out_count) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int64_t n_bytes = 0;
    *out_count = 0;
    int status = sqlite_run(sqlite, SQL_FAIL_JOBS, "isii", failure->owner, failure->reason,
                            failure->now, failure->limit);
    if (status)
        return status == STATUS_NOTHING ? STATUS_OK : status;
    status = visit_failed(sqlite, failure, out_count, &n_bytes);
    sqlite_reset(sqlite, SQL_FAIL_JOBS);
    if (status != STATUS_NOTHING)
        return status;
    return sqlite_write(sqlite, SQL_GAUGE_FAIL_JOBS, "ii", *out_count, n_bytes);
}

int sqlite_note_death(struct store *store, int64_t key, int64_t idx, struct job_row *out_job) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int status = sqlite_run(sqlite, SQL_NOTE_DEATH, "ii", key, idx);
    if (status)
        return status == STATUS_NOTHING ? STATUS_NOT_FOUND : status;
    status = sqlite_job_row(sqlite, sqlite->statements[SQL_NOTE_DEATH], out_job);
    sqlite_reset(sqlite, SQL_NOTE_DEATH);
    return status;
}
