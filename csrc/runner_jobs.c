// SPDX-License-Identifier: MIT
//
// Jobs come and go: submit, claim, cancel, touch, and what their end means for counters, hooks and
// waiters.

#include "runner_state.h"

#include "canonical.h"

#include <stdlib.h>
#include <string.h>

// Let commit_run's item be found again from inside its callbacks.
struct submission {
    struct commit_item item;  // first
    struct runner *runner;
    struct new_job job;
    struct live *live;  // NULL: a client's
    bool is_reused;
};

struct request {
    struct commit_item item;  // first
    struct runner *runner;
    char id[JOB_ID_SIZE];
    int64_t key;
    struct live *orphan;  // cancelled, and no runner's: its end is told here
};

static void depth_changed_locked(struct runner *runner) {
    int64_t depth = (int64_t)(runner->jobs.count - runner->n_ended);
    struct event event = {.kind = EVENT_DEPTH, .number = depth};
    events_add(runner->events, &event);
}

// Puts a job into the map and gives it its turn.
static void adopt_locked(struct runner *runner, struct live *live) {
    live_map_add(&runner->jobs, live);
    depth_changed_locked(runner);
    runner_ready_locked(runner, live);
}

void runner_forget_locked(struct runner *runner, struct live *live) {
    bool is_told = live->is_cancelled;
    rotation_remove(&runner->rotation, &live->turn);
    live_map_remove(&runner->jobs, live);
    live_free(live);
    if (is_told)
        runner->n_ended--;
    else
        depth_changed_locked(runner);
    pthread_cond_broadcast(&runner->has_work);
}

void runner_announce_change_locked(struct runner *runner) {
    runner->n_changes++;
    pthread_cond_broadcast(&runner->changed);
}

static void count_job(struct figures *figures, int status, bool is_restart) {
    figures->jobs_restart += is_restart;
    if (is_restart)
        return;
    figures->jobs_done += status == JOB_DONE;
    figures->jobs_partial += status == JOB_PARTIAL;
    figures->jobs_failed += status == JOB_FAILED;
    figures->jobs_cancelled += status == JOB_CANCELLED;
}

void runner_tell_end_locked(struct runner *runner, const struct live *live, int status,
                            const char *error, double seconds) {
    struct event event = {.kind = EVENT_JOB,
                          .job_status = status,
                          .seconds = seconds,
                          .text = error,
                          .number = live->targets_total,
                          .caller = live->caller.start,
                          .class_name = live->class_name.start};
    memcpy(event.job_id, live->id, JOB_ID_SIZE);
    count_job(&runner->figures, status, error != NULL);
    events_add(runner->events, &event);
    if (seconds >= 0) {
        histogram_add(&runner->figures.job_seconds, seconds);
        event.kind = EVENT_JOB_SECONDS;
        events_add(runner->events, &event);
    }
    runner_announce_change_locked(runner);
}

void runner_job_ended_locked(struct runner *runner, const struct live *live, int status,
                             double seconds) {
    runner_tell_end_locked(runner, live, status, NULL, seconds);
    runner->n_ended++;
    depth_changed_locked(runner);
}

double runner_job_seconds(const struct runner *runner, const struct live *live) {
    if (live->submitted_us)
        return (double)(runner_now_us(runner) - live->submitted_us) / 1e6;
    int64_t span_ms = runner_now_ms(runner) - live->created_at;
    return span_ms > 0 ? (double)span_ms / 1e3 : 0;
}

void runner_mark_cancelled_locked(struct runner *runner, int64_t key) {
    struct live *live = live_map_find(&runner->jobs, key);
    if (live && !live->is_cancelled) {
        live->is_cancelled = true;
        runner_job_ended_locked(runner, live, JOB_CANCELLED, -1);
        if (live->task && live->task->hand)
            hand_cancel(live->task->hand);
        if (!live->task && !live->is_refilling)
            runner_forget_locked(runner, live);
    }
}

// --- submit ---

static int admit(struct submission *submission, struct store *store) {
    const struct new_job *job = &submission->job;
    struct load load = {.targets = (int64_t)job->targets->count};
    const struct caps *caps = &submission->runner->config.caps;
    int status = store->ops->count_live(store, &load.total_jobs);
    // Below its cap even if all of them were the caller's: not counted, which a high cap would make
    // slower with each job.
    if (!status && load.total_jobs >= caps->jobs_per_caller)
        status = store->ops->count_live_of(store, job->caller, &load.caller_jobs);
    if (status)
        return status;
    submission->item.status = caps_admit(caps, &load);
    return STATUS_OK;
}

