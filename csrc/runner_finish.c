// SPDX-License-Identifier: MIT
//
// The second half of a target's way: its verdict is judged, stored or put off, and its job's turn
// comes again.

#include "runner_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Nothing is in flight, and all of it is stored: whatever was held up may go on.
static void let_go_locked(struct runner *runner) {
    runner->is_trying = false;
    if (runner->is_held_up)
        runner->n_newly_ready += (unsigned)runner->rotation.n_ready;
    runner->is_held_up = false;
}

static void give_place_locked(struct runner *runner, struct task *task) {
    if (task->place >= OWNER_MAX_IN_FLIGHT)
        return;
    owners_note(runner->owners, task->place, 0, 0);
    runner->free_places[runner->n_free_places++] = (uint16_t)task->place;
    task->place = OWNER_MAX_IN_FLIGHT;
    if (runner->n_free_places == OWNER_MAX_IN_FLIGHT)
        let_go_locked(runner);
}

// --- the outcome on its way ---

static int apply_outcome(struct commit_item *item, struct store *store) {
    struct task *task = (struct task *)item;
    task->n_evicted = 0;
    int status = store->ops->put_outcome(store, &task->outcome, &task->job_status);
    if (status == STATUS_NOT_FOUND) {  // the job is gone: nobody is left to tell
        item->status = status;
        return STATUS_OK;
    }
    if (status)
        return status;
    int64_t n_bytes = (int64_t)(task->outcome.content.len + task->outcome.meta.len);
    return runner_evict(task->runner, store, n_bytes, !job_is_live(task->job_status),
                        &task->n_evicted);
}

static void report_target_locked(struct runner *runner, const struct task *task) {
    struct figures *figures = &runner->figures;
    bool is_done = task->verdict == VERDICT_DONE;
    struct event event = {.kind = EVENT_TARGET,
                          .number = task->idx,
                          .attempts = task->attempt,
                          .seconds = (double)task->span_us / 1e6,
                          .bytes = (int64_t)(task->outcome.content.len + task->outcome.meta.len),
                          .caller = task->caller.start,
                          .class_name = task->class_name.start};
    char error[TASK_MAX_TEXT + 1];
    if (!is_done) {
        struct bytes said = task_error(task);
        memcpy(error, said.start, said.len);
        error[said.len] = '\0';
        event.text = error;
    }
    memcpy(event.job_id, task->job_id, JOB_ID_SIZE);
    figures->targets_done += is_done;
    figures->targets_failed += !is_done;
    histogram_add(&figures->target_seconds, event.seconds);
    if (is_done)
        histogram_add(&figures->result_bytes, (double)event.bytes);
    events_add(runner->events, &event);
}

// The job's turn after its target was stored: again, or never.
static void continue_job_locked(struct runner *runner, struct live *live, const struct task *task) {
    bool is_stored = task->item.status == STATUS_OK;
    live->task = NULL;
    if (is_stored) {
        live_advance(live);
        report_target_locked(runner, task);
        if (!job_is_live(task->job_status) && !live->is_cancelled) {
            bool has_duration = task->job_status != JOB_CANCELLED;
            runner_job_ended_locked(runner, live, task->job_status,
                                    has_duration ? runner_job_seconds(runner, live) : -1);
            live->is_cancelled = true;  // ended: whatever the reason, it takes no more turns
        }
    }
    if (!is_stored || live->is_cancelled)
        runner_forget_locked(runner, live);
    else
        runner_ready_locked(runner, live);
}

static void count_unstored_locked(struct runner *runner, struct task *task) {
    size_t n_bytes = sizeof *task + task->content.len + task->meta.len + task->error.len;
    task->n_unstored_bytes = (int64_t)n_bytes;
    runner->unstored_bytes += task->n_unstored_bytes;
}

static void uncount_unstored_locked(struct runner *runner, const struct task *task) {
    bool was_paused = runner_is_paused_locked(runner);
    runner->unstored_bytes -= task->n_unstored_bytes;
    if (was_paused && !runner_is_paused_locked(runner))
        runner->n_newly_ready += (unsigned)runner->rotation.n_ready;
}

