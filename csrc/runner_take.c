// SPDX-License-Identifier: MIT
//
// The first half of a target's way: its job's turn comes, it is taken, and given to a hand or to
// the program. Also who is woken for it.

#include "runner_state.h"

#include <stdlib.h>
#include <string.h>

enum {
    TICK_US = 150,
    WINDOW_TARGETS = 256,     // read at once, when few jobs live
    WINDOW_TOTAL = 2048,      // over all live jobs, about
    STORE_PAUSE_US = 500000,  // after a read that failed
    ASK_AGAIN_US = 1000,      // for what is next when an outcome is stored, which takes no longer
    ASK_LATER_US = 50000,     // the same while the store fails
};

static void note_done(struct commit_item *item) {
    free(item);
}

void runner_leave_note_locked(struct runner *runner, const struct note *note) {
    struct note *copy = runner->is_stopped ? NULL : malloc(sizeof *copy);
    if (!copy)
        return;
    *copy = *note;
    copy->runner = runner;
    copy->item.done = note_done;
    commit_leave(runner->queue, &copy->item, COMMIT_WITH_NEXT);
}

static int apply_start(struct commit_item *item, struct store *store) {
    struct note *note = (struct note *)item;
    return store->ops->start_job(store, note->key, note->now);
}

// --- ready, and who wakes for it ---

void runner_ready_locked(struct runner *runner, struct live *live) {
    rotation_push(&runner->rotation, &live->turn);
    runner->n_newly_ready++;
    if (runner->is_handing_over)
        runner_hurry_keeper_locked(runner, 0);
}

static void tell_turn_locked(struct runner *runner) {
    struct event turn = {.kind = EVENT_TURN};
    events_add(runner->events, &turn);
    pthread_cond_broadcast(&runner->has_work);
}

void runner_watch_turns(struct runner *runner) {
    events_want(runner->events, EVENT_TURN);
    pthread_mutex_lock(&runner->lock);
    if (runner->rotation.n_ready && !runner->workers)
        tell_turn_locked(runner);
    pthread_mutex_unlock(&runner->lock);
}

void runner_unlock(struct runner *runner) {
    unsigned n_ready = runner->n_newly_ready;
    bool is_quick = runner_is_quick(runner);
    runner->n_newly_ready = 0;
    if (n_ready && !runner->workers)
        tell_turn_locked(runner);
    pthread_mutex_unlock(&runner->lock);
    if (!n_ready || !runner->workers)
        return;
    if (!is_quick) {
        workers_wake(runner->workers, n_ready);
    } else if (!workers_is_hand()) {
        workers_wake(runner->workers, 1);
    } else {
        // This hand takes them itself, most likely; another one wakes only if some are left lying.
        workers_stay_awake(runner->workers);
        if (workers_idle(runner->workers) > 0)
            commit_nudge(runner->queue);
    }
}

// The register is what a reap goes by: what stands in it is in flight or not stored yet.
static bool is_busy_locked(const struct runner *runner) {
    return runner->n_in_flight > 0 || runner->n_free_places < OWNER_MAX_IN_FLIGHT;
}

static bool is_on_last_chance(const struct runner *runner, const struct live *live) {
    return live->deaths > 0 && live->deaths >= runner->config.crash_limit - 1;
}

// Whether nothing is handed out until what is in flight has ended. A target that has crashed with
// one death more is tried alone, lest it be blamed for what another one does.
static bool is_held_up_locked(const struct runner *runner) {
    const struct live *next = (const struct live *)runner->rotation.first;
    return runner->is_trying || (next && is_on_last_chance(runner, next) && is_busy_locked(runner));
}

