// SPDX-License-Identifier: MIT
//
// The C core without Lua: a job whose fetch is a C function. Run twice, it fetches once.
//
//     make library
//     cc -Icsrc examples/echo.c build/lua5.4/libbatch.a -lsqlite3 -lcrypto -lcurl -lm -o echo

#include "runner.h"

#include <stdio.h>

// Makes what the fetches of one worker thread share, such as a connection.
static void *begin(void *context, struct hand *hand) {
    (void)hand;
    return context;
}

static void end(void *state) {
    (void)state;
}

static void fetch(void *state, struct task *task) {
    struct bytes url = {task->target.url, task->target.url_len}, no_meta = {NULL, 0};
    (void)state;
    if (url.len > 12)
        task_fail_with(task, "too long", "12 bytes are enough");
    else
        task_succeed(task, url, no_meta);
}

int main(void) {
    struct fault fault;
    struct place place = {0};
    struct runner_config config = {
        .place = &place,
        .executor = EXECUTOR_THREADS,
        .workers = 2,
        .caps = {.targets_per_job = 32, .jobs_per_caller = 1, .jobs_total = 8},
        .ttl_ms = 24 * 3600 * 1000,
        .max_bytes = 64 << 20,
        .max_result_bytes = 8 << 20,
        .retry_wait_ms = 1000,
        .retry_for_ms = 60000,
        .target_timeout_ms = 300000,
        .crash_limit = 10,
        .durability = DURABILITY_FULL,
        .resumes = true,
        .logs_to_stderr = true,
        .fetcher = {.begin = begin, .fetch = fetch, .end = end}};
    struct targets targets;
    struct submit submit = {.caller = {"me", 2}, .class_name = {"", 0}, .targets = &targets};
    struct runner *runner;
    struct store *store;
    struct job_row job;
    char id[JOB_ID_SIZE];
    bool is_reused;
    if (place_open("echo.db", &place, &fault) || runner_open(&config, &runner, &fault))
        return fprintf(stderr, "%s\n", fault.text), 1;
    targets_init(&targets);
    targets_add(&targets, &(struct target){"one", 3, "{}", 2});
    targets_add(&targets, &(struct target){"more than twelve", 16, "{}", 2});
    int status = runner_submit(runner, &submit, id, &is_reused, &fault);
    if (!status)
        status = runner_wait(runner, id, -1, &fault);
    if (!status)
        status = runner_begin_read(runner, &store, &fault);
    if (status) {
        fprintf(stderr, "%s\n", fault.text);
    } else {
        runner_read_job(runner, store, id, (struct bytes){0}, &job);
        printf("%s: %d failed\n", is_reused ? "known" : "fetched now", (int)job.targets_failed);
        runner_end_read(runner, store);
    }
    runner_close(runner, -1);
    runner_free(runner);
    targets_fini(&targets);
    place_close(&place);
    return status ? 1 : 0;
}
