// SPDX-License-Identifier: MIT
//
// A runner's life: opening and closing.

#include "runner_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SETUP_PATIENCE_MS = 10000,
    CLOSE_PATIENCE_MS = 10000,  // for a store that fails or is locked, if a close has so much time
    LEAST_PATIENCE_MS = 50,     // and if it has none: others' transactions end within that
};

// --- what the commit queue reports ---

// The lock is held until end_settling.
static void begin_settling(void *context, const struct committed *committed) {
    struct runner *runner = context;
    pthread_mutex_lock(&runner->lock);
    if (!committed)
        return;
    if (committed->is_whole) {
        if (runner->is_failing)
            runner->swept_at_us = 0;  // which fills the reserve again
        runner->is_failing = false;
        runner->proved_at_us = clock_mono_us(NULL);
    }
    if (committed->n_targets) {
        histogram_add(&runner->figures.commit_seconds, (double)committed->span_us / 1e6);
        histogram_add(&runner->figures.commit_targets, committed->n_targets);
    }
}

static void end_settling(void *context) {
    struct runner *runner = context;
    struct event change = {.kind = EVENT_CHANGE};
    events_add(runner->events, &change);
    runner_show_figures_locked(runner);
    bool rings = runner->is_to_ring;
    runner->is_to_ring = false;
    runner_unlock(runner);
    if (rings)
        owners_ring(runner->owners);
}

static void report_failure(void *context, int status, const char *text) {
    struct runner *runner = context;
    pthread_mutex_lock(&runner->lock);
    bool is_news = !runner->is_failing;
    runner->is_failing = true;
    pthread_mutex_unlock(&runner->lock);
    if (is_news)
        runner_log(runner, status == STATUS_LOCKED ? LOG_WARN : LOG_ERROR,
                   "the store does not take a transaction", NULL, text);
}

static bool lend_reserve(void *context) {
    struct runner *runner = context;
    return reserve_lend(&runner->reserve);
}

static void take_reserve_back(void *context) {
    struct runner *runner = context;
    reserve_take_back(&runner->reserve);
}

// --- opening ---

static int64_t setup_patience_ms(const struct runner *runner) {
    return runner->config.patience_ms ? runner->config.patience_ms : SETUP_PATIENCE_MS;
}

static int become_owner(struct runner *runner, struct fault *fault) {
    struct store *store = runner->store;
    int status = store->ops->begin(store, setup_patience_ms(runner));
    if (!status)
        status =
            store->ops->insert_owner(store, runner->pid, runner_now_ms(runner), &runner->owner);
    if (status)
        fault_set(fault, status, "%s", store->fault.text);
    // Locked before the row can be seen: an owner without a lock is a dead one.
    if (!status)
        status = owners_hold(runner->owners, runner->owner.id, runner->owner.slot, fault);
    if (!status) {
        status = store->ops->commit(store);
        if (status)
            fault_set(fault, status, "%s", store->fault.text);
    }
    if (status)
        store->ops->rollback(store);
    return status;
}

// Reaps some of the first dead owner's jobs behind inout_after. STATUS_NOTHING when there are none.
static int reap_next(struct runner *runner, int64_t *inout_after) {
    struct store *store = runner->store;
    struct owner_row owner;
    struct reap reap = {0};
    int status = store->ops->begin(store, setup_patience_ms(runner));
    if (!status)
        status = store->ops->next_owner(store, *inout_after, &owner);
    if (!status)
        status = runner_reap(runner, store, &owner, &reap);
    if (!status)
        status = store->ops->commit(store);
    if (status) {
        store->ops->rollback(store);
        runner_drop_reap(&reap);
        return status;
    }
    if (!reap.has_more)
        *inout_after = owner.id;
    pthread_mutex_lock(&runner->lock);
    runner_tell_reap_locked(runner, &reap);
    pthread_mutex_unlock(&runner->lock);
    return STATUS_OK;
}

