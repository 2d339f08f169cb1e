// SPDX-License-Identifier: MIT
//
// The keeper: the thread for all that time brings. It makes waiting turns ready, sees what other
// processes wrote, claims jobs that nobody owns, finds dead owners and stuck hands, and sweeps. It
// never waits for the store's lock: what it has to write goes through the commit queue.

#include "runner_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LOOK_EVERY_US = 20000,  // at other processes' writes: a pragma of some microseconds
    HEAR_EVERY_US = 1000,   // the bell, at most
    REAP_EVERY_US = 20000,  // a read transaction, and two microseconds for each owner
    SWEEP_EVERY_US = 60000000,
    PROVE_EVERY_US = 2000000,  // a readiness probe comes every five seconds or so
};

void runner_hurry_keeper_locked(struct runner *runner, int64_t due_us) {
    if (due_us < runner->keeper_due_us) {
        runner->keeper_due_us = due_us;
        pthread_cond_signal(&runner->keep);
    }
}

// --- other processes' writes ---

struct suspects {
    size_t count;
    char (*ids)[JOB_ID_SIZE];
};

static void add_suspect(struct live *live, void *context) {
    struct suspects *suspects = context;
    if (!live->is_cancelled)
        memcpy(suspects->ids[suspects->count++], live->id, JOB_ID_SIZE);
}

static void check_suspects(struct runner *runner, const struct suspects *suspects) {
    struct store *watch = runner->watch;
    if (watch->ops->begin_read(watch))
        return;
    for (size_t i = 0; i < suspects->count; i++) {
        struct job_row job;
        if (watch->ops->read_job(watch, suspects->ids[i], &job) == STATUS_OK &&
            job.status == JOB_CANCELLED) {
            pthread_mutex_lock(&runner->lock);
            runner_mark_cancelled_locked(runner, job.key);
            pthread_mutex_unlock(&runner->lock);
        }
    }
    watch->ops->end_read(watch);
}

// Somebody cancelled a job of some process: looks whether it was one of ours.
static void find_cancelled(struct runner *runner) {
    struct suspects suspects = {0};
    pthread_mutex_lock(&runner->lock);
    suspects.ids = malloc((runner->jobs.count + 1) * sizeof *suspects.ids);
    if (suspects.ids)
        live_map_each(&runner->jobs, add_suspect, &suspects);
    pthread_mutex_unlock(&runner->lock);
    if (suspects.ids)
        check_suspects(runner, &suspects);
    free(suspects.ids);
}

static void look(struct runner *runner) {
    int64_t version;
    bool has_unowned = false;
    commit_rouse(runner->queue);
    pthread_mutex_lock(&runner->lock);
    runner_show_figures_locked(runner);
    pthread_mutex_unlock(&runner->lock);
    uint64_t announced = owners_announced(runner->owners);
    if (announced != runner->keeper_announced) {
        runner->keeper_announced = announced;
        find_cancelled(runner);
    }
    struct store *watch = runner->watch;
    if (watch->ops->data_version(watch, &version))
        return;
    if (version != runner->data_version) {
        runner->data_version = version;
        pthread_mutex_lock(&runner->lock);
        runner_announce_change_locked(runner);
        pthread_mutex_unlock(&runner->lock);
    }
    // Asked at every look: unclaimed jobs may be left over for want of free hands.
    if (runner->owner.id)
        watch->ops->has_unowned(watch, &has_unowned);
    if (has_unowned)
        runner_claim(runner);
}

// --- errands: small writes that the keeper starts and does not wait for ---

static bool begin_errand(struct runner *runner, struct errand *errand) {
    pthread_mutex_lock(&runner->lock);
    bool is_free = !errand->is_running && !runner->is_stopped;
    errand->is_running |= is_free;
    pthread_mutex_unlock(&runner->lock);
    if (is_free)
        errand->runner = runner;
    return is_free;
}

static int apply_reap(struct commit_item *item, struct store *store) {
    struct errand *errand = (struct errand *)item;
    runner_drop_reap(&errand->reap);  // of a try that failed
    return runner_reap(errand->runner, store, &errand->owner, &errand->reap);
}