static int apply_submit(struct commit_item *item, struct store *store) {
    struct submission *submission = (struct submission *)item;
    struct new_job *job = &submission->job;
    struct job_row known;
    submission->is_reused = false;
    int status = store->ops->find_job(store, job->caller, job->idem_key, job->now, &known);
    if (!status) {
        submission->is_reused = true;
        memcpy(job->id, known.id, JOB_ID_SIZE);
        return STATUS_OK;
    }
    if (status == STATUS_NOT_FOUND)
        status = admit(submission, store);
    if (status || item->status)
        return status;
    int64_t key;
    status = store->ops->insert_job(store, job, &key);
    if (!status && submission->live)
        submission->live->key = key;
    return status;
}

static void submit_done_locked(struct commit_item *item) {
    struct submission *submission = (struct submission *)item;
    struct runner *runner = submission->runner;
    if (item->status || submission->is_reused || !submission->live)
        return;
    // A hand is free for it: it starts without a read. A job that has to wait keeps no inputs.
    if (runner->workers && workers_idle(runner->workers) > 0)
        live_prime(submission->live, submission->job.targets);
    adopt_locked(runner, submission->live);
    submission->live = NULL;
}

static int prepare_submit(struct submission *submission, const struct submit *submit,
                          struct fault *fault) {
    struct runner *runner = submission->runner;
    struct new_job *job = &submission->job;
    job->caller = submit->caller;
    job->class_name = submit->class_name;
    job->targets = submit->targets;
    job->owner = runner->owner.id;
    job->now = runner_now_ms(runner);
    job->expires_at = job->now + runner->config.ttl_ms;
    if (canonical_key(submit->caller.start, submit->caller.len, submit->targets, job->idem_key))
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    if (job_id_make(job->now, job->id))
        return fault_set(fault, STATUS_STORE, "cannot make an id: the system has no randomness");
    if (!runner->owner.id)
        return STATUS_OK;
    struct job_row row = {.caller = submit->caller,
                          .class_name = submit->class_name,
                          .targets_total = (int64_t)submit->targets->count,
                          .created_at = job->now};
    memcpy(row.id, job->id, JOB_ID_SIZE);
    submission->live = live_new(&row);
    if (!submission->live)
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    submission->live->submitted_us = runner_now_us(runner);
    // Before anybody can know it, so that no cancel is missed.
    submission->live->seen_announced = owners_announced(runner->owners);
    return STATUS_OK;
}

int runner_submit(struct runner *runner, const struct submit *submit, char out_id[JOB_ID_SIZE],
                  bool *out_reused, struct fault *fault) {
    struct submission submission = {
        .item = {.apply = apply_submit, .done = submit_done_locked, .fault = fault},
        .runner = runner};
    out_id[0] = '\0';
    *out_reused = false;
    if (runner->is_closing)
        return fault_set(fault, STATUS_CLOSED, "%s", status_message(STATUS_CLOSED));
    int status = prepare_submit(&submission, submit, fault);
    if (status)
        return status;
    // A refusal leaves this sentence; a failure of the store puts its own.
    status = commit_run(runner->queue, &submission.item);
    if (submission.live)
        live_free(submission.live);
    if (status != STATUS_STORE && status != STATUS_LOCKED && status != STATUS_NO_MEMORY)
        fault_set(fault, status, "%s", status_message(status));
    if (!status) {
        memcpy(out_id, submission.job.id, JOB_ID_SIZE);
        *out_reused = submission.is_reused;
    }
    return status;
}

// --- cancel, touch ---

// Whether a runner has the job and tells its end.
static bool is_somebodys(struct runner *runner, const struct job_row *job) {
    if (job->owner && job->owner == runner->owner.id)
        return true;
    return job->owner && owners_is_alive(runner->owners, job->owner);
}

static void drop_orphan(struct request *request) {
    if (request->orphan)
        live_free(request->orphan);
    request->orphan = NULL;
}

static int apply_cancel(struct commit_item *item, struct store *store) {
    struct request *request = (struct request *)item;
    struct job_row job;
    drop_orphan(request);  // of a try that failed
    int status = store->ops->cancel_job(store, request->id, runner_now_ms(request->runner), &job);
    if (status == STATUS_NOT_FOUND) {
        item->status = status;
        return STATUS_OK;
    }
    if (status)
        return status;
    request->key = job.key;
    if (is_somebodys(request->runner, &job))
        return STATUS_OK;
    request->orphan = live_new(&job);
    return request->orphan ? STATUS_OK
                           : fault_set(&store->fault, STATUS_NO_MEMORY, "out of memory");
}

