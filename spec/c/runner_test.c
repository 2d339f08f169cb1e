// SPDX-License-Identifier: MIT
//
// The runner without Lua: many threads submit, cancel and close while eight hands fetch. Made for
// ThreadSanitizer as much as for its claims.

#include "runner.h"

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { HANDS = 8, SUBMITTERS = 4, JOBS_EACH = 16, JOBS = SUBMITTERS * JOBS_EACH, TARGETS = 12 };

// What the fetches of one test saw.
struct scene {
    struct place place;
    struct runner *runner;
    _Atomic int n_fetches[JOBS * TARGETS];
    _Atomic bool is_in_flight[JOBS];
    _Atomic int next_idx[JOBS];
    _Atomic int n_overlaps;  // two targets of a job at once, or out of order
    _Atomic int n_submitted;
    _Atomic int n_surprises;  // answers that ought not to be
    char ids[JOBS][JOB_ID_SIZE];
    char waited_id[JOB_ID_SIZE];
    int fetch_us;
    _Atomic bool is_held;  // no fetch ends meanwhile
};

static char folder[] = "/tmp/batch-runner-XXXXXX";

static void *begin(void *context, struct hand *hand) {
    (void)hand;
    return context;
}

static void end(void *state) {
    (void)state;
}

// Urls are "JOB/IDX".
static void fetch(void *state, struct task *task) {
    struct scene *scene = state;
    char *rest;
    int job = (int)strtol(task->target.url, &rest, 10), idx = (int)strtol(rest + 1, NULL, 10);
    int n_calls = ++scene->n_fetches[job * TARGETS + idx];
    bool is_alone = !atomic_exchange(&scene->is_in_flight[job], true);
    if (!is_alone || idx != task->idx || idx < scene->next_idx[job])
        scene->n_overlaps++;
    scene->next_idx[job] = idx;
    do
        usleep((useconds_t)scene->fetch_us);
    while (scene->is_held);
    scene->is_in_flight[job] = false;
    if (idx % 5 == 4 && task->attempt == 1 && n_calls == 1)
        task_postpone(task, (struct bytes){"busy", 4}, 1, false);
    else if (idx % 4 == 3)
        task_fail_with(task, "no", "hint");
    else
        task_succeed(task, (struct bytes){"content", 7}, (struct bytes){NULL, 0});
}

static int open_runner(struct scene *scene, bool resumes) {
    struct fault fault;
    struct runner_config config = {
        .place = &scene->place,
        .executor = EXECUTOR_THREADS,
        .workers = HANDS,
        .caps = {.targets_per_job = 1000, .jobs_per_caller = 1000, .jobs_total = 1000},
        .ttl_ms = 3600000,
        .max_bytes = 1 << 30,
        .max_result_bytes = 1 << 20,
        .retry_wait_ms = 1,
        .retry_for_ms = 60000,
        .target_timeout_ms = 60000,
        .crash_limit = 10,
        .durability = DURABILITY_NORMAL,
        .resumes = resumes,
        .wanted = (1 << EVENT_N_KINDS) - 1,
        .fetcher = {.context = scene, .begin = begin, .fetch = fetch, .end = end}};
    int status = runner_open(&config, &scene->runner, &fault);
    if (!CHECK("a runner opens", status == STATUS_OK))
        puts(fault.text);
    return status;
}

static struct scene *set_scene(const char *name, int fetch_us) {
    struct fault fault;
    char path[96];
    struct scene *scene = calloc(1, sizeof *scene);
    snprintf(path, sizeof path, "%s/%s.db", folder, name);
    place_open(strcmp(name, ":memory:") == 0 ? name : path, &scene->place, &fault);
    scene->fetch_us = fetch_us;
    return scene;
}

static void close_runner(struct scene *scene) {
    CHECK("a runner closes", runner_close(scene->runner, -1) == STATUS_OK);
    runner_free(scene->runner);
    scene->runner = NULL;
}

