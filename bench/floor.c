// SPDX-License-Identifier: MIT
//
// The floor under the product's speed: the bare work that SQLite does for the same rows, in one
// thread, with prepared statements and nothing around them. The connection, the schema and the
// texts are the library's own, so that they cannot drift from what is measured beside them.
//
//   floor drain STORE DURABILITY TARGETS JOBS PER_COMMIT BYTES_OF_EACH
//   floor together STORE DURABILITY TARGETS JOBS PER_COMMIT BYTES_OF_EACH PROCESSES
//                              the same by so many processes, each with its share of the jobs
//   floor submit STORE DURABILITY JOBS TARGETS_OF_EACH PER_COMMIT
//   floor read STORE JOBS    all outcomes of the first so many jobs, each job in a transaction
//   floor start STORE SAMPLES    idle; the insert of a job, and the wake-up of a thread
//
// STORE is made, and must not exist but for read. Prints lines of a name and a number.

#include "store_sqlite.h"

#include "clock.h"
#include "threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_RESULT_BYTES = 1 << 20,
    CHUNK_BYTES = 3900,
    TTL_MS = 86400000,
    IDLE_US = 15000,
    N_WARM = 10
};

struct floor {
    struct store *store;
    sqlite3 *db;
    sqlite3_stmt *begin, *commit;
    sqlite3_stmt *insert_job, *insert_inputs, *add_job;
    sqlite3_stmt *progress, *insert_outcome;
    struct targets targets;  // of the job that is being submitted
    int64_t n_bytes;         // of a result
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
    floor->insert_inputs = prepare(floor, SQL_INSERT_INPUTS);
    floor->add_job = prepare(floor, SQL_GAUGE_ADD_JOB);
    floor->progress = prepare(floor, SQL_PROGRESS_JOB);
    floor->insert_outcome = prepare(floor, SQL_INSERT_OUTCOME);
    targets_init(&floor->targets);
    floor->dice = 1;
}

