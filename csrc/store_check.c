// SPDX-License-Identifier: MIT
//
// Proves the invariants of a store: counters are the rows, the byte gauge is the sum of the stored
// results, outcomes are either content or error and came in the order of their idx, none lies
// beyond its job, a status agrees with the outcomes, a live job's owner is known, the inputs are
// whole, follow one another and are those that were submitted, nothing of the schema is missing,
// indexes are sound.

#include "store_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void check_say(const struct report *report, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    report->call(report->context, text);
}

int check_tell(struct sqlite *sqlite, const char *sql, const struct report *report) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(sqlite->db, sql, -1, &statement, NULL);
    if (!code)
        code = SQLITE_ROW;
    while (code == SQLITE_ROW) {
        code = sqlite3_step(statement);
        const char *text =
            code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        if (text && strcmp(text, "ok") != 0)
            check_say(report, "%s", text);
    }
    int status = code == SQLITE_DONE ? STATUS_OK : sqlite_fail(sqlite, code, "look at the store");
    sqlite3_finalize(statement);
    return status;
}

static void compare(const struct report *report, const char *id, const char *what, int64_t noted,
                    int64_t found) {
    if (noted != found)
        check_say(report, "job %s: %s is %lld, the rows say %lld", id, what, (long long)noted,
                  (long long)found);
}

// A status beside what else the row says of the job's end.
static void check_status(const struct report *report, sqlite3_stmt *row, const char *id) {
    const char *status_text = (const char *)sqlite3_column_text(row, 1);
    bool has_error = sqlite3_column_type(row, 2) != SQLITE_NULL;
    int64_t total = sqlite3_column_int64(row, 3), done = sqlite3_column_int64(row, 4),
            failed = sqlite3_column_int64(row, 5);
    bool is_finished = sqlite3_column_type(row, 7) != SQLITE_NULL;
    int status = job_status_parse(status_text);
    if (status < 0)
        check_say(report, "job %s: unknown status '%s'", id, status_text);
    else if (job_is_live(status) == is_finished)
        check_say(report, "job %s: status '%s' does not agree with finished_at", id, status_text);
    else if (has_error && status != JOB_FAILED)
        check_say(report, "job %s: status '%s' does not agree with an error", id, status_text);
    else if (job_is_live(status) && done >= total)
        check_say(report, "job %s: all outcomes are there, but the status is '%s'", id,
                  status_text);
    else if (!job_is_live(status) && status != JOB_CANCELLED && !has_error &&
             (done != total || status != (int)job_ending(total, failed)))
        check_say(report,
                  "job %s: status '%s' does not agree with %lld of %lld outcomes, %lld failed", id,
                  status_text, (long long)done, (long long)total, (long long)failed);
}

// Columns as in SQL_CHECK_JOBS.
static void check_job(const struct report *report, sqlite3_stmt *row) {
    const char *id = (const char *)sqlite3_column_text(row, 0);
    int64_t done = sqlite3_column_int64(row, 4);
    compare(report, id, "targets_done", done, sqlite3_column_int64(row, 8));
    compare(report, id, "targets_done (by the last idx)", done, sqlite3_column_int64(row, 9));
    compare(report, id, "targets_failed", sqlite3_column_int64(row, 5),
            sqlite3_column_int64(row, 10));
    compare(report, id, "bytes", sqlite3_column_int64(row, 6), sqlite3_column_int64(row, 11));
    if (!job_id_is_valid(id))
        check_say(report, "job %s: that is no id", id);
    check_status(report, row, id);
}

static int check_jobs(struct sqlite *sqlite, const struct report *report) {
    int status = sqlite_run(sqlite, SQL_CHECK_JOBS, "");
    if (status)
        return status == STATUS_NOTHING ? STATUS_OK : status;
    sqlite3_stmt *statement = sqlite->statements[SQL_CHECK_JOBS];
    int code = SQLITE_ROW;
    for (; code == SQLITE_ROW; code = sqlite3_step(statement))
        check_job(report, statement);
    status = code == SQLITE_DONE ? STATUS_OK : sqlite_fail(sqlite, code, "check the jobs");
    sqlite3_reset(statement);
    return status;
}