static void cancel_done_locked(struct commit_item *item) {
    struct request *request = (struct request *)item;
    struct runner *runner = request->runner;
    if (item->status)
        return;
    owners_announce(runner->owners);
    runner_mark_cancelled_locked(runner, request->key);
    if (request->orphan)
        runner_tell_end_locked(runner, request->orphan, JOB_CANCELLED, NULL, -1);
    runner_announce_change_locked(runner);
}

static int apply_touch(struct commit_item *item, struct store *store) {
    struct request *request = (struct request *)item;
    int64_t now = runner_now_ms(request->runner);
    int status =
        store->ops->touch_job(store, request->id, now, now + request->runner->config.ttl_ms);
    if (status == STATUS_NOT_FOUND) {
        item->status = status;
        status = STATUS_OK;
    }
    return status;
}

static int run_request(struct runner *runner, struct request *request, const char *id) {
    if (!job_id_is_valid(id))
        return STATUS_NOT_FOUND;
    request->runner = runner;
    memcpy(request->id, id, JOB_ID_SIZE);
    return commit_run(runner->queue, &request->item);
}

int runner_cancel(struct runner *runner, const char *id, struct fault *fault) {
    struct request request = {
        .item = {.apply = apply_cancel, .done = cancel_done_locked, .fault = fault}};
    int status = run_request(runner, &request, id);
    drop_orphan(&request);
    return status;
}

int runner_touch(struct runner *runner, const char *id, struct fault *fault) {
    struct request request = {.item = {.apply = apply_touch, .fault = fault}};
    return run_request(runner, &request, id);
}

static void free_request(struct commit_item *item) {
    free(item);
}

void runner_touch_soon(struct runner *runner, const char *id) {
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return;
    request->item.apply = apply_touch;
    request->item.done = free_request;
    request->runner = runner;
    memcpy(request->id, id, JOB_ID_SIZE);
    commit_leave(runner->queue, &request->item, COMMIT_WITH_NEXT);
}

// --- claim ---

static void drop_claimed(struct errand *errand) {
    while (errand->n_claimed > 0)
        live_free(errand->runner->claimed[--errand->n_claimed]);
}

static int apply_claim(struct commit_item *item, struct store *store) {
    struct errand *errand = (struct errand *)item;
    struct runner *runner = errand->runner;
    drop_claimed(errand);  // of a try that failed
    int status = STATUS_OK;
    while (!status && errand->n_claimed < CLAIM_AT_ONCE &&
           (int64_t)errand->n_claimed < errand->n_jobs) {
        struct job_row job;
        status = store->ops->claim_job(store, runner->owner.id, &job);
        struct live *live = status ? NULL : live_new(&job);
        if (live) {
            live->seen_announced = owners_announced(runner->owners);
            runner->claimed[errand->n_claimed++] = live;
        } else if (!status) {
            status = fault_set(&store->fault, STATUS_NO_MEMORY, "out of memory");
        }
    }
    return status == STATUS_NOTHING ? STATUS_OK : status;
}

static void claim_done_locked(struct commit_item *item) {
    struct errand *errand = (struct errand *)item;
    struct runner *runner = errand->runner;
    if (item->status)
        drop_claimed(errand);
    for (size_t i = 0; i < errand->n_claimed; i++)
        adopt_locked(runner, runner->claimed[i]);
    errand->n_claimed = 0;
    errand->is_running = false;
}

void runner_claim(struct runner *runner) {
    struct errand *errand = &runner->claim;
    pthread_mutex_lock(&runner->lock);
    int64_t can_start = runner->workers ? 2 * runner->config.workers : CLAIM_AT_ONCE;
    can_start -= (int64_t)runner->rotation.n_ready;
    bool is_wanted = can_start > 0 && !errand->is_running && !runner->is_stopped;
    errand->is_running |= is_wanted;
    pthread_mutex_unlock(&runner->lock);
    if (!is_wanted)
        return;
    errand->runner = runner;
    errand->n_jobs = can_start;
    errand->item = (struct commit_item){.apply = apply_claim, .done = claim_done_locked};
    commit_leave(runner->queue, &errand->item, COMMIT_BY_COMMITTER);
}
