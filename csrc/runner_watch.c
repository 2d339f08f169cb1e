// SPDX-License-Identifier: MIT
//
// The watch over a runner's own threads. The keeper looks after whoever commits and after the
// hands; after the keeper looks whoever asks for stats. None of them can be replaced while it hangs
// in the kernel, for it has the store's connection in its hands: it is told, until it comes back.

#include "runner_state.h"

#include <stdio.h>

enum {
    STUCK_AFTER_MS = 15000,  // longer than anything is waited for
    REPLACE_EVERY_US = 500000,
};

static int64_t stuck_after_us(const struct runner *runner) {
    int64_t span_ms = runner->config.stuck_after_ms;
    return (span_ms ? span_ms : STUCK_AFTER_MS) * 1000;
}

bool runner_commits_hang(struct runner *runner) {
    return runner->queue && commit_still_us(runner->queue) > stuck_after_us(runner);
}

void runner_keeper_lives(struct runner *runner) {
    atomic_store(&runner->keeper_seen_us, clock_mono_us(NULL));
}

// Tells of a thread that hangs, or that it has come back; once.
static void tell(struct runner *runner, bool *was_stuck, bool is_stuck, const char *stuck,
                 const char *back) {
    pthread_mutex_lock(&runner->lock);
    bool is_news = *was_stuck != is_stuck;
    *was_stuck = is_stuck;
    pthread_mutex_unlock(&runner->lock);
    if (is_news)
        runner_log(runner, is_stuck ? LOG_ERROR : LOG_WARN, is_stuck ? stuck : back, NULL, NULL);
}

bool runner_keeper_hangs(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    bool is_running = runner->has_keeper;
    pthread_mutex_unlock(&runner->lock);
    int64_t still_us = clock_mono_us(NULL) - atomic_load(&runner->keeper_seen_us);
    bool hangs = is_running && still_us > stuck_after_us(runner);
    tell(runner, &runner->is_keeper_stuck, hangs, "the keeper thread hangs",
         "the keeper thread has come back");
    return hangs;
}

// A hand that was abandoned is replaced at once; this is for the time when no thread was to be had.
static void replace_hands(struct runner *runner) {
    int64_t now_us = clock_mono_us(NULL);
    if (now_us - runner->replaced_at_us < REPLACE_EVERY_US)
        return;
    runner->replaced_at_us = now_us;
    pthread_mutex_lock(&runner->lock);
    bool no_more = runner->is_closing || runner->figures.abandoned_threads > BATCH_MAX_ABANDONED;
    pthread_mutex_unlock(&runner->lock);
    if (no_more)
        return;
    workers_replace(runner->workers);
    tell(runner, &runner->is_short_of_hands,
         (int)workers_alive(runner->workers) < runner->config.workers,
         "cannot start a worker thread", "all worker threads run again");
}

void runner_watch(struct runner *runner) {
    tell(runner, &runner->is_commit_stuck, runner_commits_hang(runner),
         "a transaction hangs in the store", "the transaction that hung has come back");
    if (runner->workers &&
        ((int)workers_alive(runner->workers) < runner->config.workers || runner->is_short_of_hands))
        replace_hands(runner);
}