static void floor_close(struct floor *floor) {
    sqlite3_stmt *const statements[] = {
        floor->begin,   floor->commit,   floor->insert_job,     floor->insert_inputs,
        floor->add_job, floor->progress, floor->insert_outcome,
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        sqlite3_finalize(statements[i]);
    targets_fini(&floor->targets);
    floor->store->ops->close(floor->store);
}

static uint64_t roll(struct floor *floor) {
    floor->dice = floor->dice * 6364136223846793005u + 1442695040888963407u;
    return floor->dice;
}

// Like the product's: ids grow, keys come from anywhere.
static void insert_job(struct floor *floor, int64_t number, int64_t n_targets) {
    char id[JOB_ID_SIZE];
    uint64_t key[CANONICAL_KEY_BYTES / sizeof(uint64_t)];
    sqlite3_stmt *job = floor->insert_job;
    uint64_t now = (uint64_t)clock_wall_ms(NULL) & 0xffffffffffff;
    snprintf(id, sizeof id, "%08x-%04x-7%03x-8%03x-%012" PRIx64, (unsigned)(now >> 16),
             (unsigned)(now & 0xffff), (unsigned)number & 0xfff, (unsigned)number >> 12 & 0xfff,
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

// In chunks that fit into a page, as the product's.
static void insert_inputs(struct floor *floor, int64_t job, int64_t n_targets) {
    char url[64];
    struct target target = {.url = url, .options = "{}", .options_len = 2};
    struct buffer *packed = &floor->targets.packed;
    packed->len = 0;
    for (int64_t idx = 0, first = 0; idx < n_targets; idx++) {
        target.url_len =
            (size_t)snprintf(url, sizeof url, "https://example.com/%" PRId64 "/%" PRId64, job, idx);
        targets_add(&floor->targets, &target);
        if (packed->len < CHUNK_BYTES && idx + 1 < n_targets)
            continue;
        sqlite3_bind_int64(floor->insert_inputs, 1, job << STORE_IDX_BITS | first);
        sqlite3_bind_blob64(floor->insert_inputs, 2, packed->bytes, packed->len, SQLITE_STATIC);
        step(floor, floor->insert_inputs);
        packed->len = 0;
        first = idx + 1;
    }
}

// Jobs from one number up to another, in one transaction.
static void submit_some(struct floor *floor, int64_t from, int64_t upto, int64_t n_targets) {
    step(floor, floor->begin);
    for (int64_t number = from; number < upto; number++) {
        insert_job(floor, number, n_targets);
        insert_inputs(floor, sqlite3_last_insert_rowid(floor->db), n_targets);
        step(floor, floor->add_job);
    }
    step(floor, floor->commit);
}

static void store_outcome(struct floor *floor, int64_t job, int64_t idx) {
    static const char result[MAX_RESULT_BYTES];
    int64_t now = clock_wall_ms(NULL);
    sqlite3_stmt *progress = floor->progress, *outcome = floor->insert_outcome;
    sqlite3_bind_int64(progress, 1, job);
    sqlite3_bind_int64(progress, 2, idx);
    sqlite3_bind_int64(progress, 3, 0);
    sqlite3_bind_int64(progress, 4, floor->n_bytes);
    sqlite3_bind_int64(progress, 5, now + TTL_MS);
    step(floor, progress);
    sqlite3_bind_int64(outcome, 1, job);
    sqlite3_bind_int64(outcome, 2, idx);
    sqlite3_bind_blob(outcome, 3, result, (int)floor->n_bytes, SQLITE_STATIC);
    sqlite3_bind_int64(outcome, 7, 1);
    sqlite3_bind_int64(outcome, 8, now);
    sqlite3_bind_int64(outcome, 9, now);
    step(floor, outcome);
}

static void insert_jobs(struct floor *floor, int64_t n_jobs, int64_t n_targets) {
    for (int64_t job = 1; job <= n_jobs; job++) {
        step(floor, floor->begin);
        insert_job(floor, job, n_targets);
        step(floor, floor->add_job);
        step(floor, floor->commit);
    }
}

// What is drained: n_targets of n_jobs in turn, the first of which is job `first`.
struct share {
    int64_t n_targets, first, n_jobs, per_commit;
};

static int64_t drain(struct floor *floor, const struct share *share) {
    int64_t began_us = clock_mono_us(NULL);
    for (int64_t i = 0; i < share->n_targets;) {
        step(floor, floor->begin);
        for (int64_t end = i + share->per_commit; i < end && i < share->n_targets; i++)
            store_outcome(floor, share->first + i % share->n_jobs, i / share->n_jobs);
        step(floor, floor->commit);
    }
    return clock_mono_us(NULL) - began_us;
}

static int64_t submit(struct floor *floor, int64_t n_jobs, int64_t n_targets, int64_t per_commit) {
    int64_t began_us = clock_mono_us(NULL);
    for (int64_t i = 0; i < n_jobs; i += per_commit)
        submit_some(floor, i, i + per_commit < n_jobs ? i + per_commit : n_jobs, n_targets);
    return clock_mono_us(NULL) - began_us;
}

// --- together ---

// No connection lives through a fork, so each process opens the store by itself.
struct crew {
    const char *path, *durability;
    int64_t n_bytes;
    int ready[2], start[2], done[2];  // pipes: a byte of each, the end of one, a byte of each
};

static void await(int fd, int64_t n_bytes) {
    char byte;
    for (int64_t i = 0; i < n_bytes; i++)
        if (read(fd, &byte, 1) != 1)
            die("drain together", "a process has failed");
}

static void tell(int fd) {
    if (write(fd, "", 1) != 1)
        die("drain together", "the first process is gone");
}

static void work(const struct crew *crew, const struct share *share) {
    struct floor floor;
    char byte;
    close(crew->start[1]);
    floor_open(&floor, crew->path, crew->durability);
    floor.n_bytes = crew->n_bytes;
    tell(crew->ready[1]);
    if (read(crew->start[0], &byte, 1))
        die("drain together", "the start is no end of a pipe");
    drain(&floor, share);
    tell(crew->done[1]);
    floor_close(&floor);
}

// Clocks from the moment that all have opened the store until the last has committed.
static int64_t together(struct crew *crew, const struct share *whole, int64_t n_processes) {
    struct share share = *whole;
    share.n_jobs /= n_processes;
    share.n_targets /= n_processes;
    if (pipe(crew->ready) || pipe(crew->start) || pipe(crew->done))
        die("drain together", "no pipes");
    for (int64_t i = 0; i < n_processes; i++, share.first += share.n_jobs) {
        pid_t pid = fork();
        if (pid < 0)
            die("drain together", "no more processes");
        if (!pid) {
            work(crew, &share);
            exit(0);
        }
    }
    close(crew->ready[1]);
    close(crew->done[1]);
    await(crew->ready[0], n_processes);
    int64_t began_us = clock_mono_us(NULL);
    close(crew->start[1]);
    await(crew->done[0], n_processes);
    int64_t span_us = clock_mono_us(NULL) - began_us;
    while (wait(NULL) > 0)
        continue;
    return span_us;
}

// --- read ---

static int64_t read_outcomes(struct floor *floor, int64_t n_jobs, int64_t *out_count) {
    sqlite3_stmt *begin = prepare(floor, SQL_BEGIN_READ), *list = prepare(floor, SQL_LIST_OUTCOMES);
    int64_t began_us = clock_mono_us(NULL), n_bytes = 0;
    *out_count = 0;
    for (int64_t job = 1; job <= n_jobs; job++) {
        step(floor, begin);
        sqlite3_bind_int64(list, 1, job);
        sqlite3_bind_int64(list, 2, 0);
        sqlite3_bind_int64(list, 3, -1);
        sqlite3_bind_int64(list, 4, 1);
        for (; sqlite3_step(list) == SQLITE_ROW; ++*out_count)
            n_bytes += sqlite3_column_blob(list, 3) ? sqlite3_column_bytes(list, 3) : 0;
        sqlite3_reset(list);
        step(floor, floor->commit);
    }
    if (!n_bytes)
        die("read", "there are no results");
    sqlite3_finalize(begin);
    sqlite3_finalize(list);
    return clock_mono_us(NULL) - began_us;
}

// --- start ---

struct sleeper {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int64_t n_calls;
    int64_t woken_us;  // 0: not yet
};

static void *sleep_and_stamp(void *argument) {
    struct sleeper *sleeper = argument;
    pthread_mutex_lock(&sleeper->lock);
    for (int64_t seen = 0; seen >= 0; seen = sleeper->n_calls) {
        while (sleeper->n_calls == seen)
            pthread_cond_wait(&sleeper->wake, &sleeper->lock);
        sleeper->woken_us = clock_mono_us(NULL);
    }
    pthread_mutex_unlock(&sleeper->lock);
    return NULL;
}

static void call(struct sleeper *sleeper, int64_t n_calls) {
    pthread_mutex_lock(&sleeper->lock);
    sleeper->n_calls = n_calls;
    sleeper->woken_us = 0;
    pthread_cond_signal(&sleeper->wake);
    pthread_mutex_unlock(&sleeper->lock);
}

static int64_t when_woken(struct sleeper *sleeper) {
    int64_t woken_us = 0;
    while (!woken_us) {
        usleep(IDLE_US);
        pthread_mutex_lock(&sleeper->lock);
        woken_us = sleeper->woken_us;
        pthread_mutex_unlock(&sleeper->lock);
    }
    return woken_us;
}

static int by_span(const void *a, const void *b) {
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void start(struct floor *floor, int64_t n_samples) {
    struct sleeper sleeper = {.n_calls = 0};
    pthread_t thread;
    int64_t *spans_us = malloc((size_t)n_samples * sizeof *spans_us);
    pthread_mutex_init(&sleeper.lock, NULL);
    threads_cond_init(&sleeper.wake);
    if (!spans_us || threads_start(&thread, sleep_and_stamp, &sleeper))
        die("start a thread", "no memory");
    for (int64_t i = -N_WARM; i < n_samples; i++) {
        usleep(IDLE_US);
        int64_t began_us = clock_mono_us(NULL);
        submit_some(floor, i, i + 1, 1);
        call(&sleeper, i + N_WARM + 1);
        int64_t woken_us = when_woken(&sleeper);
        if (i >= 0)
            spans_us[i] = woken_us - began_us;
    }
    call(&sleeper, -1);
    pthread_join(thread, NULL);
    qsort(spans_us, (size_t)n_samples, sizeof *spans_us, by_span);
    printf("p50 %.7f\np99 %.7f\n", (double)spans_us[n_samples / 2] / 1e6,
           (double)spans_us[n_samples * 99 / 100] / 1e6);
    free(spans_us);
}

// --- main ---

static void print_span(int64_t count, int64_t span_us) {
    printf("count %" PRId64 "\nseconds %.6f\n", count, (double)span_us / 1e6);
}

static void run_drain(struct floor *floor, char **argv) {
    struct share share = {atoll(argv[4]), 1, atoll(argv[5]), atoll(argv[6])};
    floor_open(floor, argv[2], argv[3]);
    floor->n_bytes = atoll(argv[7]);
    insert_jobs(floor, share.n_jobs, share.n_targets);
    print_span(share.n_targets, drain(floor, &share));
    floor_close(floor);
}

static void run_together(struct floor *floor, char **argv) {
    struct share share = {atoll(argv[4]), 1, atoll(argv[5]), atoll(argv[6])};
    struct crew crew = {.path = argv[2], .durability = argv[3], .n_bytes = atoll(argv[7])};
    floor_open(floor, crew.path, crew.durability);
    insert_jobs(floor, share.n_jobs, share.n_targets);
    floor_close(floor);
    print_span(share.n_targets, together(&crew, &share, atoll(argv[8])));
}

static void run_submit(struct floor *floor, char **argv) {
    int64_t n_jobs = atoll(argv[4]);
    floor_open(floor, argv[2], argv[3]);
    print_span(n_jobs, submit(floor, n_jobs, atoll(argv[5]), atoll(argv[6])));
    floor_close(floor);
}

static void run_read(struct floor *floor, char **argv) {
    int64_t count;
    floor_open(floor, argv[2], "normal");
    int64_t span_us = read_outcomes(floor, atoll(argv[3]), &count);
    print_span(count, span_us);
    floor_close(floor);
}

static void run_start(struct floor *floor, char **argv) {
    floor_open(floor, argv[2], "normal");
    start(floor, atoll(argv[3]));
    floor_close(floor);
}

static const struct mode {
    const char *name, *arguments;
    int n_arguments;
    void (*run)(struct floor *floor, char **argv);
} modes[] = {
    {"drain", "STORE DURABILITY TARGETS JOBS PER_COMMIT BYTES_OF_EACH", 6, run_drain},
    {"together", "STORE DURABILITY TARGETS JOBS PER_COMMIT BYTES_OF_EACH PROCESSES", 7,
     run_together},
    {"submit", "STORE DURABILITY JOBS TARGETS_OF_EACH PER_COMMIT", 5, run_submit},
    {"read", "STORE JOBS", 2, run_read},
    {"start", "STORE SAMPLES", 2, run_start},
};

int main(int argc, char **argv) {
    struct floor floor;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (argc == modes[i].n_arguments + 2 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run(&floor, argv);
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        fprintf(stderr, "usage: floor %s %s\n", modes[i].name, modes[i].arguments);
    return 2;
}