static void outcome_done_locked(struct commit_item *item) {
    struct task *task = (struct task *)item;
    struct runner *runner = task->runner;
    uncount_unstored_locked(runner, task);
    give_place_locked(runner, task);
    runner->figures.evicted_jobs += (uint64_t)task->n_evicted;
    if (task->n_evicted) {
        runner->swept_at_us = 0;  // their rows are to be cleared at once
        runner_hurry_keeper_locked(runner, 0);
    }
    continue_job_locked(runner, task->job, task);
    task_free(task);
}

static struct bytes view(const struct buffer *buffer) {
    return (struct bytes){buffer->bytes ? buffer->bytes : "", buffer->len};
}

static void store_task(struct runner *runner, struct task *task, enum commit_by by) {
    int64_t now_ms = runner_now_ms(runner);
    struct outcome *outcome = &task->outcome;
    *outcome = (struct outcome){.job_key = task->job->key,
                                .idx = task->idx,
                                .attempts = task->attempt,
                                .started_at = task->started_at_ms,
                                .finished_at = now_ms,
                                .expires_at = now_ms + runner->config.ttl_ms,
                                .is_last = task->is_last};
    if (task->verdict == VERDICT_DONE) {
        outcome->content = view(&task->content);
        if (task->meta.len)
            outcome->meta = view(&task->meta);
    } else {
        outcome->error = task_error(task);
        if (task->has_hint)
            outcome->hint = view(&task->hint);
    }
    task->item = (struct commit_item){.apply = apply_outcome,
                                      .done = outcome_done_locked,
                                      .n_targets = 1,
                                      .must_be_stored = true};
    commit_leave(runner->queue, &task->item, by);
}

// --- finish ---

// Puts the target back as if it had not been taken, and frees the task.
static void give_back_locked(struct runner *runner, struct task *task) {
    struct live *live = task->job;
    give_place_locked(runner, task);
    live->task = NULL;
    live->attempts--;
    if (live->is_cancelled)
        runner_forget_locked(runner, live);
    else
        runner_ready_locked(runner, live);
    task_free(task);
}

static int apply_busy(struct commit_item *item, struct store *store) {
    struct note *note = (struct note *)item;
    return store->ops->set_busy(store, note->key, note->idx, note->attempts, note->busy_ms);
}

// Lets the target wait. Returns false when it has been busy for too long: then it has failed.
static bool postpone_locked(struct runner *runner, struct task *task) {
    struct live *live = task->job;
    int64_t now_us = runner_now_us(runner);
    int64_t wait_ms = task->wait_ms >= 0 ? task->wait_ms : runner->config.retry_wait_ms;
    if (live->busy_since_us)
        live->busy_ms += (now_us - live->busy_since_us) / 1000;
    live->busy_since_us = task->is_patient ? 0 : now_us;
    if (!task->is_patient && live->busy_ms + wait_ms > runner->config.retry_for_ms) {
        task->verdict = VERDICT_FAILED;
        return false;
    }
    give_place_locked(runner, task);
    live->task = NULL;
    runner->figures.retries++;
    if (live->is_cancelled) {
        runner_forget_locked(runner, live);
    } else {
        struct note note = {.item.apply = apply_busy,
                            .key = live->key,
                            .idx = live->next_idx,
                            .attempts = live->attempts,
                            .busy_ms = live->busy_ms};
        runner_leave_note_locked(runner, &note);
        runner_postpone_locked(runner, live, wait_ms * 1000);
    }
    task_free(task);
    return true;
}

static void apply_limits(struct runner *runner, struct task *task, int64_t now_us) {
    int64_t n_bytes = (int64_t)(task->content.len + task->meta.len);
    if (task->hand && now_us > task->deadline_us) {
        task_fail_with(task, "timed out", NULL);
    } else if (task->verdict == VERDICT_DONE && n_bytes > runner->config.max_result_bytes) {
        char hint[128];
        snprintf(hint, sizeof hint,
                 "it has %" PRId64 " bytes; the limit is max_result_bytes = %" PRId64, n_bytes,
                 runner->config.max_result_bytes);
        task_fail_with(task, "result too large", hint);
    }
}

static void learn_span(struct runner *runner, const struct task *task) {
    if (task->hand || task->verdict != VERDICT_NONE)
        runner->mean_fetch_us += (task->span_us - runner->mean_fetch_us) / 8;
}

