// SPDX-License-Identifier: MIT
//
// The floor under the product's speed: the bare work that SQLite does for the same rows, in one
// thread, with prepared statements and nothing around them. The connection, the schema and the
// texts are the library's own, so that they cannot drift from what is measured beside them.
//
//   floor drain STORE DURABILITY TARGETS JOBS PER_COMMIT
//   floor submit STORE DURABILITY JOBS TARGETS_OF_EACH
//
// STORE is made, and must not exist. Prints lines of a name and a number.

#include "store_sqlite.h"

#include "clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESULT_BYTES = 1024, TTL_MS = 86400000 };

struct floor {
    struct store *store;
    sqlite3 *db;
    sqlite3_stmt *begin, *commit;
    sqlite3_stmt *insert_job, *insert_target, *add_job;
    sqlite3_stmt *progress, *insert_outcome;
    uint64_t dice;
};

static void die(const char *doing, const char *why) {
    fprintf(stderr, "floor: cannot %s: %s\n", doing, why);
    exit(1);
}

static void step(struct floor *floor, sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE)
        die(sqlite3_sql(statement), sqlite3_errmsg(floor->db));
    sqlite3_reset(statement);
}

static sqlite3_stmt *prepare(struct floor *floor, enum sql sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v3(floor->db, sql_texts[sql], -1, SQLITE_PREPARE_PERSISTENT, &statement,
                           NULL))
        die(sql_texts[sql], sqlite3_errmsg(floor->db));
    return statement;
}

static void floor_open(struct floor *floor, const char *path, const char *durability) {
    struct place place;
    struct fault fault;
    bool is_full = strcmp(durability, "full") == 0;
    if (place_open(path, &place, &fault) ||
        store_open(&place, is_full ? DURABILITY_FULL : DURABILITY_NORMAL, true, &floor->store,
                   &fault))
        die("open the store", fault.text);
    place_close(&place);
    floor->db = ((struct sqlite *)floor->store)->db;
    floor->begin = prepare(floor, SQL_BEGIN);
    floor->commit = prepare(floor, SQL_COMMIT);
    floor->insert_job = prepare(floor, SQL_INSERT_JOB);
    floor->insert_target = prepare(floor, SQL_INSERT_TARGET);
    floor->add_job = prepare(floor, SQL_GAUGE_ADD_JOB);
    floor->progress = prepare(floor, SQL_PROGRESS_JOB);
    floor->insert_outcome = prepare(floor, SQL_INSERT_OUTCOME);
    floor->dice = 1;
}

