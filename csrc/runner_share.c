// SPDX-License-Identifier: MIT
//
// Jobs that change hands between the processes on a store: claimed when nobody has them, given back
// when others should.

#include "runner_state.h"

#include <stdlib.h>

enum { GIVE_AT_ONCE = 256 };

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
    bool is_open = !runner->is_stopped && !runner->is_handing_over;
    bool is_wanted = can_start > 0 && !errand->is_running && is_open;
    errand->is_running |= is_wanted;
    pthread_mutex_unlock(&runner->lock);
    if (!is_wanted)
        return;
    errand->runner = runner;
    errand->n_jobs = can_start;
    errand->item = (struct commit_item){.apply = apply_claim, .done = claim_done_locked};
    commit_leave(runner->queue, &errand->item, COMMIT_BY_COMMITTER);
}

// --- give back ---

// Jobs on their way back to everybody, in one transaction.
struct giving {
    struct commit_item item;  // first
    struct runner *runner;
    size_t n_jobs;
    struct {
        int64_t key;
        bool is_given;  // else it was not live any more
    } jobs[GIVE_AT_ONCE];
};

static int apply_giving(struct commit_item *item, struct store *store) {
    struct giving *giving = (struct giving *)item;
    for (size_t i = 0; i < giving->n_jobs; i++) {
        int status = store->ops->release_job(store, giving->jobs[i].key, giving->runner->owner.id);
        giving->jobs[i].is_given = status == STATUS_OK;
        if (status && status != STATUS_NOT_FOUND)
            return status;
    }
    return STATUS_OK;
}

// Without success the job is this runner's as before. In a handover the next look tries again: not
// at once, for it would fail again.
static void keep_locked(struct runner *runner, struct live *live) {
    if (runner->is_handing_over)
        rotation_push(&runner->rotation, &live->turn);
    else
        runner_ready_locked(runner, live);
}

static void giving_done_locked(struct commit_item *item) {
    struct giving *giving = (struct giving *)item;
    struct runner *runner = giving->runner;
    for (size_t i = 0; i < giving->n_jobs; i++) {
        struct live *live = live_map_find(&runner->jobs, giving->jobs[i].key);
        live->is_leaving = false;
        if (item->status)
            keep_locked(runner, live);
        else if (giving->jobs[i].is_given)
            runner_forget_locked(runner, live);
        else  // cancelled while it was still this runner's: whoever did leaves telling it to us
            runner_mark_cancelled_locked(runner, live->key);
    }
    runner->is_giving = false;
    runner->is_to_ring |= !item->status;
    if (!item->status)
        runner_hurry_keeper_locked(runner, 0);  // there may be more
    free(giving);
}

// Who has to wait longest for its turn; in the end those that wait for their moment.
static struct live *next_to_give(const struct runner *runner) {
    const struct rotation *rotation = &runner->rotation;
    if (rotation->last)
        return (struct live *)rotation->last;
    return rotation->n_waiting ? (struct live *)rotation->heap[0] : NULL;
}

static void give_locked(struct runner *runner, size_t n_jobs) {
    struct giving *giving = malloc(sizeof *giving);
    if (!giving)
        return;
    giving->item = (struct commit_item){.apply = apply_giving, .done = giving_done_locked};
    giving->runner = runner;
    for (giving->n_jobs = 0; giving->n_jobs < n_jobs; giving->n_jobs++) {
        struct live *live = next_to_give(runner);
        rotation_remove(&runner->rotation, &live->turn);
        live->is_leaving = true;
        giving->jobs[giving->n_jobs].key = live->key;
    }
    runner->is_giving = true;
    commit_leave(runner->queue, &giving->item, COMMIT_BY_COMMITTER);
}

static size_t count_to_give_locked(const struct runner *runner) {
    if (!runner->is_handing_over)
        return 0;
    return runner->rotation.n_ready + runner->rotation.n_waiting;
}

void runner_share(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    size_t n_jobs = count_to_give_locked(runner);
    if (n_jobs > 0 && !runner->is_giving && !runner->is_stopped)
        give_locked(runner, n_jobs < GIVE_AT_ONCE ? n_jobs : GIVE_AT_ONCE);
    pthread_mutex_unlock(&runner->lock);
}

void runner_begin_handover(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner->is_handing_over = true;
    runner_hurry_keeper_locked(runner, 0);
    pthread_mutex_unlock(&runner->lock);
}
