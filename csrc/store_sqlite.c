// SPDX-License-Identifier: MIT
//
// The SQLite maker's connection: opening, transactions, statements, waiting for locks, and the one
// place where SQLite's codes become statuses.

#include "store_sqlite.h"

#include "clock.h"
#include "fault_point.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_PATIENCE_MS = 10000,
    COMMIT_PATIENCE_MS = 1000,  // for readers, for whom a commit waits if the store is in memory
};

int sqlite_fail(struct sqlite *sqlite, int code, const char *doing) {
    struct fault *fault = &sqlite->store.fault;
    bool is_last = sqlite->db && sqlite3_extended_errcode(sqlite->db) == code;
    const char *said = is_last ? sqlite3_errmsg(sqlite->db) : sqlite3_errstr(code);
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return fault_set(fault, STATUS_LOCKED, "cannot %s: %s", doing, said);
    case SQLITE_NOMEM:
        return fault_set(fault, STATUS_NO_MEMORY, "cannot %s: out of memory", doing);
    default:
        return fault_set(fault, STATUS_STORE, "cannot %s: %s", doing, said);
    }
}

// SQLite's own handler sleeps up to 100 ms, which starves a process beside busy ones; short sleeps
// of varying length are fair (measured: 0.15 to 0.45 ms).
static int wait_for_lock(void *context, int n_calls) {
    struct sqlite *sqlite = context;
    (void)n_calls;
    if (clock_mono_us(NULL) >= sqlite->give_up_at_us)
        return 0;
    sqlite->jitter = sqlite->jitter * 6364136223846793005u + 1442695040888963407u;
    struct timespec nap = {0, 150000 + (long)((sqlite->jitter >> 33) % 300000)};
    nanosleep(&nap, NULL);
    return 1;
}

static const char *const doings[SQL_N_STATEMENTS] = {
    [SQL_BEGIN] = "begin a transaction",        [SQL_COMMIT] = "commit",
    [SQL_INSERT_JOB] = "store the job",         [SQL_INSERT_INPUTS] = "store the targets",
    [SQL_INSERT_OUTCOME] = "store the outcome",
};

static const char *doing_of(enum sql sql) {
    return doings[sql] ? doings[sql] : "use the store";
}

sqlite3_stmt *sqlite_statement(struct sqlite *sqlite, enum sql sql, int *out_status) {
    sqlite3_stmt **statement = &sqlite->statements[sql];
    *out_status = STATUS_OK;
    if (!*statement) {
        int code = sqlite3_prepare_v3(sqlite->db, sql_texts[sql], -1, SQLITE_PREPARE_PERSISTENT,
                                      statement, NULL);
        if (code)
            *out_status = sqlite_fail(sqlite, code, doing_of(sql));
    }
    return *statement;
}

static int bind_bytes(sqlite3_stmt *statement, int place, struct bytes bytes, bool is_text) {
    if (!bytes.start)
        return sqlite3_bind_null(statement, place);
    if (is_text)
        return sqlite3_bind_text64(statement, place, bytes.start, bytes.len, SQLITE_STATIC,
                                   SQLITE_UTF8);
    return sqlite3_bind_blob64(statement, place, bytes.start, bytes.len, SQLITE_STATIC);
}

static int bind(sqlite3_stmt *statement, const char *types, va_list args) {
    int code = SQLITE_OK;
    for (int i = 1; *types && !code; types++, i++) {
        if (*types == 'i')
            code = sqlite3_bind_int64(statement, i, va_arg(args, int64_t));
        else if (*types == 's')
            code = sqlite3_bind_text(statement, i, va_arg(args, const char *), -1, SQLITE_STATIC);
        else
            code = bind_bytes(statement, i, va_arg(args, struct bytes), *types == 't');
    }
    return code;
}

static int run(struct sqlite *sqlite, enum sql sql, const char *types, va_list args) {
    int status;
    sqlite3_stmt *statement = sqlite_statement(sqlite, sql, &status);
    if (!statement)
        return status;
    int code = bind(statement, types, args);
    if (!code)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return STATUS_OK;
    status = code == SQLITE_DONE ? STATUS_NOTHING : sqlite_fail(sqlite, code, doing_of(sql));
    sqlite3_reset(statement);
    return status;
}