static void floor_close(struct floor *floor) {
    sqlite3_stmt *const statements[] = {
        floor->begin,   floor->commit,   floor->insert_job,     floor->insert_target,
        floor->add_job, floor->progress, floor->insert_outcome,
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        sqlite3_finalize(statements[i]);
    floor->store->ops->close(floor->store);
}

static uint64_t roll(struct floor *floor) {
    floor->dice = floor->dice * 6364136223846793005u + 1442695040888963407u;
    return floor->dice;
}

// Like the product's: ids grow, keys come from anywhere.
static void insert_job(struct floor *floor, int64_t number, int64_t n_targets) {
    char id[JOB_ID_SIZE];
    uint64_t key[STORE_KEY_SIZE / sizeof(uint64_t)];
    sqlite3_stmt *job = floor->insert_job;
    int64_t now = clock_wall_ms(NULL) & 0xffffffffffff;
    snprintf(id, sizeof id, "%08x-%04x-7%03x-8%03x-%012" PRIx64, (unsigned)(now >> 16),
             (unsigned)(now & 0xffff), (unsigned)(number & 0xfff), (unsigned)(number >> 12 & 0xfff),
             roll(floor) >> 16);
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        key[i] = roll(floor) * 0x9e3779b97f4a7c15u;
    char caller[32];
    snprintf(caller, sizeof caller, "caller %" PRId64, number);
    sqlite3_bind_text(job, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_text(job, 2, caller, -1, SQLITE_STATIC);
    sqlite3_bind_text(job, 3, "", 0, SQLITE_STATIC);
    sqlite3_bind_blob(job, 4, key, sizeof key, SQLITE_STATIC);
    sqlite3_bind_int64(job, 5, 0);
    sqlite3_bind_int64(job, 6, n_targets);
    sqlite3_bind_int64(job, 7, now);
    sqlite3_bind_int64(job, 8, now + TTL_MS);
    step(floor, job);
}

static void insert_targets(struct floor *floor, int64_t job, int64_t n_targets) {
    char url[64];
    sqlite3_bind_int64(floor->insert_target, 1, job);
    for (int64_t idx = 0; idx < n_targets; idx++) {
        int len = snprintf(url, sizeof url, "https://example.com/%" PRId64 "/%" PRId64, job, idx);
        sqlite3_bind_int64(floor->insert_target, 2, idx);
        sqlite3_bind_text(floor->insert_target, 3, url, len, SQLITE_STATIC);
        step(floor, floor->insert_target);
    }
}

static void submit_one(struct floor *floor, int64_t number, int64_t n_targets) {
    step(floor, floor->begin);
    insert_job(floor, number, n_targets);
    insert_targets(floor, sqlite3_last_insert_rowid(floor->db), n_targets);
    step(floor, floor->add_job);
    step(floor, floor->commit);
}

static void store_outcome(struct floor *floor, int64_t job, int64_t idx) {
    static const char result[RESULT_BYTES];
    int64_t now = clock_wall_ms(NULL);
    sqlite3_stmt *progress = floor->progress, *outcome = floor->insert_outcome;
    sqlite3_bind_int64(progress, 1, job);
    sqlite3_bind_int64(progress, 2, idx);
    sqlite3_bind_int64(progress, 3, 0);
    sqlite3_bind_int64(progress, 4, RESULT_BYTES);
    sqlite3_bind_int64(progress, 5, now + TTL_MS);
    step(floor, progress);
    sqlite3_bind_int64(outcome, 1, job);
    sqlite3_bind_int64(outcome, 2, idx);
    sqlite3_bind_blob(outcome, 3, result, sizeof result, SQLITE_STATIC);
    sqlite3_bind_int64(outcome, 7, 1);
    sqlite3_bind_int64(outcome, 8, now);
    sqlite3_bind_int64(outcome, 9, now);
    step(floor, outcome);
}

static int64_t drain(struct floor *floor, int64_t n_targets, int64_t n_jobs, int64_t per_commit) {
    for (int64_t job = 1; job <= n_jobs; job++) {
        step(floor, floor->begin);
        insert_job(floor, job, n_targets);
        step(floor, floor->add_job);
        step(floor, floor->commit);
    }
    int64_t began_us = clock_mono_us(NULL);
    for (int64_t i = 0; i < n_targets;) {
        step(floor, floor->begin);
        for (int64_t end = i + per_commit; i < end && i < n_targets; i++)
            store_outcome(floor, 1 + i % n_jobs, i / n_jobs);
        step(floor, floor->commit);
    }
    return clock_mono_us(NULL) - began_us;
}

static int64_t submit(struct floor *floor, int64_t n_jobs, int64_t n_targets) {
    int64_t began_us = clock_mono_us(NULL);
    for (int64_t i = 0; i < n_jobs; i++)
        submit_one(floor, i, n_targets);
    return clock_mono_us(NULL) - began_us;
}

int main(int argc, char **argv) {
    bool is_drain = argc == 7 && strcmp(argv[1], "drain") == 0;
    if (!is_drain && !(argc == 6 && strcmp(argv[1], "submit") == 0)) {
        fputs("usage: floor drain STORE DURABILITY TARGETS JOBS PER_COMMIT\n"
              "       floor submit STORE DURABILITY JOBS TARGETS_OF_EACH\n",
              stderr);
        return 2;
    }
    struct floor floor;
    int64_t count = atoll(argv[4]), each = atoll(argv[5]);
    floor_open(&floor, argv[2], argv[3]);
    int64_t span_us =
        is_drain ? drain(&floor, count, each, atoll(argv[6])) : submit(&floor, count, each);
    floor_close(&floor);
    printf("count %" PRId64 "\nseconds %.6f\n", count, (double)span_us / 1e6);
    return 0;
}