// Wakes hands for targets that were ready at the look before the last one already.
bool runner_tick(void *context) {
    struct runner *runner = context;
    if (!runner->workers || runner->is_handing_over)
        return false;
    pthread_mutex_lock(&runner->lock);
    size_t n_ready = runner_is_paused_locked(runner) ? 0 : runner->rotation.n_ready;
    unsigned n_idle = workers_idle(runner->workers);
    const struct turn *first = runner->rotation.first;
    bool is_waiting = first && first->ready_since <= runner->entered_before[1];
    runner->entered_before[1] = runner->entered_before[0];
    runner->entered_before[0] = runner->rotation.n_entered;
    if (is_waiting && n_idle > 0 && !is_held_up_locked(runner))
        workers_wake(runner->workers, n_ready < n_idle ? (unsigned)n_ready : n_idle);
    pthread_mutex_unlock(&runner->lock);
    return n_ready > 0 && n_idle > 0;
}

// Looks that wake hands come often. Those for outcomes that wait for company need not.
int64_t runner_tick_us(void *context) {
    const struct runner *runner = context;
    bool is_long = runner->config.executor != EXECUTOR_THREADS || runner_is_slow(runner);
    return is_long ? LONG_TICK_US : TICK_US;
}

// --- take ---

void runner_postpone_locked(struct runner *runner, struct live *live, int64_t span_us) {
    int64_t due_us = runner_now_us(runner) + span_us;
    targets_fini(&live->window);
    live->window_offset = 0;
    if (rotation_wait(&runner->rotation, &live->turn, due_us))
        runner_ready_locked(runner, live);
    else
        runner_hurry_keeper_locked(runner, runner->is_handing_over ? 0 : due_us);
}

static int64_t window_size(const struct runner *runner) {
    size_t share = WINDOW_TOTAL / (runner->jobs.count + 1);
    return share < 1 ? 1 : share > WINDOW_TARGETS ? WINDOW_TARGETS : (int64_t)share;
}