static int submit(struct scene *scene, int job) {
    struct targets targets;
    targets_init(&targets);
    for (int i = 0; i < TARGETS; i++) {
        char url[32];
        snprintf(url, sizeof url, "%d/%d", job, i);
        struct target target = {url, strlen(url), "{}", 2};
        targets_add(&targets, &target);
    }
    struct submit submit = {{"me", 2}, {"", 0}, &targets};
    struct fault fault;
    bool is_reused;
    int status = runner_submit(scene->runner, &submit, scene->ids[job], &is_reused, &fault);
    targets_fini(&targets);
    return status;
}

static _Atomic int n_submitters;

static void *run_submitter(void *argument) {
    struct scene *scene = argument;
    int first = n_submitters++ * JOBS_EACH;
    for (int job = first; job < first + JOBS_EACH; job++) {
        int status = submit(scene, job);
        scene->n_submitted += status == STATUS_OK;
        scene->n_surprises += status != STATUS_OK && status != STATUS_CLOSED;
    }
    return NULL;
}

static void start_submitters(struct scene *scene, pthread_t threads[SUBMITTERS]) {
    n_submitters = 0;
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_create(&threads[i], NULL, run_submitter, scene);
}

static void join_all(pthread_t threads[SUBMITTERS]) {
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(threads[i], NULL);
}

static bool wait_for(struct scene *scene, int job) {
    struct fault fault;
    return runner_wait(scene->runner, scene->ids[job], 10000, &fault) == STATUS_OK;
}

static void report_fault(void *context, const char *text) {
    ++*(int *)context;
    printf("    %s\n", text);
}

// Closes the stage: whether the store is sound, and how many jobs ended with each status.
static void strike(struct scene *scene, int out_n[JOB_N_STATUSES]) {
    struct fault fault;
    struct store *store;
    struct job_row job;
    int n_faults = 0;
    memset(out_n, 0, JOB_N_STATUSES * sizeof *out_n);
    if (CHECK("the store opens",
              store_open(&scene->place, DURABILITY_NORMAL, false, &store, &fault) == STATUS_OK)) {
        CHECK("it can be checked", store->ops->check(store, report_fault, &n_faults) == STATUS_OK);
        CHECK("it is sound", n_faults == 0);
        for (int i = 0; i < JOBS; i++)
            if (scene->ids[i][0] && !store->ops->read_job(store, scene->ids[i], &job))
                out_n[job.status]++;
        store->ops->close(store);
    }
    CHECK("who submits or waits is answered, or told of the close", scene->n_surprises == 0);
    CHECK("targets of a job came one at a time and in order", scene->n_overlaps == 0);
}

static void leave_scene(struct scene *scene) {
    place_close(&scene->place);
    free(scene);
}

static bool each_was_fetched(const struct scene *scene) {
    for (int i = 0; i < JOBS * TARGETS; i++) {
        bool was_busy = i % TARGETS % 5 == 4;
        if (scene->n_fetches[i] != 1 + was_busy)
            return false;
    }
    return true;
}

static void test_drain(const char *name, int fetch_us) {
    struct scene *scene = set_scene(name, fetch_us);
    pthread_t threads[SUBMITTERS];
    int n[JOB_N_STATUSES];
    if (open_runner(scene, false))
        return;
    start_submitters(scene, threads);
    join_all(threads);
    for (int i = 0; i < JOBS; i++)
        CHECK("a job ends", wait_for(scene, i));
    struct runner_stats stats;
    CHECK("stats can be had", runner_stats(scene->runner, &stats, NULL) == STATUS_OK);
    CHECK("and count each target",
          stats.figures.targets_done + stats.figures.targets_failed == (uint64_t)JOBS * TARGETS);
    CHECK("and each job", stats.figures.jobs_partial == JOBS && stats.is_healthy);
    if (scene->place.is_memory) {
        close_runner(scene);
    } else {
        close_runner(scene);
        strike(scene, n);
        CHECK("all jobs ended as they had to", n[JOB_PARTIAL] == JOBS);
    }
    CHECK("each target was fetched once", each_was_fetched(scene));
    leave_scene(scene);
}

