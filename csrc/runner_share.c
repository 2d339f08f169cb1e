// SPDX-License-Identifier: MIT
//
// Jobs that change hands between the processes on a store: claimed when nobody has them, given back
// when others should have them. A process with idle hands says so in memory that all share
// ("hungry"); it is never waited for, and nothing here is done in a process that is alone. With
// on_restart = "fail" a job shares the fate of its process: what was submitted there stays there.

#include "runner_state.h"

#include <stdlib.h>

enum {
    GIVE_AT_ONCE = 256,
    SOON_US = 1000000,       // jobs are claimed for so long
    LONG_WAIT_US = 20000,    // for a turn, when another process could take it
    LONG_CROWD_US = 100000,  // of turns without hands, however short each waits, likewise
    SHORT_WAIT_US = 1000,    // not worth another process's while
    PATIENCE_US = 1000000,   // with a program that takes nothing
    CLAIM_FOR_PROGRAM = 32,
};

// --- hands ---

// A program that takes by itself has as many as its config says.
static int64_t count_hands(const struct runner *runner) {
    return runner->config.workers > 0 ? runner->config.workers : 1;
}

// Hands that fetch nothing and have no turn waiting for them; negative: turns that have no hand.
static int64_t free_hands_locked(const struct runner *runner) {
    int64_t n_hands = runner->is_trying ? 0 : count_hands(runner) - runner->n_in_flight;
    return n_hands - (int64_t)runner->rotation.n_ready;
}

static int64_t mean_fetch_us(const struct runner *runner) {
    bool is_known = runner->figures.targets_done + runner->figures.targets_failed > 0;
    return is_known && !runner->mean_fetch_us ? 1 : runner->mean_fetch_us;
}

// How long the last of so many turns has to wait, as far as is known.
static int64_t wait_us_locked(const struct runner *runner, size_t n_turns) {
    return mean_fetch_us(runner) * (int64_t)n_turns / count_hands(runner);
}

// Whether a turn that comes is taken soon, as far as is known: a program that has not asked for a
// while may be at something else.
static bool is_at_work_locked(const struct runner *runner) {
    return runner->workers || runner->has_looked_in_vain || runner->n_in_flight > 0;
}

static int64_t idle_hands_locked(const struct runner *runner) {
    bool is_open = !runner->is_stopped && !runner->is_handing_over;
    if (!is_open || runner->is_trying || runner->claim.is_running || runner->rotation.n_ready > 0)
        return 0;
    if (runner->workers)
        return workers_idle(runner->workers);
    return is_at_work_locked(runner) ? free_hands_locked(runner) : 0;
}

static void tell_hunger_locked(struct runner *runner) {
    int64_t n_idle = idle_hands_locked(runner);
    owners_be_hungry(runner->owners, n_idle > 0 ? (unsigned)n_idle : 0);
}