// The inputs of one job, chunk by chunk.
struct walk {
    const struct report *report;
    struct inputs_found found;  // job_key 0: no job yet
    char id[JOB_ID_SIZE];
    unsigned char idem_key[CANONICAL_KEY_BYTES];
    struct canonical_hash *hash;  // of what was read so far
    int64_t next_idx;             // behind the targets seen so far
    bool is_broken;
};

// Whether the inputs are those that were submitted: by the key that was made of them then.
static int prove(struct walk *walk, bool *out_is_proven) {
    unsigned char key[CANONICAL_KEY_BYTES];
    int status = canonical_hash_end(walk->hash, key);
    *out_is_proven = !status && !walk->is_broken && memcmp(key, walk->idem_key, sizeof key) == 0;
    return status;
}

static int end_job(struct walk *walk, int (*found)(void *context, const struct inputs_found *),
                   void *context) {
    struct inputs_found *inputs = &walk->found;
    if (!inputs->job_key)
        return STATUS_OK;
    int status = prove(walk, &inputs->is_proven);
    canonical_hash_free(walk->hash);
    walk->hash = NULL;
    if (status)
        return status;
    compare(walk->report, walk->id, "targets_total", inputs->targets_total, inputs->n_targets);
    if (!inputs->is_proven && !walk->is_broken && inputs->n_targets == inputs->targets_total)
        check_say(walk->report, "job %s: its targets are not those that were submitted", walk->id);
    return found ? found(context, inputs) : STATUS_OK;
}

// Columns as in SQL_CHECK_INPUTS.
static int begin_job(struct walk *walk, sqlite3_stmt *row) {
    struct bytes caller = sqlite_column(row, 3), idem_key = sqlite_column(row, 4);
    *walk = (struct walk){.report = walk->report,
                          .found = {.job_key = sqlite3_column_int64(row, 0),
                                    .targets_total = sqlite3_column_int64(row, 2)},
                          .hash = canonical_hash_new(caller.start, caller.len)};
    snprintf(walk->id, sizeof walk->id, "%s", (const char *)sqlite3_column_text(row, 1));
    if (idem_key.len == CANONICAL_KEY_BYTES)
        memcpy(walk->idem_key, idem_key.start, CANONICAL_KEY_BYTES);
    return walk->hash ? STATUS_OK : STATUS_NO_MEMORY;
}

static void find_broken(struct walk *walk, int64_t idx, const char *what) {
    check_say(walk->report, "job %s: inputs from idx %lld on %s", walk->id, (long long)idx, what);
    walk->is_broken = true;
}

static void check_chunk(struct walk *walk, sqlite3_stmt *row) {
    int64_t first = sqlite3_column_int64(row, 5);
    struct bytes packed = sqlite_column(row, 6);
    struct target target;
    size_t offset = 0;
    int64_t n_targets = 0;
    int status;
    if (first > walk->next_idx)
        find_broken(walk, walk->next_idx, "are missing");
    if (first < walk->next_idx)
        find_broken(walk, first, "are there twice");
    while (!(status = targets_read(packed.start, packed.len, &offset, &target))) {
        canonical_hash_add(walk->hash, &target);
        n_targets++;
    }
    if (status != STATUS_NOTHING || n_targets == 0)
        find_broken(walk, first + n_targets, "cannot be read");
    walk->found.n_targets += n_targets;
    walk->next_idx = first + n_targets;
}

int check_inputs(struct sqlite *sqlite, const struct report *report,
                 int (*found)(void *context, const struct inputs_found *inputs), void *context) {
    struct walk walk = {.report = report};
    int status = sqlite_run(sqlite, SQL_CHECK_INPUTS, "");
    if (status)
        return status == STATUS_NOTHING ? STATUS_OK : status;
    sqlite3_stmt *statement = sqlite->statements[SQL_CHECK_INPUTS];
    int code = SQLITE_ROW;
    for (; code == SQLITE_ROW && !status; code = sqlite3_step(statement)) {
        if (sqlite3_column_int64(statement, 0) != walk.found.job_key) {
            status = end_job(&walk, found, context);
            status = status ? status : begin_job(&walk, statement);
        }
        if (!status && sqlite3_column_type(statement, 5) != SQLITE_NULL)
            check_chunk(&walk, statement);
    }
    if (!status)
        status = end_job(&walk, found, context);
    canonical_hash_free(walk.hash);
    if (!status && code != SQLITE_DONE)
        status = sqlite_fail(sqlite, code, "check the inputs");
    sqlite3_reset(statement);
    if (status == STATUS_NO_MEMORY)
        fault_set(&sqlite->store.fault, status, "out of memory");
    return status;
}