static int reap_at_start(struct runner *runner, struct fault *fault) {
    int64_t after = 0;
    int status = STATUS_OK;
    while (!status)
        status = reap_next(runner, &after);
    if (status == STATUS_NOTHING)
        return STATUS_OK;
    return fault_set(fault, status, "%s", runner->store->fault.text);
}

static int open_store(struct runner *runner, struct fault *fault) {
    int status = owners_open(&runner->place, &runner->owners, fault);
    if (status)
        return status;
    status = owners_begin_setup(runner->owners, setup_patience_ms(runner), fault);
    if (status)
        return status;
    status = store_open(&runner->place, runner->config.durability, true, &runner->store, fault);
    if (!status && runner->config.executor != EXECUTOR_NONE)
        status = become_owner(runner, fault);
    if (!status && runner->config.executor != EXECUTOR_NONE)
        runner_compare_caps(runner, runner->store);
    owners_end_setup(runner->owners);
    if (!status && runner->config.executor != EXECUTOR_NONE)
        status = reap_at_start(runner, fault);
    if (!status)
        status = store_open(&runner->place, DURABILITY_NORMAL, false, &runner->watch, fault);
    if (!status)
        status = readers_open(&runner->place, &runner->readers, fault);
    if (!status)
        reserve_fill(&runner->reserve);
    return status;
}

static int start_threads(struct runner *runner) {
    struct commit_config commit = {.store = runner->store,
                                   .context = runner,
                                   .on_tick = runner_tick,
                                   .tick_us = runner_tick_us,
                                   .begin_settling = begin_settling,
                                   .end_settling = end_settling,
                                   .on_failure = report_failure,
                                   .lend_reserve = lend_reserve,
                                   .take_reserve_back = take_reserve_back};
    int status = STATUS_OK;
    // The hands first: the committer asks for them. They find nothing to do before the keeper runs.
    if (runner->config.executor == EXECUTOR_THREADS) {
        const struct fetcher *fetcher = &runner->config.fetcher;
        struct workers_config workers = {.count = runner->config.workers,
                                         .context = runner,
                                         .begin_context = fetcher->context,
                                         .begin = fetcher->begin,
                                         .end = fetcher->end,
                                         .work = runner_work};
        status = workers_open(&workers, &runner->workers);
    }
    if (!status)
        status = commit_open(&commit, &runner->queue);
    return status ? status : runner_start_keeper(runner);
}

static void release(struct runner *runner) {
    if (runner->watch)
        runner->watch->ops->close(runner->watch);
    readers_close(runner->readers);
    if (runner->store)
        runner->store->ops->close(runner->store);
    owners_close(runner->owners);
    events_close(runner->events);
    live_map_fini(&runner->jobs);
    rotation_fini(&runner->rotation);
    reserve_fini(&runner->reserve);
    place_close(&runner->place);
    clock_drop(runner->config.clock);
    pthread_cond_destroy(&runner->changed);
    pthread_cond_destroy(&runner->has_work);
    pthread_cond_destroy(&runner->keep);
    pthread_mutex_destroy(&runner->lock);
    free(runner);
}

static struct runner *prepare(const struct runner_config *config) {
    struct runner *runner = calloc(1, sizeof *runner);
    if (!runner)
        return NULL;
    runner->config = *config;
    runner->config.place = &runner->place;
    clock_hold(config->clock);
    runner->pid = getpid();
    runner->generation = owners_fork_generation();
    runner->evict_above = config->max_bytes;
    runner->wall_offset_ms = runner_now_ms(runner) - runner_now_us(runner) / 1000;
    runner->keeper_due_us = INT64_MAX;
    figures_init(&runner->figures);
    pthread_mutex_init(&runner->lock, NULL);
    threads_cond_init(&runner->changed);
    threads_cond_init(&runner->has_work);
    threads_cond_init(&runner->keep);
    for (int i = OWNER_MAX_IN_FLIGHT - 1; i >= 0; i--)
        runner->free_places[runner->n_free_places++] = (uint16_t)i;
    return runner;
}

