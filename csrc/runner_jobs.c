// SPDX-License-Identifier: MIT
//
// Jobs in this process's hands: how they come and go, and what their end means for counters, hooks
// and waiters.

#include "runner_state.h"

#include <stdlib.h>
#include <string.h>

static void depth_changed_locked(struct runner *runner) {
    int64_t depth = (int64_t)(runner->jobs.count - runner->n_ended);
    struct event event = {.kind = EVENT_DEPTH, .number = depth};
    events_add(runner->events, &event);
}

void runner_adopt_locked(struct runner *runner, struct live *live) {
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
    struct event change = {.kind = EVENT_CHANGE};
    events_add(runner->events, &change);
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
        runner_adopt_locked(runner, runner->claimed[i]);
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
