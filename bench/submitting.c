// SPDX-License-Identifier: MIT
//
// Submits by several threads of one program through the C core, without Lua: what waits meanwhile
// shares the next transaction. Prints lines of a name and a number, as the floor does.
//
//   submitting submit STORE DURABILITY JOBS TARGETS_OF_EACH THREADS

#include "clock.h"
#include "runner.h"
#include "threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64 };

struct submitter {
    struct runner *runner;
    int64_t first, n_jobs, n_targets;
};

static void die(const char *doing, const char *why) {
    fprintf(stderr, "submitting: cannot %s: %s\n", doing, why);
    exit(1);
}

static void make_targets(struct targets *targets, int64_t job, int64_t n_targets) {
    char url[64];
    targets_init(targets);
    for (int64_t idx = 0; idx < n_targets; idx++) {
        int len = snprintf(url, sizeof url, "https://example.com/%" PRId64 "/%" PRId64, job, idx);
        targets_add(targets, &(struct target){url, (size_t)len, "{}", 2});
    }
    if (targets->packed.is_broken)
        die("make a list", "no memory");
}

// Each job has another caller and another list, as with many users.
static void *submit_share(void *argument) {
    const struct submitter *submitter = argument;
    for (int64_t i = 0; i < submitter->n_jobs; i++) {
        int64_t job = submitter->first + i;
        struct targets targets;
        struct fault fault;
        char caller[32], id[JOB_ID_SIZE];
        bool is_reused;
        int len = snprintf(caller, sizeof caller, "caller %" PRId64, job);
        make_targets(&targets, job, submitter->n_targets);
        struct submit submit = {{caller, (size_t)len}, {"", 0}, &targets};
        if (runner_submit(submitter->runner, &submit, id, &is_reused, &fault))
            die("submit", fault.text);
        if (is_reused)
            die("submit", "the store has this job already, so nothing would be measured");
        targets_fini(&targets);
    }
    return NULL;
}

// Returns how many jobs that were; each thread has as many.
static int64_t submit_all(struct runner *runner, int64_t n_jobs, int64_t n_targets, int n_threads) {
    struct submitter submitters[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int64_t each = (n_jobs + n_threads - 1) / n_threads;
    for (int i = 0; i < n_threads; i++) {
        submitters[i] = (struct submitter){runner, i * each, each, n_targets};
        if (threads_start(&threads[i], submit_share, &submitters[i]))
            die("start a thread", "no memory");
    }
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return each * n_threads;
}

static struct runner *open_runner(const char *path, const char *durability) {
    struct fault fault;
    struct place place = {0};
    struct runner *runner;
    struct runner_config config = {
        .place = &place,
        .executor = EXECUTOR_NONE,
        .caps = {.targets_per_job = 10000000, .jobs_per_caller = 1000000, .jobs_total = 1000000},
        .ttl_ms = 24 * 3600 * 1000,
        .max_bytes = INT64_C(64) << 30,
        .max_result_bytes = 8 << 20,
        .retry_wait_ms = 1000,
        .retry_for_ms = 60000,
        .target_timeout_ms = 300000,
        .crash_limit = 10,
        .durability = strcmp(durability, "full") == 0 ? DURABILITY_FULL : DURABILITY_NORMAL,
        .resumes = true,
        .logs_to_stderr = true,
    };
    if (place_open(path, &place, &fault) || runner_open(&config, &runner, &fault))
        die("open the store", fault.text);
    place_close(&place);
    return runner;
}

int main(int argc, char **argv) {
    int n_threads = argc == 7 ? atoi(argv[6]) : 0;
    if (n_threads < 1 || n_threads > MAX_THREADS || strcmp(argv[1], "submit") != 0) {
        fputs("usage: submitting submit STORE DURABILITY JOBS TARGETS_OF_EACH THREADS\n", stderr);
        return 2;
    }
    struct runner *runner = open_runner(argv[2], argv[3]);
    int64_t began_us = clock_mono_us(NULL);
    int64_t count = submit_all(runner, atoll(argv[4]), atoll(argv[5]), n_threads);
    int64_t span_us = clock_mono_us(NULL) - began_us;
    printf("count %" PRId64 "\nseconds %.6f\n", count, (double)span_us / 1e6);
    runner_close(runner, -1);
    runner_free(runner);
    return 0;
}
