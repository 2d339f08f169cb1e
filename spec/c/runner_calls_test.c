// SPDX-License-Identifier: MIT
//
// Calls that no thread waits for: each that is begun is answered by one event, whatever becomes of
// the runner meanwhile. Made for ThreadSanitizer as much as for its claims.

#include "runner.h"

#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 6, CALLS_EACH = 150, CALLS = THREADS * CALLS_EACH };

struct scene {
    struct place place;
    struct runner *runner;
    _Atomic int n_threads;
    _Atomic int n_begun;
    bool is_begun[CALLS];
    _Atomic int n_surprises;
};

static const char *const no_id = "01234567-0123-7123-8123-0123456789ab";

static struct scene *open_scene(const char *path, enum executor executor) {
    struct fault fault;
    struct scene *scene = calloc(1, sizeof *scene);
    place_open(path, &scene->place, &fault);
    struct runner_config config = {
        .place = &scene->place,
        .executor = executor,
        .caps = {.targets_per_job = 3, .jobs_per_caller = 500, .jobs_total = 1000},
        .ttl_ms = 3600000,
        .max_bytes = 1 << 30,
        .max_result_bytes = 1 << 20,
        .retry_wait_ms = 1,
        .retry_for_ms = 60000,
        .target_timeout_ms = 60000,
        .crash_limit = 10,
        .durability = DURABILITY_NORMAL,
        .wanted = 0};  // answers come without being asked for
    if (!CHECK("a runner opens", runner_open(&config, &scene->runner, &fault) == STATUS_OK))
        puts(fault.text);
    return scene;
}

static void leave_scene(struct scene *scene) {
    CHECK("nothing was a surprise", scene->n_surprises == 0);
    runner_free(scene->runner);
    place_close(&scene->place);
    free(scene);
}

static void close_scene(struct scene *scene) {
    CHECK("a runner closes", runner_close(scene->runner, -1) == STATUS_OK);
    leave_scene(scene);
}

static int begin_submit(struct scene *scene, const char *caller, int number, int n_targets,
                        int64_t ticket) {
    struct targets targets;
    struct fault fault;
    char text[32];
    targets_init(&targets);
    snprintf(text, sizeof text, "u%d", number);
    for (int i = 0; i < n_targets; i++)
        targets_add(&targets, &(struct target){text, strlen(text), "{}", 2});
    snprintf(text, sizeof text, "%s", caller);
    struct submit submit = {{text, strlen(text)}, {"class", 5}, &targets};
    int status = runner_begin_submit(scene->runner, &submit, &targets, ticket, &fault);
    memset(text, '?', sizeof text);  // what was given is not needed any more
    scene->n_surprises += status != STATUS_CLOSED && targets.count > 0;  // not taken
    targets_fini(&targets);
    return status;
}

// The next answer within some seconds, which the caller frees.
static struct event *next_answer(struct scene *scene) {
    struct events *events = runner_events(scene->runner);
    struct pollfd one = {.fd = events_fd(events), .events = POLLIN};
    struct event *event = events_take(events);
    if (!event && poll(&one, 1, 5000) == 1)
        event = events_take(events);
    CHECK("an answer comes", event && event->kind == EVENT_ANSWER);
    return event;
}

// Takes the answer to that ticket; returns its status.
static int answer_to(struct scene *scene, int64_t ticket, char out_id[JOB_ID_SIZE]) {
    struct event *answer = next_answer(scene);
    if (!answer)
        return STATUS_INVALID;
    CHECK("it has its ticket", answer->number == ticket);
    CHECK("and a sentence where it is a refusal", !answer->status == !answer->text);
    int status = answer->status;
    if (out_id)
        memcpy(out_id, answer->job_id, JOB_ID_SIZE);
    free(answer);
    return status;
}

