// SPDX-License-Identifier: MIT
//
// Proves the invariants of a store: counters are the rows, the byte gauge is the sum of the stored
// results, no outcome lies beyond targets_done, a status agrees with the outcomes, the chunks of
// inputs are whole and follow one another, indexes are sound.

#include "store_sqlite.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct report {
    void (*call)(void *context, const char *text);
    void *context;
};

__attribute__((format(printf, 2, 3))) static void say(const struct report *report,
                                                      const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    report->call(report->context, text);
}

static void compare(const struct report *report, const char *id, const char *what, int64_t noted,
                    int64_t found) {
    if (noted != found)
        say(report, "job %s: %s is %lld, the rows say %lld", id, what, (long long)noted,
            (long long)found);
}

// Columns as in SQL_CHECK_JOBS.
static void check_job(const struct report *report, sqlite3_stmt *row) {
    const char *id = (const char *)sqlite3_column_text(row, 0);
    const char *status_text = (const char *)sqlite3_column_text(row, 1);
    bool has_error = sqlite3_column_type(row, 2) != SQLITE_NULL;
    int64_t total = sqlite3_column_int64(row, 3), done = sqlite3_column_int64(row, 4),
            failed = sqlite3_column_int64(row, 5);
    bool is_finished = sqlite3_column_type(row, 7) != SQLITE_NULL;
    int status = job_status_parse(status_text);
    compare(report, id, "targets_done", done, sqlite3_column_int64(row, 8));
    compare(report, id, "targets_done (by the last idx)", done, sqlite3_column_int64(row, 9));
    compare(report, id, "targets_failed", failed, sqlite3_column_int64(row, 10));
    compare(report, id, "bytes", sqlite3_column_int64(row, 6), sqlite3_column_int64(row, 11));
    if (status < 0)
        say(report, "job %s: unknown status '%s'", id, status_text);
    else if (job_is_live(status) == is_finished)
        say(report, "job %s: status '%s' does not agree with finished_at", id, status_text);
    else if (job_is_live(status) && done >= total)
        say(report, "job %s: all outcomes are there, but the status is '%s'", id, status_text);
    else if (!job_is_live(status) && status != JOB_CANCELLED && !has_error &&
             (done != total || status != (int)job_ending(total, failed)))
        say(report, "job %s: status '%s' does not agree with %lld of %lld outcomes, %lld failed",
            id, status_text, (long long)done, (long long)total, (long long)failed);
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
struct input_check {
    const struct report *report;
    int64_t job_key;  // 0: none yet
    char id[JOB_ID_SIZE];
    int64_t targets_total;
    int64_t n_targets;
    int64_t next_idx;  // behind the targets seen so far
};

static void end_job(const struct input_check *check) {
    if (check->job_key)
        compare(check->report, check->id, "targets_total", check->targets_total, check->n_targets);
}

// Columns as in SQL_CHECK_INPUTS.
static void begin_job(struct input_check *check, sqlite3_stmt *row) {
    end_job(check);
    *check = (struct input_check){.report = check->report,
                                  .job_key = sqlite3_column_int64(row, 0),
                                  .targets_total = sqlite3_column_int64(row, 2)};
    snprintf(check->id, sizeof check->id, "%s", (const char *)sqlite3_column_text(row, 1));
}

static void check_chunk(struct input_check *check, sqlite3_stmt *row) {
    int64_t first = sqlite3_column_int64(row, 3);
    struct bytes packed = sqlite_column(row, 4);
    struct target target;
    size_t offset = 0;
    int64_t n_targets = 0;
    int status;
    if (first > check->next_idx)
        say(check->report, "job %s: inputs from idx %lld on are missing", check->id,
            (long long)check->next_idx);
    if (first < check->next_idx)
        say(check->report, "job %s: inputs from idx %lld on are there twice", check->id,
            (long long)first);
    while (!(status = targets_read(packed.start, packed.len, &offset, &target)))
        n_targets++;
    if (status != STATUS_NOTHING || n_targets == 0)
        say(check->report, "job %s: inputs from idx %lld on cannot be read", check->id,
            (long long)(first + n_targets));
    check->n_targets += n_targets;
    check->next_idx = first + n_targets;
}

static int check_inputs(struct sqlite *sqlite, const struct report *report) {
    struct input_check check = {.report = report};
    int status = sqlite_run(sqlite, SQL_CHECK_INPUTS, "");
    if (status)
        return status == STATUS_NOTHING ? STATUS_OK : status;
    sqlite3_stmt *statement = sqlite->statements[SQL_CHECK_INPUTS];
    int code = SQLITE_ROW;
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
        if (sqlite3_column_int64(statement, 0) != check.job_key)
            begin_job(&check, statement);
        if (sqlite3_column_type(statement, 3) != SQLITE_NULL)
            check_chunk(&check, statement);
    }
    end_job(&check);
    status = code == SQLITE_DONE ? STATUS_OK : sqlite_fail(sqlite, code, "check the inputs");
    sqlite3_reset(statement);
    return status;
}

static int check_gauge(struct sqlite *sqlite, const struct report *report) {
    int status = sqlite_run(sqlite, SQL_CHECK_GAUGE, "");
    if (status) {
        if (status == STATUS_NOTHING)
            say(report, "the gauge row is missing");
        return status == STATUS_NOTHING ? STATUS_OK : status;
    }
    sqlite3_stmt *row = sqlite->statements[SQL_CHECK_GAUGE];
    int64_t live = sqlite3_column_int64(row, 0), bytes = sqlite3_column_int64(row, 1);
    int64_t found_live = sqlite3_column_int64(row, 2), found_bytes = sqlite3_column_int64(row, 3);
    if (live != found_live)
        say(report, "the gauge counts %lld live jobs, the rows say %lld", (long long)live,
            (long long)found_live);
    if (bytes != found_bytes)
        say(report, "the gauge counts %lld bytes of finished jobs, the rows say %lld",
            (long long)bytes, (long long)found_bytes);
    sqlite_reset(sqlite, SQL_CHECK_GAUGE);
    return STATUS_OK;
}

static int check_orphans(struct sqlite *sqlite, const struct report *report) {
    int64_t count;
    int status = sqlite_number(sqlite, SQL_CHECK_ORPHANS, &count, "");
    if (!status && count > 0)
        say(report, "%lld rows belong to no job", (long long)count);
    return status;
}

static int check_integrity(struct sqlite *sqlite, const struct report *report) {
    int status = sqlite_run(sqlite, SQL_CHECK_INTEGRITY, "");
    if (status)
        return status;
    sqlite3_stmt *statement = sqlite->statements[SQL_CHECK_INTEGRITY];
    int code = SQLITE_ROW;
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        if (text && strcmp(text, "ok") != 0)
            say(report, "%s", text);
    }
    status = code == SQLITE_DONE ? STATUS_OK : sqlite_fail(sqlite, code, "check the file");
    sqlite3_reset(statement);
    return status;
}

// Each goes on where another one could not read what it looks at: that is a fault like any other.
static int (*const checks[])(struct sqlite *sqlite, const struct report *report) = {
    check_jobs, check_inputs, check_gauge, check_orphans, check_integrity};

int sqlite_check(struct store *store, void (*report)(void *context, const char *text),
                 void *context) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct report to = {report, context};
    int status = store->ops->begin_read(store);
    if (status)
        return status;
    for (size_t i = 0; !status && i < sizeof checks / sizeof *checks; i++) {
        status = checks[i](sqlite, &to);
        if (status == STATUS_STORE) {
            say(&to, "%s", store->fault.text);
            status = STATUS_OK;
        }
    }
    store->ops->end_read(store);
    return status;
}
