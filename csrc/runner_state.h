// SPDX-License-Identifier: MIT
//
// What the files of the runner share. lock guards everything below it; no callback, SQL or
// unbounded work runs under it. Order of locks: runner, then workers, events or commit queue, never
// back.

#ifndef BATCH_RUNNER_STATE_H
#define BATCH_RUNNER_STATE_H

#include "commit.h"
#include "job_live.h"
#include "owner.h"
#include "readers.h"
#include "reserve.h"
#include "runner.h"
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>

// A job as a reap found it, and what became of it.
struct reaped {
    struct reaped *next;
    struct live *live;
    int job_status;
    bool is_crashed;  // its target at next_idx was stored as "crashed"
};

// What a reap has ended, to be told when its transaction is committed. All zero: nothing.
struct reap {
    struct reaped *first;
    int64_t n_released;  // jobs that are everybody's now
    bool has_more;       // the same owner has more live jobs
    bool is_broken;      // memory ran out
};

// Work of the keeper on its way through the commit queue.
struct errand {
    struct commit_item item;
    struct runner *runner;
    bool is_running;         // guarded by the lock
    struct owner_row owner;  // reap: whose jobs
    struct reap reap;
    size_t n_claimed;
    int64_t n_jobs;  // claim: wanted
    bool has_more;   // sweep
    bool proves;     // sweep: whether it writes in any case
};

// A small write on its way through the commit queue that nobody waits for.
struct note {
    struct commit_item item;  // first
    struct runner *runner;
    int64_t key, idx, now, attempts, busy_ms;
};

enum { CLAIM_AT_ONCE = 128 };

// Between two looks of the committer when nobody waits to be woken by them.
enum { LONG_TICK_US = 1000 };

// So much of outcomes may wait in memory for a store that does not take them; then nothing more is
// handed out. Eight results as large as max_result_bytes allows by default.
enum { MAX_UNSTORED_BYTES = 64 * 1024 * 1024 };

struct runner {
    struct runner_config config;
    struct place place;
    struct owners *owners;
    struct reserve reserve;  // lent by the commit queue's leader
    struct store *store;     // the writing connection; the commit queue's leader uses it
    struct readers *readers;
    struct commit_queue *queue;
    struct workers *workers;  // NULL: no threads fetch
    struct events *events;
    struct owner_row owner;  // id 0: a client
    int64_t pid;
    unsigned generation;

    pthread_mutex_t lock;
    pthread_cond_t changed;   // a job ended or another process wrote: for runner_wait
    pthread_cond_t has_work;  // a turn came: for runner_wait_for_work
    pthread_cond_t keep;      // for the keeper: an earlier moment, or the end
    struct live_map jobs;
    struct rotation rotation;
    struct figures figures;
    uint64_t n_changes;
    int64_t n_in_flight;
    int64_t unstored_bytes;  // of outcomes on their way to the store
    size_t n_ended;  // of the jobs in the map: not live any more, but their target is in flight
    uint16_t free_places[OWNER_MAX_IN_FLIGHT];  // of the owner's register
    size_t n_free_places;
    unsigned n_newly_ready;       // turns since the lock was taken, for runner_unlock
    uint64_t entered_before[2];   // rotation.n_entered at the last two looks for what nobody took
    int64_t keeper_due_us;        // when the keeper looks next; INT64_MAX while it is at it
    bool is_trying;               // what is in flight is on its last chance, and alone
    bool is_held_up;              // a turn was not taken: something must end first
    bool is_failing;              // the last transaction failed
    bool is_asked;                // somebody has asked since whether the store can be written
    int64_t proved_at_us;         // when that was last known, or tried to be
    bool has_bequeathed;          // its figures are counted as those of an owner that ended
    bool is_stopped;              // nothing is handed out any more, for good
    bool is_giving;               // jobs are on their way back to everybody
    bool is_to_ring;              // what is being settled leaves something for others to do
    bool has_unclaimed;           // there were more jobs without an owner than were claimed
    bool has_looked_in_vain;      // the program: for a task, and has got no job since
    uint64_t entered_at_look;     // rotation.n_entered when runner_share last looked who waits
    int64_t crowded_us;           // turns had no hands while others had some to spare, for so long
    int64_t looked_at_crowd_us;   // when that was seen last
    int64_t looked_who_waits_us;  // when that was
    bool has_keeper;
    bool is_commit_stuck;  // was told, as the next two
    bool is_keeper_stuck;
    bool is_short_of_hands;  // changed by the keeper alone
    _Atomic int64_t keeper_seen_us;
    _Atomic bool is_closing;
    _Atomic bool is_handing_over;   // its jobs are for others: nothing is handed out or claimed
    _Atomic int64_t mean_fetch_us;  // moving average

    // The commit queue's leader's alone:
    int64_t known_bytes;  // in the store, when last counted
    int64_t bytes_since;  // stored by this runner since
    int64_t counted_at_us;
    int64_t evict_above;      // bytes at which eviction is worth a try
    int64_t wall_offset_ms;   // of the wall clock from the monotonic one, as sweeps believe it
    int64_t jump_seen_at_us;  // when a sweep found the wall clock ahead of that; 0: it is not

    pthread_t listener;
    bool has_listener;       // under the lock
    uint32_t n_rings_heard;  // the listener's alone

    // The keeper's alone:
    pthread_t keeper;
    int64_t data_version;
    int64_t replaced_at_us;  // hands
    uint64_t keeper_announced;
    struct store *watch;                              // its own connection
    int64_t looked_at_us, reaped_at_us, swept_at_us;  // under the lock; 0: due at once
    struct errand claim, reap, sweep;
    struct live *claimed[CLAIM_AT_ONCE];  // on their way into the map
};