int sqlite_run(struct sqlite *sqlite, enum sql sql, const char *types, ...) {
    va_list args;
    va_start(args, types);
    int status = run(sqlite, sql, types, args);
    va_end(args);
    return status;
}

int sqlite_write(struct sqlite *sqlite, enum sql sql, const char *types, ...) {
    va_list args;
    va_start(args, types);
    int status = run(sqlite, sql, types, args);
    va_end(args);
    if (status == STATUS_OK)
        sqlite_reset(sqlite, sql);
    return status == STATUS_NOTHING ? STATUS_OK : status;
}

int sqlite_number(struct sqlite *sqlite, enum sql sql, int64_t *out_number, const char *types,
                  ...) {
    va_list args;
    va_start(args, types);
    int status = run(sqlite, sql, types, args);
    va_end(args);
    *out_number = 0;
    if (status)
        return status;
    bool is_null = sqlite3_column_type(sqlite->statements[sql], 0) == SQLITE_NULL;
    *out_number = sqlite3_column_int64(sqlite->statements[sql], 0);
    sqlite_reset(sqlite, sql);
    return is_null ? STATUS_NOTHING : STATUS_OK;
}

void sqlite_reset(struct sqlite *sqlite, enum sql sql) {
    sqlite3_reset(sqlite->statements[sql]);
}

struct bytes sqlite_column(sqlite3_stmt *statement, int column) {
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return (struct bytes){NULL, 0};
    const char *start = sqlite3_column_blob(statement, column);
    return (struct bytes){start ? start : "", (size_t)sqlite3_column_bytes(statement, column)};
}

static int sqlite_begin(struct store *store, int64_t patience_ms) {
    struct sqlite *sqlite = (struct sqlite *)store;
    sqlite->give_up_at_us = clock_mono_us(NULL) + patience_ms * 1000;
    return sqlite_write(sqlite, SQL_BEGIN, "");
}

static int sqlite_commit(struct store *store) {
    struct sqlite *sqlite = (struct sqlite *)store;
    sqlite->give_up_at_us = clock_mono_us(NULL) + COMMIT_PATIENCE_MS * 1000;
    int code = sqlite_fault_code((int)fault_point_pass(FAULT_AT_COMMIT));
    return code ? sqlite_fail(sqlite, code, "commit") : sqlite_write(sqlite, SQL_COMMIT, "");
}

static void sqlite_rollback(struct store *store) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct fault said = store->fault;  // the failure that led here, not what the rollback says
    if (!sqlite3_get_autocommit(sqlite->db))
        sqlite_write(sqlite, SQL_ROLLBACK, "");
    store->fault = said;
}

static int sqlite_begin_read(struct store *store) {
    struct sqlite *sqlite = (struct sqlite *)store;
    sqlite->give_up_at_us = clock_mono_us(NULL) + READ_PATIENCE_MS * 1000;
    return sqlite_write(sqlite, SQL_BEGIN_READ, "");
}

static void sqlite_end_read(struct store *store) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct fault said = store->fault;  // what the reader is told
    sqlite_cursor_close(sqlite->cursor);
    if (sqlite_commit(store)) {  // cheaper than a rollback
        store->fault = said;
        sqlite_rollback(store);
    }
}

static int sqlite_data_version(struct store *store, int64_t *out_version) {
    return sqlite_number((struct sqlite *)store, SQL_DATA_VERSION, out_version, "");
}

static void sqlite_close(struct store *store) {
    struct sqlite *sqlite = (struct sqlite *)store;
    sqlite_cursor_close(sqlite->cursor);
    for (int i = 0; i < SQL_N_STATEMENTS; i++)
        sqlite3_finalize(sqlite->statements[i]);
    sqlite3_close(sqlite->db);
    buffer_fini(&sqlite->texts);
    sqlite_forget_recent(sqlite);
    free(sqlite);
}

// Makes the file with mode 0600 before SQLite does. Only where there is none: closing another
// descriptor of an open database would drop this process's locks on it.
static int make_file(const struct place *place, struct fault *fault) {
    int fd = open(place->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
        return STATUS_OK;
    }
    if (errno == EEXIST)
        return STATUS_OK;
    return fault_set(fault, STATUS_STORE, "cannot make the store %s: %s", place->path,
                     strerror(errno));
}