// Whether another outcome is to be expected before the committer has looked twice, so that waiting
// for it costs little: with many slow fetches at once.
static bool has_company_locked(const struct runner *runner) {
    return runner_is_slow(runner) && runner->n_in_flight * LONG_TICK_US >= runner->mean_fetch_us;
}

// A hand with nothing else to do commits itself, unless company is near. One that goes on leaves
// the outcome: to be picked up with others when targets are quick, at once when the next one may
// take long. The program's own thread never waits for the disk; while it has other turns to take,
// outcomes wait for company.
static enum commit_by who_commits(const struct runner *runner, bool is_hands) {
    bool has_more = runner->rotation.n_ready > 0;
    if (!is_hands)
        return has_more ? COMMIT_BY_ANYBODY : COMMIT_BY_COMMITTER;
    if (has_company_locked(runner))
        return COMMIT_BY_ANYBODY;
    if (!has_more)
        return COMMIT_BY_CALLER;
    return runner_is_quick(runner) ? COMMIT_BY_ANYBODY : COMMIT_BY_COMMITTER;
}

bool runner_finish(struct runner *runner, struct task *task) {
    int64_t now_us = runner_now_us(runner);
    bool is_hands = task->hand != NULL;
    task->span_us = now_us - task->started_us;
    learn_span(runner, task);
    if (task->trace.bytes && !task->trace.is_broken)
        runner_log(runner, LOG_ERROR, "fetch raised an error", task, task->trace.bytes);
    pthread_mutex_lock(&runner->lock);
    // A fetch that ends without a result after close told it to is not to blame.
    if (runner->is_closing && task->verdict != VERDICT_DONE)
        task->verdict = VERDICT_NONE;
    else if (task->verdict != VERDICT_NONE)
        apply_limits(runner, task, now_us);
    task->hand = NULL;
    runner_count_in_flight_locked(runner, -1);
    bool is_settled = true;
    if (task->verdict == VERDICT_NONE)
        give_back_locked(runner, task);
    else if (task->verdict != VERDICT_LATER || !postpone_locked(runner, task))
        is_settled = false;
    if (!is_settled)
        count_unstored_locked(runner, task);
    enum commit_by by = who_commits(runner, is_hands);
    runner_unlock(runner);
    if (!is_settled)
        store_task(runner, task, by);
    return !is_settled;
}

// --- a hand that is stuck ---

// A second task for the same target: the first stays with the stuck thread, which frees it.
static struct task *stand_in_locked(struct runner *runner, const struct overdue *overdue) {
    struct live *live = live_map_find(&runner->jobs, overdue->job_key);
    struct task *late = live ? live->task : NULL;
    if (!late)
        return NULL;
    struct task_source source = {late->job_id, late->caller, late->class_name, late->target};
    struct task *task = task_new(&source);
    if (!task)
        return NULL;
    task->runner = runner;
    task->job = live;
    task->idx = late->idx;
    task->is_last = late->is_last;
    task->attempt = late->attempt;
    task->started_at_ms = late->started_at_ms;
    task->started_us = late->started_us;
    task->place = late->place;
    task->span_us = runner_now_us(runner) - task->started_us;
    task_fail_with(task, "timed out", NULL);
    return task;
}

bool runner_abandon(struct runner *runner, const struct overdue *overdue) {
    pthread_mutex_lock(&runner->lock);
    // Made first: until the hand is abandoned its task cannot go away under this lock.
    struct task *task = stand_in_locked(runner, overdue);
    bool no_more = runner->figures.abandoned_threads >= BATCH_MAX_ABANDONED;
    bool is_abandoned = task && workers_abandon(runner->workers, overdue, no_more);
    if (is_abandoned) {
        task->job->task = task;
        runner->figures.abandoned_threads++;
        runner_count_in_flight_locked(runner, -1);
    }
    pthread_mutex_unlock(&runner->lock);
    if (!is_abandoned) {
        task_free(task);
        return false;
    }
    runner_log(runner, LOG_ERROR, "abandoned a worker thread that does not come back", task, NULL);
    store_task(runner, task, COMMIT_BY_COMMITTER);
    return true;
}