// One hand's job after the other, submitted when its hand is about to sleep.
static void test_wake_ups(void) {
    struct scene *scene = set_scene("wakes", 100);
    if (open_runner(scene, false))
        return;
    bool is_missed = false;
    for (int i = 0; i < JOBS && !is_missed; i++)
        is_missed = submit(scene, i) || !wait_for(scene, i);
    CHECK("no submit is slept through", !is_missed);
    close_runner(scene);
    leave_scene(scene);
}

static void *run_canceller(void *argument) {
    struct scene *scene = argument;
    struct fault fault;
    for (int i = 0; i < 200000 && scene->n_submitted < JOBS; i++)
        usleep(100);
    for (int i = 0; i < JOBS; i += 2) {
        runner_cancel(scene->runner, scene->ids[i], &fault);
        scene->is_held = false;
    }
    return NULL;
}

static void test_cancel(void) {
    struct scene *scene = set_scene("cancel", 4000);
    scene->is_held = true;
    pthread_t threads[SUBMITTERS], canceller;
    int n[JOB_N_STATUSES];
    if (open_runner(scene, false))
        return;
    start_submitters(scene, threads);
    pthread_create(&canceller, NULL, run_canceller, scene);
    join_all(threads);
    pthread_join(canceller, NULL);
    for (int i = 0; i < JOBS; i++)
        CHECK("a job ends", wait_for(scene, i));
    struct runner_stats stats;
    runner_stats(scene->runner, &stats, NULL);
    CHECK("nothing is left in flight", stats.gauges.live_jobs == 0);
    CHECK("each end is counted once",
          stats.figures.jobs_partial + stats.figures.jobs_cancelled == JOBS);
    close_runner(scene);
    strike(scene, n);
    CHECK("cancelled jobs stay so", n[JOB_CANCELLED] == (int)stats.figures.jobs_cancelled &&
                                        n[JOB_PARTIAL] == JOBS - n[JOB_CANCELLED]);
    CHECK("and there were some", n[JOB_CANCELLED] > 0);
    leave_scene(scene);
}

static void *run_waiter(void *argument) {
    struct scene *scene = argument;
    struct fault fault;
    int status = runner_wait(scene->runner, scene->waited_id, -1, &fault);
    scene->n_surprises += status != STATUS_OK && status != STATUS_CLOSED;
    return NULL;
}

// Closes in the midst of it all, again and again, until everything is done.
static void test_close(void) {
    struct scene *scene = set_scene("close", 300);
    pthread_t threads[SUBMITTERS], waiter;
    int n[JOB_N_STATUSES];
    for (int round = 0; round < 5; round++) {
        if (open_runner(scene, true))
            return;
        submit(scene, 0);
        memcpy(scene->waited_id, scene->ids[0], JOB_ID_SIZE);
        start_submitters(scene, threads);
        pthread_create(&waiter, NULL, run_waiter, scene);
        usleep(5000);
        CHECK("a busy runner closes", runner_close(scene->runner, -1) == STATUS_OK);
        join_all(threads);
        pthread_join(waiter, NULL);
        runner_free(scene->runner);
    }
    if (open_runner(scene, true))
        return;
    start_submitters(scene, threads);
    join_all(threads);
    for (int i = 0; i < JOBS; i++)
        CHECK("what was given up goes on", wait_for(scene, i));
    close_runner(scene);
    strike(scene, n);
    CHECK("to its end", n[JOB_PARTIAL] == JOBS);
    leave_scene(scene);
}

int main(void) {
    char command[64];
    if (!mkdtemp(folder))
        return 1;
    test_drain("drain", 0);
    test_drain("slow", 300);
    test_drain(":memory:", 0);
    test_wake_ups();
    test_cancel();
    test_close();
    snprintf(command, sizeof command, "rm -r %s", folder);
    return check_report() | (system(command) != 0);
}