// Debian's SQLite overwrites all that is deleted unless it is told not to: clearing a large job
// would write it once more, in one transaction. A log that one large transaction has made long is
// cut when it begins anew; twice what it has between checkpoints, so that this is rare.
#define PRAGMAS                                                                                    \
    "pragma trusted_schema = off; pragma secure_delete = fast; "                                   \
    "pragma journal_size_limit = 8388608; "

static const char *const pragmas[] = {
    [DURABILITY_NORMAL] = PRAGMAS "pragma synchronous = normal",
    [DURABILITY_FULL] = PRAGMAS "pragma synchronous = full",
};

static int set_up(struct sqlite *sqlite, enum store_durability durability, bool is_first) {
    sqlite3_busy_handler(sqlite->db, wait_for_lock, sqlite);
    sqlite3_extended_result_codes(sqlite->db, 1);
    sqlite->give_up_at_us = clock_mono_us(NULL) + READ_PATIENCE_MS * 1000;
    if (sqlite3_db_readonly(sqlite->db, "main") == 1)
        return fault_set(&sqlite->store.fault, STATUS_STORE, "cannot open the store: read-only");
    // Before a migration, which deletes more than anybody else.
    int code = sqlite3_exec(sqlite->db, pragmas[durability], NULL, NULL, NULL);
    if (code)
        return sqlite_fail(sqlite, code, "open the store");
    return is_first ? sqlite_migrate(sqlite) : STATUS_OK;
}

int store_open(const struct place *place, enum store_durability durability, bool is_first,
               struct store **out_store, struct fault *fault) {
    *out_store = NULL;
    int status = place->is_memory || !is_first ? STATUS_OK : make_file(place, fault);
    if (status)
        return status;
    struct sqlite *sqlite = calloc(1, sizeof *sqlite);
    if (!sqlite)
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    sqlite->store.ops = &sqlite_ops;
    sqlite->jitter = (uint64_t)clock_mono_us(NULL) ^ (uint64_t)(uintptr_t)sqlite;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (place->is_memory)
        flags |= SQLITE_OPEN_URI | SQLITE_OPEN_CREATE;
    int code = sqlite3_open_v2(place->is_memory ? place->uri : place->path, &sqlite->db, flags,
                               place->is_memory ? NULL : sqlite_vfs_name());
    if (code)
        status = sqlite_fail(sqlite, code, "open the store");
    else
        status = set_up(sqlite, durability, is_first);
    if (status) {
        fault_set(fault, status, "%s: %s", place->path, sqlite->store.fault.text);
        sqlite_close(&sqlite->store);
        return status;
    }
    *out_store = &sqlite->store;
    return STATUS_OK;
}

const struct store_ops sqlite_ops = {
    .close = sqlite_close,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .begin_read = sqlite_begin_read,
    .end_read = sqlite_end_read,
    .data_version = sqlite_data_version,
    .find_job = sqlite_find_job,
    .read_job = sqlite_read_job,
    .count_live_of = sqlite_count_live_of,
    .count_live = sqlite_count_live,
    .insert_job = sqlite_insert_job,
    .start_job = sqlite_start_job,
    .cancel_job = sqlite_cancel_job,
    .touch_job = sqlite_touch_job,
    .set_busy = sqlite_set_busy,
    .put_outcome = sqlite_put_outcome,
    .read_inputs = sqlite_read_inputs,
    .list_jobs = sqlite_list_jobs,
    .list_targets = sqlite_list_targets,
    .list_changes = sqlite_list_changes,
    .next_job = sqlite_next_job,
    .next_target = sqlite_next_target,
    .cursor_close = sqlite_cursor_close,
    .insert_owner = sqlite_insert_owner,
    .delete_owner = sqlite_delete_owner,
    .next_owner = sqlite_next_owner,
    .claim_job = sqlite_claim_job,
    .has_unowned = sqlite_has_unowned,
    .release_job = sqlite_release_job,
    .release_jobs = sqlite_release_jobs,
    .fail_jobs = sqlite_fail_jobs,
    .note_death = sqlite_note_death,
    .read_gauges = sqlite_read_gauges,
    .drop_expired = sqlite_drop_expired,
    .drop_oldest = sqlite_drop_oldest,
    .clear_dropped = sqlite_clear_dropped,
    .shrink = sqlite_shrink,
    .check = sqlite_check,
    .repair = sqlite_repair,
    .backup = sqlite_backup,
};
