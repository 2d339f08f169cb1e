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
    if (live && !live->is_cancelled && !live->is_leaving) {
        live->is_cancelled = true;
        runner_job_ended_locked(runner, live, JOB_CANCELLED, -1);
        if (live->task && live->task->hand)
            hand_cancel(live->task->hand);
        if (!live->task && !live->is_refilling)
            runner_forget_locked(runner, live);
    }
}