bool runner_leaves_to_others(struct runner *runner) {
    if (runner->is_handing_over)
        return true;
    if (!runner->config.resumes || !owners_hungry_others(runner->owners))
        return false;
    pthread_mutex_lock(&runner->lock);
    bool leaves = free_hands_locked(runner) <= 0 &&
                  wait_us_locked(runner, runner->rotation.n_ready + 1) > SHORT_WAIT_US;
    pthread_mutex_unlock(&runner->lock);
    return leaves;
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
    while (!status && (int64_t)errand->n_claimed < errand->n_jobs) {
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
    runner->has_unclaimed = (int64_t)errand->n_claimed == errand->n_jobs;
    if (errand->n_claimed > 0)
        runner->has_looked_in_vain = false;
    for (size_t i = 0; i < errand->n_claimed; i++)
        runner_adopt_locked(runner, runner->claimed[i]);
    errand->n_claimed = 0;
    errand->is_running = false;
    tell_hunger_locked(runner);
}

static int64_t count_to_claim_locked(const struct runner *runner) {
    int64_t hands = count_hands(runner), mean_us = mean_fetch_us(runner);
    if (runner->is_trying)
        return 0;
    if (owners_hungry_others(runner->owners))
        return is_at_work_locked(runner) ? free_hands_locked(runner) : 0;
    int64_t n_jobs = mean_us ? hands * SOON_US / mean_us : 0;
    int64_t n_least = runner->workers ? 2 * hands : CLAIM_FOR_PROGRAM;
    return (n_jobs > n_least ? n_jobs : n_least) - (int64_t)runner->rotation.n_ready;
}

static void claim_locked(struct runner *runner) {
    struct errand *errand = &runner->claim;
    if (errand->is_running || runner->is_stopped || runner->is_handing_over)
        return;
    int64_t n_jobs = count_to_claim_locked(runner);
    if (n_jobs <= 0)
        return;
    errand->is_running = true;
    errand->runner = runner;
    errand->n_jobs = n_jobs < CLAIM_AT_ONCE ? n_jobs : CLAIM_AT_ONCE;
    errand->item = (struct commit_item){.apply = apply_claim, .done = claim_done_locked};
    commit_leave(runner->queue, &errand->item, COMMIT_BY_COMMITTER);
}

void runner_claim(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner->has_unclaimed = true;
    claim_locked(runner);
    pthread_mutex_unlock(&runner->lock);
}

void runner_claim_more_locked(struct runner *runner) {
    if (runner->has_unclaimed && (int64_t)runner->rotation.n_ready < count_hands(runner))
        claim_locked(runner);
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

// Whether the first turn has been ready since this was asked last, at least wait_us ago.
static bool is_left_waiting_locked(struct runner *runner, int64_t wait_us) {
    const struct turn *first = runner->rotation.first;
    int64_t now_us = clock_mono_us(NULL);
    if (now_us - runner->looked_who_waits_us < wait_us)
        return false;
    bool is_waiting = first && first->ready_since <= runner->entered_at_look;
    runner->looked_who_waits_us = now_us;
    runner->entered_at_look = runner->rotation.n_entered;
    return is_waiting;
}

// Whether for most of the last time there were turns without hands here, while others had hands to
// spare: quick targets of long jobs, say, of which none waits for long. It will go on, then. Times
// between do not count against it as much, for a transaction that ends makes many turns at once.
static bool is_crowded_locked(struct runner *runner, bool is_crowd) {
    int64_t now_us = clock_mono_us(NULL), span_us = now_us - runner->looked_at_crowd_us;
    runner->looked_at_crowd_us = now_us;
    if (span_us < LONG_CROWD_US)  // else it was nobody's business to look
        runner->crowded_us += is_crowd ? span_us : -span_us / 3;
    if (runner->crowded_us < 0)
        runner->crowded_us = 0;
    bool is_long = runner->crowded_us >= LONG_CROWD_US;
    if (is_long)
        runner->crowded_us = 0;
    return is_long;
}

// Turns that would have to wait noticeably here, while others could take them: half of those that
// find no hand, so that two processes do not throw them to and fro. A program that has hands left
// but takes nothing is given some time.
static size_t count_to_spread_locked(struct runner *runner) {
    size_t n_ready = runner->rotation.n_ready;
    int64_t n_without = -free_hands_locked(runner);
    bool is_busy = runner->workers || runner->n_in_flight >= count_hands(runner);
    bool is_left = is_left_waiting_locked(runner, is_busy ? LONG_WAIT_US : PATIENCE_US);
    bool is_slow = is_busy && wait_us_locked(runner, n_ready) > LONG_WAIT_US;
    size_t n_hungry = n_ready ? owners_hungry_others(runner->owners) : 0;
    bool is_crowded =
        is_crowded_locked(runner, is_at_work_locked(runner) && n_without > 0 && n_hungry > 0);
    if (!is_busy && !is_crowded)
        n_without = (int64_t)n_ready;
    if (n_without <= 0 || !(is_left || is_slow || is_crowded))
        return 0;
    size_t n_half = ((size_t)n_without + 1) / 2;
    return n_half < n_hungry ? n_half : n_hungry;
}

static size_t count_to_give_locked(struct runner *runner) {
    if (runner->is_handing_over)
        return runner->rotation.n_ready + runner->rotation.n_waiting;
    return runner->config.resumes ? count_to_spread_locked(runner) : 0;
}

void runner_share(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    tell_hunger_locked(runner);
    size_t n_jobs = runner->is_giving || runner->is_stopped ? 0 : count_to_give_locked(runner);
    if (n_jobs > 0)
        give_locked(runner, n_jobs < GIVE_AT_ONCE ? n_jobs : GIVE_AT_ONCE);
    pthread_mutex_unlock(&runner->lock);
}

void runner_begin_handover(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    runner->is_handing_over = true;
    runner_hurry_keeper_locked(runner, 0);
    pthread_mutex_unlock(&runner->lock);
}