static void reap_done_locked(struct commit_item *item) {
    struct errand *errand = (struct errand *)item;
    struct runner *runner = errand->runner;
    errand->is_running = false;
    if (item->status) {
        runner_drop_reap(&errand->reap);
        return;
    }
    runner->is_to_ring |= errand->reap.n_released > 0;
    runner_tell_reap_locked(runner, &errand->reap);
    // What it had can be claimed, and there may be more of them: look again at once.
    runner->reaped_at_us = runner->looked_at_us = 0;
    runner_hurry_keeper_locked(runner, 0);
}

static bool find_dead(struct runner *runner, struct owner_row *out_owner) {
    struct store *watch = runner->watch;
    struct owner_row owner = {0};
    bool is_dead = false;
    if (watch->ops->begin_read(watch))
        return false;
    while (!is_dead && watch->ops->next_owner(watch, owner.id, &owner) == STATUS_OK)
        is_dead = owner.id != runner->owner.id && !owners_is_alive(runner->owners, owner.id);
    watch->ops->end_read(watch);
    *out_owner = owner;
    return is_dead;
}

static void reap(struct runner *runner) {
    struct owner_row owner;
    if (!find_dead(runner, &owner) || !begin_errand(runner, &runner->reap))
        return;
    runner->reap.owner = owner;
    runner->reap.item = (struct commit_item){.apply = apply_reap, .done = reap_done_locked};
    commit_leave(runner->queue, &runner->reap.item, COMMIT_BY_COMMITTER);
}

static int apply_sweep(struct commit_item *item, struct store *store) {
    struct errand *errand = (struct errand *)item;
    int status = runner_sweep(errand->runner, store, &errand->has_more);
    return status || !errand->proves ? status : runner_prove(errand->runner, store);
}

static void sweep_done_locked(struct commit_item *item) {
    struct errand *errand = (struct errand *)item;
    if (!item->status && errand->has_more)
        errand->runner->swept_at_us = 0;
    errand->is_running = false;
}

static void sweep(struct runner *runner, bool proves) {
    if (!begin_errand(runner, &runner->sweep))
        return;
    reserve_fill(&runner->reserve);
    runner->sweep.proves = proves;
    runner->sweep.item = (struct commit_item){.apply = apply_sweep, .done = sweep_done_locked};
    commit_leave(runner->queue, &runner->sweep.item, COMMIT_BY_COMMITTER);
}

// Whether it has to be found out if the store can be written: it could not, and nothing else waits
// to be tried again, or somebody wants to know it of a runner that has nothing to write.
static bool wants_proof(struct runner *runner, int64_t now_us) {
    bool is_pausing = commit_is_pausing(runner->queue);
    pthread_mutex_lock(&runner->lock);
    bool is_open = runner->is_failing ? !is_pausing : runner->is_asked;
    bool is_wanted = is_open && now_us - runner->proved_at_us >= PROVE_EVERY_US;
    if (is_wanted) {
        runner->proved_at_us = now_us;
        runner->is_asked = false;
    }
    pthread_mutex_unlock(&runner->lock);
    return is_wanted;
}

static void find_stuck(struct runner *runner, int64_t now_us) {
    struct overdue overdue;
    int64_t due_us = now_us - BATCH_ABANDON_AFTER_MS * 1000;
    // One that cannot be abandoned now would be found again at once: it waits for the next look.
    while (workers_find_overdue(runner->workers, due_us, &overdue) &&
           runner_abandon(runner, &overdue))
        ;
}

// --- the thread that hears the bell ---

// The keeper looks at once, but not for each of many rings.
static void *run_listener(void *argument) {
    const struct timespec nap = {0, HEAR_EVERY_US * 1000};
    struct runner *runner = argument;
    bool goes_on;
    do {
        owners_wait(runner->owners, runner->n_rings_heard);
        runner->n_rings_heard = owners_n_rings(runner->owners);
        pthread_mutex_lock(&runner->lock);
        goes_on = runner->has_listener;
        runner->looked_at_us = 0;
        runner_hurry_keeper_locked(runner, 0);
        pthread_mutex_unlock(&runner->lock);
        if (goes_on)
            nanosleep(&nap, NULL);
    } while (goes_on);
    return NULL;
}