static int check_all_inputs(struct sqlite *sqlite, const struct report *report) {
    return check_inputs(sqlite, report, NULL, NULL);
}

static int check_gauge(struct sqlite *sqlite, const struct report *report) {
    int status = sqlite_run(sqlite, SQL_CHECK_GAUGE, "");
    if (status) {
        if (status == STATUS_NOTHING)
            check_say(report, "the gauge row is missing");
        return status == STATUS_NOTHING ? STATUS_OK : status;
    }
    sqlite3_stmt *row = sqlite->statements[SQL_CHECK_GAUGE];
    int64_t live = sqlite3_column_int64(row, 0), bytes = sqlite3_column_int64(row, 1);
    int64_t found_live = sqlite3_column_int64(row, 2), found_bytes = sqlite3_column_int64(row, 3);
    if (live != found_live)
        check_say(report, "the gauge counts %lld live jobs, the rows say %lld", (long long)live,
                  (long long)found_live);
    if (bytes != found_bytes)
        check_say(report, "the gauge counts %lld bytes of finished jobs, the rows say %lld",
                  (long long)bytes, (long long)found_bytes);
    sqlite_reset(sqlite, SQL_CHECK_GAUGE);
    return STATUS_OK;
}

static int check_orphans(struct sqlite *sqlite, const struct report *report) {
    int64_t count;
    int status = sqlite_number(sqlite, SQL_CHECK_ORPHANS, &count, "");
    if (!status && count > 0)
        check_say(report, "%lld rows belong to no job", (long long)count);
    return status;
}

static int check_outcomes(struct sqlite *sqlite, const struct report *report) {
    return check_tell(sqlite, sql_texts[SQL_CHECK_OUTCOMES], report);
}

static int check_marks(struct sqlite *sqlite, const struct report *report) {
    return check_tell(sqlite, sql_texts[SQL_CHECK_MARKS], report);
}

static int check_turns(struct sqlite *sqlite, const struct report *report) {
    return check_tell(sqlite, sql_texts[SQL_CHECK_TURNS], report);
}

static int say_missing(void *context, const char *type, const char *name, const char *sql) {
    (void)sql;
    check_say(context, "the %s %s is missing", type, name);
    return STATUS_OK;
}

static int check_schema(struct sqlite *sqlite, const struct report *report) {
    struct report copy = *report;
    return sqlite_find_missing(sqlite, say_missing, &copy);
}

// Each goes on where another one could not read what it looks at: that is a fault like any other.
static int run_checks(struct sqlite *sqlite, const struct report *report, size_t n_checks,
                      int (*const checks[])(struct sqlite *, const struct report *)) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < n_checks; i++) {
        status = checks[i](sqlite, report);
        if (status == STATUS_STORE) {
            check_say(report, "%s", sqlite->store.fault.text);
            status = STATUS_OK;
        }
    }
    return status;
}

int check_rows(struct sqlite *sqlite, const struct report *report) {
    static int (*const checks[])(struct sqlite *, const struct report *) = {
        check_schema,     check_jobs,  check_outcomes, check_turns,
        check_all_inputs, check_gauge, check_orphans,  check_marks};
    return run_checks(sqlite, report, sizeof checks / sizeof *checks, checks);
}

static int check_integrity(struct sqlite *sqlite, const struct report *report) {
    return check_tell(sqlite, "pragma integrity_check", report);
}

int check_file(struct sqlite *sqlite, const struct report *report) {
    static int (*const checks[])(struct sqlite *, const struct report *) = {check_integrity};
    return run_checks(sqlite, report, 1, checks);
}

int sqlite_check(struct store *store, void (*report)(void *context, const char *text),
                 void *context) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct report to = {report, context};
    int status = store->ops->begin_read(store);
    if (status)
        return status;
    status = check_rows(sqlite, &to);
    if (!status)
        status = check_file(sqlite, &to);
    store->ops->end_read(store);
    return status;
}