// --- runner_jobs.c ---
// Puts a job into the map and gives it its turn.
void runner_adopt_locked(struct runner *runner, struct live *live);
// Forgets a job that is not in flight.
void runner_forget_locked(struct runner *runner, struct live *live);
// Marks a job as cancelled, here and in its hand. One that leaves is left to those who let it.
void runner_mark_cancelled_locked(struct runner *runner, int64_t key);
// Counts the end of a job and tells hooks and waiters. error: "restart" or NULL. seconds < 0: none.
void runner_tell_end_locked(struct runner *runner, const struct live *live, int status,
                            const char *error, double seconds);
// The same of a job in the map, which is not live from now on.
void runner_job_ended_locked(struct runner *runner, const struct live *live, int status,
                             double seconds);
// From its submit until now.
double runner_job_seconds(const struct runner *runner, const struct live *live);
// Wakes those who wait for changes: of a job's status, or by another process.
void runner_announce_change_locked(struct runner *runner);

// --- runner_share.c ---
// Takes jobs without an owner: as many as can start soon, or, while other processes have idle
// hands, no more than this one has.
void runner_claim(struct runner *runner);
// The same where a turn was taken, when few are left and there were more jobs.
void runner_claim_more_locked(struct runner *runner);
// Tells others of idle hands here, and gives them jobs when they have some. Called by the keeper
// whenever it wakes.
void runner_share(struct runner *runner);
// Whether a job that is submitted now is left to others: they could start it sooner.
bool runner_leaves_to_others(struct runner *runner);

// --- runner_others.c ---
// Shows this runner's caps to those who come, and warns if somebody who is there has others.
void runner_compare_caps(struct runner *runner, struct store *store);
// Lets the others see what this runner has counted.
void runner_show_figures_locked(struct runner *runner);
// Leaves it to them, inside of a write transaction, before the owner is given up.
void runner_bequeath(struct runner *runner);

// --- runner_calls.c ---
// Renews a lease without waiting for it.
void runner_touch_soon(struct runner *runner, const char *id);

// --- runner_take.c ---
// Gives a job its turn. runner_unlock wakes for it.
void runner_ready_locked(struct runner *runner, struct live *live);
// Unlocks, then wakes whoever may take the turns that came: nobody wakes up only to wait for the
// lock. To be used wherever a turn may have come.
void runner_unlock(struct runner *runner);
// Lets a job that is in nobody's hands wait.
void runner_postpone_locked(struct runner *runner, struct live *live, int64_t span_us);
void runner_count_in_flight_locked(struct runner *runner, int change);
// Puts a small write that nobody waits for into the queue. Without memory for it, it is left out:
// what it says is known again with the job's next outcome; after a close it has no queue to go to.
void runner_leave_note_locked(struct runner *runner, const struct note *note);
bool runner_work(void *context, struct hand *hand);
bool runner_tick(void *context);
int64_t runner_tick_us(void *context);

// --- runner_finish.c ---
// Gives up a hand that is stuck: its target is stored as failed, another hand takes its place.
// Returns false when it has come back meanwhile, or memory is short: then it is stuck for longer.
bool runner_abandon(struct runner *runner, const struct overdue *overdue);

// --- runner_keeper.c ---
// The keeper, and for an owner the thread that hears the other processes' bell.
int runner_start_keeper(struct runner *runner);
void runner_stop_keeper(struct runner *runner);
void runner_hurry_keeper_locked(struct runner *runner, int64_t due_us);

// --- runner_watch.c ---
// Called by the keeper whenever it wakes: tells of a transaction that hangs, replaces hands.
void runner_watch(struct runner *runner);
void runner_keeper_lives(struct runner *runner);
// For those who want to know how the runner is; the keeper's case is told then.
bool runner_commits_hang(struct runner *runner);
bool runner_keeper_hangs(struct runner *runner);

// --- runner_upkeep.c ---
// Reaps one dead owner in a transaction of its own caller, who afterwards tells or drops out_reap.
int runner_reap(struct runner *runner, struct store *store, const struct owner_row *owner,
                struct reap *out_reap);
// Counts what was reaped, tells hooks, and drops it.
void runner_tell_reap_locked(struct runner *runner, struct reap *reap);
void runner_drop_reap(struct reap *reap);
// Drops what has lapsed and clears some rows of what was dropped. out_has_more: call again soon.
int runner_sweep(struct runner *runner, struct store *store, bool *out_has_more);
// Writes what nobody sees: the store can be written if the transaction can be committed.
int runner_prove(struct runner *runner, struct store *store);
// Drops the oldest finished jobs if the results no longer fit. Called by the queue's leader.
int runner_evict(struct runner *runner, struct store *store, int64_t n_new_bytes, bool has_finished,
                 int64_t *out_n_evicted);

// Whether fetches are so short that a hand which is done takes the next target sooner than another
// one would wake up: about the time of a futex call and a switch.
static inline bool runner_is_quick(const struct runner *runner) {
    return runner->mean_fetch_us <= 50;
}

// Whether fetches are so long that two looks of the committer, LONG_TICK_US each, do not count.
static inline bool runner_is_slow(const struct runner *runner) {
    return runner->mean_fetch_us >= 50 * LONG_TICK_US;
}

static inline bool runner_is_paused_locked(const struct runner *runner) {
    return runner->unstored_bytes >= MAX_UNSTORED_BYTES;
}

static inline int64_t runner_now_us(const struct runner *runner) {
    return clock_mono_us(runner->config.clock);
}

static inline int64_t runner_now_ms(const struct runner *runner) {
    return clock_wall_ms(runner->config.clock);
}

#endif