static void test_submits(void) {
    struct scene *scene = open_scene(":memory:", EXECUTOR_MANUAL);
    char id[JOB_ID_SIZE], known[JOB_ID_SIZE];
    CHECK("a submit begins", begin_submit(scene, "me", 1, 2, 7) == STATUS_OK);
    CHECK("and is answered", answer_to(scene, 7, id) == STATUS_OK && job_id_is_valid(id));
    begin_submit(scene, "me", 1, 2, 8);
    struct event *answer = next_answer(scene);
    CHECK("the same again is the same job", answer->is_reused && !strcmp(answer->job_id, id));
    CHECK("with its status and lease", answer->job_status == JOB_QUEUED && answer->expires_at > 0);
    free(answer);
    CHECK("what is too much", begin_submit(scene, "me", 2, 4, 9) == STATUS_OK);
    answer = next_answer(scene);
    CHECK("is refused", answer->status == STATUS_TOO_MANY_TARGETS);
    CHECK_TEXT("too many targets", answer->text);
    free(answer);
    struct task *task;
    int64_t wait_us;
    CHECK("the job may be worked on", !runner_take(scene->runner, NULL, &task, &wait_us));
    CHECK_TEXT(id, task->job_id);
    runner_begin_touch(scene->runner, id, 10);
    CHECK("its lease is renewed", answer_to(scene, 10, NULL) == STATUS_OK);
    runner_begin_cancel(scene->runner, id, 11);
    CHECK("it is cancelled", answer_to(scene, 11, NULL) == STATUS_OK);
    runner_begin_cancel(scene->runner, id, 12);
    CHECK("once", answer_to(scene, 12, NULL) == STATUS_NOT_FOUND);
    task_succeed(task, (struct bytes){"x", 1}, (struct bytes){NULL, 0});
    runner_finish(scene->runner, task);
    begin_submit(scene, "me", 1, 2, 13);
    CHECK("and known in its end", answer_to(scene, 13, known) == STATUS_OK && !strcmp(id, known));
    runner_begin_touch(scene->runner, no_id, 14);
    CHECK("an unknown job is not found", answer_to(scene, 14, NULL) == STATUS_NOT_FOUND);
    CHECK("what is no id begins nothing",
          runner_begin_touch(scene->runner, "x", 15) == STATUS_NOT_FOUND &&
              runner_begin_cancel(scene->runner, "", 16) == STATUS_NOT_FOUND);
    close_scene(scene);
}

static void test_caps(void) {
    struct scene *scene = open_scene(":memory:", EXECUTOR_NONE);
    int n[2] = {0}, n_mine_busy = 0, n_busy = 0;
    for (int i = 0; i < 1400; i++)
        begin_submit(scene, i % 2 ? "me" : i % 4 ? "you" : "them", i, 1, i);
    for (int i = 0; i < 1400; i++) {
        struct event *answer = next_answer(scene);
        n[0] += answer->status == STATUS_OK;
        n[1] += answer->number != i;
        n_mine_busy += answer->status == STATUS_CALLER_BUSY && i % 2;
        n_busy += answer->status == STATUS_BUSY;
        free(answer);
    }
    CHECK("caps hold in one transaction, too", n[0] == 1000);
    CHECK("a caller's", n_mine_busy > 0 && n_mine_busy + n_busy == 400);
    CHECK("answers come in the order of their calls", n[1] == 0);
    close_scene(scene);
}

static void *run_caller(void *argument) {
    struct scene *scene = argument;
    int first = scene->n_threads++ * CALLS_EACH;
    for (int ticket = first; ticket < first + CALLS_EACH; ticket++) {
        int status;
        if (ticket % 3 == 0)
            status = begin_submit(scene, "me", ticket / 2, 1, ticket);
        else if (ticket % 3 == 1)
            status = runner_begin_cancel(scene->runner, no_id, ticket);
        else
            status = runner_begin_touch(scene->runner, no_id, ticket);
        scene->is_begun[ticket] = status == STATUS_OK;
        scene->n_begun += status == STATUS_OK;
        scene->n_surprises += status && status != STATUS_CLOSED;
    }
    return NULL;
}

// Takes all that is there; counts those that were not begun or have come before.
static int take_answers(struct scene *scene, bool *has_come) {
    int n = 0;
    for (struct event *event; (event = events_take(runner_events(scene->runner))); n++) {
        scene->n_surprises += event->kind != EVENT_ANSWER || has_come[event->number];
        has_come[event->number] = true;
        free(event);
    }
    return n;
}

static void test_threads(bool is_closed_meanwhile) {
    struct scene *scene = open_scene(":memory:", EXECUTOR_NONE);
    pthread_t threads[THREADS];
    bool has_come[CALLS] = {false};
    int n = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_caller, scene);
    if (is_closed_meanwhile) {
        while (scene->n_begun < CALLS / 4)
            usleep(100);
        CHECK("a runner closes among calls", runner_close(scene->runner, -1) == STATUS_OK);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 20000 && n < scene->n_begun; i++) {
        n += take_answers(scene, has_come);
        usleep(1000);
    }
    CHECK("each call that was begun has its answer", n == scene->n_begun);
    for (int i = 0; i < CALLS; i++)
        scene->n_surprises += has_come[i] != scene->is_begun[i];
    CHECK("one, and no other has", scene->n_surprises == 0);
    if (is_closed_meanwhile)
        leave_scene(scene);
    else
        close_scene(scene);
}

// Nobody takes them: they go with the runner.
static void test_unread(void) {
    struct scene *scene = open_scene(":memory:", EXECUTOR_NONE);
    for (int i = 0; i < 100; i++)
        begin_submit(scene, "me", i, 2, i);
    close_scene(scene);
}

int main(void) {
    test_submits();
    test_caps();
    test_threads(false);
    test_threads(true);
    test_unread();
    return check_report();
}
