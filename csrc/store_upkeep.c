// SPDX-License-Identifier: MIT
//
// Upkeep of an SQLite store: gauges, dropping what has lapsed or no longer fits, giving the space
// back, backup. Dropping a job is one small step whatever its size: it leaves its table at once and
// its rows go later, some at a time, so that no writer waits for a large one.

#include "store_sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int sqlite_read_gauges(struct store *store, struct store_gauges *out_gauges) {
    struct sqlite *sqlite = (struct sqlite *)store;
    memset(out_gauges, 0, sizeof *out_gauges);
    int status = sqlite_number(sqlite, SQL_FINISHED_BYTES, &out_gauges->stored_bytes, "");
    if (!status)
        status = sqlite_run(sqlite, SQL_LIVE_BYTES, "");
    if (status)
        return status;
    sqlite3_stmt *statement = sqlite->statements[SQL_LIVE_BYTES];
    out_gauges->live_jobs = sqlite3_column_int64(statement, 0);
    out_gauges->stored_bytes += sqlite3_column_int64(statement, 1);
    out_gauges->oldest_created_at = sqlite3_column_int64(statement, 2);
    sqlite_reset(sqlite, SQL_LIVE_BYTES);
    return STATUS_OK;
}

static int drop_job(struct sqlite *sqlite, int64_t key) {
    int status = sqlite_write(sqlite, SQL_DROP_JOB, "i", key);
    if (!status)
        status = sqlite_write(sqlite, SQL_GAUGE_DROP_JOB, "i", key);
    return status ? status : sqlite_write(sqlite, SQL_DELETE_JOB, "i", key);
}

int sqlite_drop_expired(struct store *store, int64_t now, int64_t limit, int64_t *out_count) {
    struct sqlite *sqlite = (struct sqlite *)store;
    *out_count = 0;
    int status = STATUS_OK;
    while (!status && *out_count < limit) {
        int64_t key;
        status = sqlite_number(sqlite, SQL_FIRST_EXPIRED, &key, "i", now);
        if (!status)
            status = drop_job(sqlite, key);
        if (!status)
            ++*out_count;
    }
    return status == STATUS_NOTHING ? STATUS_OK : status;
}

int sqlite_drop_oldest(struct store *store, int64_t max_bytes) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct store_gauges gauges;
    int64_t oldest, newest;
    int status = sqlite_read_gauges(store, &gauges);
    if (!status && gauges.stored_bytes <= max_bytes)
        return STATUS_NOTHING;
    if (!status)
        status = sqlite_number(sqlite, SQL_OLDEST_FINISHED, &oldest, "");
    if (!status)
        status = sqlite_number(sqlite, SQL_NEWEST_FINISHED, &newest, "");
    if (status)
        return status;
    return oldest == newest ? STATUS_NOTHING : drop_job(sqlite, oldest);
}

// Removes at most limit outcomes and as many chunks of inputs of a dropped job; with the last of
// them, its mark.
static int clear_job(struct sqlite *sqlite, int64_t key, int64_t limit, int64_t *out_n_rows) {
    int status = sqlite_write(sqlite, SQL_CLEAR_OUTCOMES, "ii", key, limit);
    if (status)
        return status;
    int64_t n_outcomes = sqlite3_changes64(sqlite->db);
    status = sqlite_write(sqlite, SQL_CLEAR_INPUTS, "ii", key, limit);
    if (status)
        return status;
    int64_t n_chunks = sqlite3_changes64(sqlite->db);
    *out_n_rows = n_outcomes + n_chunks + 1;
    bool is_clear = n_outcomes < limit && n_chunks < limit;
    return is_clear ? sqlite_write(sqlite, SQL_DELETE_DROPPED, "i", key) : STATUS_OK;
}

int sqlite_clear_dropped(struct store *store, int64_t limit) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int64_t key, n_rows, n_cleared = 0;
    int status = STATUS_OK;
    while (!status && n_cleared < limit) {
        status = sqlite_number(sqlite, SQL_FIRST_DROPPED, &key, "");
        if (!status)
            status = clear_job(sqlite, key, limit - n_cleared, &n_rows);
        if (!status)
            n_cleared += n_rows;
    }
    return status == STATUS_NOTHING && n_cleared > 0 ? STATUS_OK : status;
}

int sqlite_shrink(struct store *store) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int64_t n_pages, n_free, n_still_free;
    int status = sqlite_number(sqlite, SQL_COUNT_PAGES, &n_pages, "");
    if (!status)
        status = sqlite_number(sqlite, SQL_COUNT_FREE_PAGES, &n_free, "");
    if (status)
        return status;
    // The next results take what is left: giving all of it back would move pages for nothing.
    if (n_free <= n_pages / 8)
        return STATUS_NOTHING;
    int code = sqlite3_exec(sqlite->db, sql_texts[SQL_SHRINK], NULL, NULL, NULL);
    if (code)
        return sqlite_fail(sqlite, code, "give space back to the disk");
    status = sqlite_number(sqlite, SQL_COUNT_FREE_PAGES, &n_still_free, "");
    if (status)
        return status;
    return n_still_free < n_free ? STATUS_OK : STATUS_NOTHING;
}

// Not by "vacuum into": that writes through the source's own file system, which for a store in
// memory is memory.
static int copy_to(struct sqlite *sqlite, const char *path) {
    sqlite3 *copy = NULL;
    int code = sqlite3_open_v2(path, &copy, SQLITE_OPEN_READWRITE, sqlite_vfs_name());
    sqlite3_backup *backup = code ? NULL : sqlite3_backup_init(copy, "main", sqlite->db, "main");
    if (backup)
        sqlite3_backup_step(backup, -1);
    code = backup ? sqlite3_backup_finish(backup) : sqlite3_errcode(copy);
    int status = STATUS_OK;
    if (code)
        status = fault_set(&sqlite->store.fault, STATUS_STORE, "cannot back up to %s: %s", path,
                           sqlite3_errmsg(copy));
    sqlite3_close(copy);
    return status;
}

int sqlite_backup(struct store *store, const char *path) {
    struct sqlite *sqlite = (struct sqlite *)store;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return fault_set(&store->fault, STATUS_STORE, "cannot back up to %s: %s", path,
                         strerror(errno));
    close(fd);
    sqlite->give_up_at_us = INT64_MAX;
    int status = copy_to(sqlite, path);
    if (status)
        unlink(path);
    return status;
}