// Reads without the lock: whether the job is still live, and its next inputs.
static int read_ahead(struct runner *runner, struct live *live, int64_t limit, bool *out_is_live) {
    struct store *store;
    struct fault fault;
    struct job_row job;
    *out_is_live = true;
    int status = runner_begin_read(runner, &store, &fault);
    if (status) {
        runner_log(runner, LOG_WARN, "cannot read the store", NULL, fault.text);
        return status;
    }
    status = store->ops->read_job(store, live->id, &job);
    *out_is_live = status == STATUS_OK && job_is_live(job.status);
    if (*out_is_live && live->window.count == 0)
        status = store->ops->read_inputs(store, live->key, live->next_idx, limit, &live->window);
    if (status && status != STATUS_NOT_FOUND)
        runner_log(runner, LOG_WARN, "cannot read the store", NULL, store->fault.text);
    runner_end_read(runner, store);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

// Makes sure that the job is live and its next input is here. May let go of the lock meanwhile.
// Returns whether its target may be handed out; if not, the job has been dealt with.
static bool make_ready_locked(struct runner *runner, struct live *live) {
    uint64_t announced = owners_announced(runner->owners);
    struct target target;
    if (live->seen_announced == announced && live_input(live, &target) == STATUS_OK)
        return true;
    bool is_live;
    int64_t limit = window_size(runner);
    live->is_refilling = true;
    pthread_mutex_unlock(&runner->lock);
    int status = read_ahead(runner, live, limit, &is_live);
    pthread_mutex_lock(&runner->lock);
    live->is_refilling = false;
    if (!status && !is_live && !live->is_cancelled) {
        live->is_cancelled = true;
        runner_job_ended_locked(runner, live, JOB_CANCELLED, -1);
    }
    if (live->is_cancelled) {
        runner_forget_locked(runner, live);
        return false;
    }
    live->seen_announced = announced;
    if (status || live_input(live, &target)) {
        runner_postpone_locked(runner, live, STORE_PAUSE_US);
        return false;
    }
    return true;
}

void runner_count_in_flight_locked(struct runner *runner, int change) {
    runner->n_in_flight += change;
    struct event event = {.kind = EVENT_INFLIGHT, .number = runner->n_in_flight};
    events_add(runner->events, &event);
}

static void start_job_locked(struct runner *runner, struct live *live, int64_t now_ms) {
    live->started_at = now_ms;
    struct note note = {
        .item.apply = apply_start, .item.must_be_stored = true, .key = live->key, .now = now_ms};
    runner_leave_note_locked(runner, &note);
}

static size_t take_place_locked(struct runner *runner) {
    return runner->n_free_places ? runner->free_places[--runner->n_free_places]
                                 : OWNER_MAX_IN_FLIGHT;
}

static struct task *make_task_locked(struct runner *runner, struct live *live, struct hand *hand) {
    struct task_source source = {live->id, live->caller, live->class_name, {0}};
    live_input(live, &source.target);
    struct task *task = task_new(&source);
    if (!task)
        return NULL;
    int64_t timeout_ms = runner->config.target_timeout_ms;
    task->runner = runner;
    task->job = live;
    task->job_key = live->key;
    task->hand = hand;
    task->idx = live->next_idx;
    task->is_last = live->next_idx + 1 == live->targets_total;
    task->attempt = ++live->attempts;
    task->started_at_ms = runner_now_ms(runner);
    task->started_us = runner_now_us(runner);
    task->deadline_ms = task->started_at_ms + timeout_ms;
    task->deadline_us = task->started_us + timeout_ms * 1000;
    task->place = take_place_locked(runner);
    owners_note(runner->owners, task->place, live->key, task->idx);
    live->task = task;
    runner->is_trying = is_on_last_chance(runner, live);
    runner_count_in_flight_locked(runner, 1);
    if (!live->started_at)
        start_job_locked(runner, live, task->started_at_ms);
    return task;
}

static void wake_due_locked(struct runner *runner) {
    size_t n_woken = rotation_wake_due(&runner->rotation, runner_now_us(runner));
    // With threads, whoever takes one of them wakes for the others.
    if (!runner->workers)
        runner->n_newly_ready += (unsigned)n_woken;
}

static int take_locked(struct runner *runner, struct hand *hand, struct task **out_task) {
    for (;;) {
        if (runner->is_stopped)
            return STATUS_CLOSED;
        if (runner->is_handing_over || runner_is_paused_locked(runner))
            return STATUS_NOTHING;
        if (runner->rotation.n_waiting)
            wake_due_locked(runner);
        runner->is_held_up = is_held_up_locked(runner);
        if (runner->is_held_up)
            return STATUS_NOTHING;
        struct live *live = (struct live *)rotation_pop(&runner->rotation);
        runner_claim_more_locked(runner);
        if (!live)
            return STATUS_NOTHING;
        if (!make_ready_locked(runner, live))
            continue;
        // While the lock was open a close may have come: the job stays pending and goes with the
        // rest. Or another hand took something.
        bool is_late =
            runner->is_trying || (is_on_last_chance(runner, live) && is_busy_locked(runner));
        if (is_late || runner->is_stopped || runner->is_handing_over) {
            runner_ready_locked(runner, live);
            continue;
        }
        *out_task = make_task_locked(runner, live, hand);
        if (*out_task)
            return STATUS_OK;
        runner_postpone_locked(runner, live, STORE_PAUSE_US);
    }
}

static int64_t wait_locked(struct runner *runner) {
    int64_t due_us = rotation_next_due(&runner->rotation);
    int64_t wait_us = due_us == INT64_MAX ? 1000000 : due_us - runner_now_us(runner);
    // A job whose outcome is on its way to the store may be next at any moment.
    bool is_storing =
        (int64_t)runner->jobs.count > runner->n_in_flight + (int64_t)runner->rotation.n_waiting;
    int64_t most_us = runner->is_failing ? ASK_LATER_US : ASK_AGAIN_US;
    if (runner_is_paused_locked(runner) || (is_storing && wait_us > most_us))
        return most_us;
    return wait_us < 0 ? 0 : wait_us;
}

int runner_take(struct runner *runner, struct hand *hand, struct task **out_task,
                int64_t *out_wait_us) {
    *out_task = NULL;
    pthread_mutex_lock(&runner->lock);
    int status = take_locked(runner, hand, out_task);
    runner->has_looked_in_vain = status == STATUS_NOTHING;
    *out_wait_us = status ? wait_locked(runner) : 0;
    if (runner->rotation.n_ready == 0)
        runner->n_newly_ready = 0;
    runner_unlock(runner);
    if (status == STATUS_NOTHING)
        commit_hurry(runner->queue);  // what is next may come of it
    return status;
}

bool runner_is_cancelled(struct runner *runner, const struct task *task) {
    pthread_mutex_lock(&runner->lock);
    bool is_cancelled = task->job->is_cancelled || runner->is_closing;
    pthread_mutex_unlock(&runner->lock);
    return is_cancelled;
}

// --- a program that takes by itself ---

// Whether there are jobs without an owner; then they are asked for.
static bool claim_unowned(struct runner *runner) {
    struct store *store;
    bool has_unowned = false;
    if (runner->is_handing_over)  // they are for others
        return false;
    if (runner_begin_read(runner, &store, NULL))
        return false;
    store->ops->has_unowned(store, &has_unowned);
    runner_end_read(runner, store);
    if (has_unowned)
        runner_claim(runner);
    return has_unowned;
}

static bool has_jobs_locked(const struct runner *runner) {
    return runner->jobs.count > 0 || runner->claim.is_running;
}

static bool has_jobs(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    bool has = has_jobs_locked(runner);
    pthread_mutex_unlock(&runner->lock);
    return has;
}

bool runner_wait_for_work(struct runner *runner, int64_t timeout_us) {
    // The caller's thread blocks in real time, whatever clock the runner goes by.
    int64_t due_us = clock_mono_us(NULL) + timeout_us;
    // Waited for even if the claim fails: asked again at once it would fail again.
    bool has_unowned = !has_jobs(runner) && claim_unowned(runner);
    pthread_mutex_lock(&runner->lock);
    while ((has_unowned || has_jobs_locked(runner)) &&
           (!runner->rotation.n_ready || runner->is_held_up) && !runner->is_stopped &&
           clock_mono_us(NULL) < due_us &&
           rotation_next_due(&runner->rotation) > runner_now_us(runner))
        threads_wait_until(&runner->has_work, &runner->lock, due_us);
    pthread_mutex_unlock(&runner->lock);
    if (runner->is_closing)
        return false;
    // Asked twice: one that was claimed before the store was read is here by now, or on its way.
    return has_jobs(runner) || claim_unowned(runner) || has_jobs(runner);
}

int64_t runner_idle_us(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    const struct rotation *rotation = &runner->rotation;
    bool is_idle = rotation->n_waiting > 0 && rotation->n_waiting == runner->jobs.count;
    int64_t left_us = is_idle ? rotation_next_due(rotation) - runner_now_us(runner) : -1;
    pthread_mutex_unlock(&runner->lock);
    return is_idle && left_us < 0 ? 0 : left_us;
}

// --- hands ---

bool runner_work(void *context, struct hand *hand) {
    struct runner *runner = context;
    struct task *task = NULL;
    pthread_mutex_lock(&runner->lock);
    int status = take_locked(runner, hand, &task);
    bool has_more = !status && runner->rotation.n_ready > 0;
    pthread_mutex_unlock(&runner->lock);
    if (status)
        return false;
    if (has_more && !runner_is_quick(runner))
        workers_wake(runner->workers, 1);
    else if (has_more && workers_idle(runner->workers) > 0)
        commit_nudge(runner->queue);
    void (*fetch)(void *, struct task *) = runner->config.fetcher.fetch;
    // The runner is not touched from here on until the fetch has come back in time: whoever
    // abandons the hand may free it.
    hand_begin(hand, task->job->key, task->deadline_us);
    fetch(hand->state_of_fetch, task);
    if (!hand_end(hand)) {
        task_free(task);
        return false;
    }
    runner_finish(runner, task);
    return true;
}