static int start_listener(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    int status = threads_start(&runner->listener, run_listener, runner);
    runner->has_listener = status == STATUS_OK;
    pthread_mutex_unlock(&runner->lock);
    return status;
}

static void stop_listener(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    bool is_running = runner->has_listener;
    runner->has_listener = false;
    pthread_mutex_unlock(&runner->lock);
    if (is_running) {
        owners_ring(runner->owners);
        pthread_join(runner->listener, NULL);
    }
}

// --- the thread ---

// Sleeps until something is due, and makes the turns ready whose moment has come.
static bool sleep_until_due(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    int64_t now_us = runner_now_us(runner);
    int64_t due_us = rotation_next_due(&runner->rotation);
    if (due_us > now_us + LOOK_EVERY_US)
        due_us = now_us + LOOK_EVERY_US;
    // What it was hurried to meanwhile may be due earlier.
    if (runner->keeper_due_us > due_us)
        runner->keeper_due_us = due_us;
    int64_t left_us = runner->keeper_due_us - now_us;
    if (left_us > 0 && runner->has_keeper) {
        int64_t nap_us = clock_nap_us(runner->config.clock, left_us);
        threads_wait_until(&runner->keep, &runner->lock, clock_mono_us(NULL) + nap_us);
    }
    size_t n_woken = rotation_wake_due(&runner->rotation, runner_now_us(runner));
    runner->n_newly_ready += (unsigned)n_woken;
    runner->keeper_due_us = INT64_MAX;
    bool goes_on = runner->has_keeper;
    runner_unlock(runner);
    return goes_on;
}

static bool is_due(struct runner *runner, int64_t *last_us, int64_t now_us, int64_t every_us) {
    pthread_mutex_lock(&runner->lock);
    bool is_time = now_us - *last_us >= every_us || *last_us == 0;
    if (is_time)
        *last_us = now_us ? now_us : 1;  // 0 asks for one at once
    pthread_mutex_unlock(&runner->lock);
    return is_time;
}

static void *run_keeper(void *argument) {
    struct runner *runner = argument;
    while (sleep_until_due(runner)) {
        int64_t real_us = clock_mono_us(NULL), now_us = runner_now_us(runner);
        runner_keeper_lives(runner);
        if (is_due(runner, &runner->looked_at_us, real_us, LOOK_EVERY_US))
            look(runner);
        runner_watch(runner);
        if (!runner->owner.id)
            continue;
        runner_share(runner);
        if (is_due(runner, &runner->reaped_at_us, real_us, REAP_EVERY_US))
            reap(runner);
        bool proves = wants_proof(runner, real_us);
        if (is_due(runner, &runner->swept_at_us, now_us, SWEEP_EVERY_US) || proves)
            sweep(runner, proves);
        if (runner->workers)
            find_stuck(runner, now_us);
    }
    return NULL;
}

int runner_start_keeper(struct runner *runner) {
    // What is rung before the keeper's first look is seen by it, what comes after is heard.
    runner->n_rings_heard = owners_n_rings(runner->owners);
    runner_keeper_lives(runner);
    pthread_mutex_lock(&runner->lock);
    int status = threads_start(&runner->keeper, run_keeper, runner);
    runner->has_keeper = status == STATUS_OK;
    pthread_mutex_unlock(&runner->lock);
    return status || !runner->owner.id ? status : start_listener(runner);
}

void runner_stop_keeper(struct runner *runner) {
    stop_listener(runner);
    pthread_mutex_lock(&runner->lock);
    bool is_running = runner->has_keeper;
    runner->has_keeper = false;
    pthread_cond_signal(&runner->keep);
    pthread_mutex_unlock(&runner->lock);
    if (is_running)
        pthread_join(runner->keeper, NULL);
    if (runner->owner.id)
        owners_be_hungry(runner->owners, 0);
}