int runner_open(const struct runner_config *config, struct runner **out_runner,
                struct fault *fault) {
    *out_runner = NULL;
    struct runner *runner = prepare(config);
    if (!runner)
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    int status = place_copy(config->place, &runner->place, fault);
    if (!status && (reserve_init(&runner->reserve, &runner->place) ||
                    live_map_init(&runner->jobs) || events_open(config->wanted, &runner->events)))
        status = fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    if (!status)
        status = open_store(runner, fault);
    if (status) {
        release(runner);
        return status;
    }
    if (start_threads(runner)) {
        fault_set(fault, STATUS_NO_MEMORY, "cannot start %d worker threads", config->workers);
        runner_close(runner, -1);
        runner_free(runner);
        return STATUS_NO_MEMORY;
    }
    *out_runner = runner;
    return STATUS_OK;
}

// --- closing ---

static void cancel_hand(struct live *live, void *context) {
    (void)context;
    if (live->task && live->task->hand)
        hand_cancel(live->task->hand);
}

void runner_begin_close(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner->is_closing = true;
    runner->is_stopped = true;
    live_map_each(&runner->jobs, cancel_hand, NULL);
    pthread_cond_broadcast(&runner->changed);
    pthread_cond_broadcast(&runner->has_work);
    pthread_mutex_unlock(&runner->lock);
}

static void count_task(struct live *live, void *context) {
    int64_t *n = context;
    *n += live->task != NULL;
}

int64_t runner_n_unsettled(struct runner *runner) {
    int64_t n = 0;
    pthread_mutex_lock(&runner->lock);
    live_map_each(&runner->jobs, count_task, &n);
    pthread_mutex_unlock(&runner->lock);
    return n;
}

// With "resume", or handed over, the jobs are everybody's again. With "fail" they keep their dead
// owner, whose row is what the next runner finds: a row with live jobs stays.
static int leave(struct runner *runner, int64_t patience_ms) {
    struct store *store = runner->store;
    int64_t n_jobs = 0;
    int status = store->ops->begin(store, patience_ms);
    if (!status)
        runner_bequeath(runner);
    if (!status && (runner->config.resumes || runner->is_handing_over))
        status = store->ops->release_jobs(store, runner->owner.id, &n_jobs);
    if (!status)
        status = store->ops->delete_owner(store, runner->owner.id);
    if (!status)
        status = store->ops->commit(store);
    if (status)
        store->ops->rollback(store);
    else if (n_jobs > 0)
        owners_ring(runner->owners);
    return status;
}

static int64_t patience_until(int64_t due_us) {
    int64_t left_ms = (due_us - clock_mono_us(NULL)) / 1000;
    if (left_ms < LEAST_PATIENCE_MS)
        return LEAST_PATIENCE_MS;
    return left_ms < CLOSE_PATIENCE_MS ? left_ms : CLOSE_PATIENCE_MS;
}

int runner_close(struct runner *runner, int64_t timeout_ms) {
    int64_t due_us = timeout_ms < 0 ? INT64_MAX : clock_mono_us(NULL) + timeout_ms * 1000;
    runner_begin_close(runner);
    if (runner->workers && workers_stop(runner->workers, due_us))
        return STATUS_TIMEOUT;
    runner_stop_keeper(runner);
    if (runner->queue)
        commit_stop(runner->queue, patience_until(due_us));
    // A failure here loses nothing: the next runner finds the owner dead.
    if (runner->store && runner->owner.id)
        leave(runner, patience_until(due_us));
    return STATUS_OK;
}

void runner_free(struct runner *runner) {
    if (runner->workers)
        workers_close(runner->workers);
    if (runner->queue)
        commit_close(runner->queue);
    release(runner);
}

int64_t runner_foreign_pid(const struct runner *runner) {
    return runner->generation == owners_fork_generation() ? 0 : runner->pid;
}

struct events *runner_events(struct runner *runner) {
    return runner->events;
}

const struct runner_config *runner_config(const struct runner *runner) {
    return &runner->config;
}
