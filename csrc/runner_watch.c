// SPDX-License-Identifier: MIT
//
// The watch over a runner's own threads. The keeper looks after whoever commits and after the
// hands; after the keeper looks whoever asks for stats. None of them can be replaced while it hangs
// in the kernel, for it has the store's connection in its hands: it is told, until it comes back.

#include "runner_state.h"

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

// Whether a thing is otherwise than it was told last; it is to be told then.
static bool is_news(struct runner *runner, bool *told, bool is_so) {
    pthread_mutex_lock(&runner->lock);
    bool is_new = *told != is_so;
    *told = is_so;
    pthread_mutex_unlock(&runner->lock);
    return is_new;
}

bool runner_keeper_hangs(struct runner *runner) {
    pthread_mutex_lock(&runner->lock);
    bool is_running = runner->has_keeper;
    pthread_mutex_unlock(&runner->lock);
    int64_t still_us = clock_mono_us(NULL) - atomic_load(&runner->keeper_seen_us);
    bool hangs = is_running && still_us > stuck_after_us(runner);
    bool is_new = is_news(runner, &runner->is_keeper_stuck, hangs);
    if (is_new && hangs)
        runner_log(runner, LOG_ERROR, "the keeper thread hangs", NULL, NULL);
    else if (is_new)
        runner_log(runner, LOG_WARN, "the keeper thread has come back", NULL, NULL);
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
    bool is_short = (int)workers_alive(runner->workers) < runner->config.workers;
    bool is_new = is_news(runner, &runner->is_short_of_hands, is_short);
    if (is_new && is_short)
        runner_log(runner, LOG_ERROR, "cannot start a worker thread", NULL, NULL);
    else if (is_new)
        runner_log(runner, LOG_WARN, "all worker threads run again", NULL, NULL);
}

void runner_watch(struct runner *runner) {
    bool hangs = runner_commits_hang(runner);
    bool is_new = is_news(runner, &runner->is_commit_stuck, hangs);
    if (is_new && hangs)
        runner_log(runner, LOG_ERROR, "a transaction hangs in the store", NULL, NULL);
    else if (is_new)
        runner_log(runner, LOG_WARN, "the transaction that hung has come back", NULL, NULL);
    if (runner->workers &&
        ((int)workers_alive(runner->workers) < runner->config.workers || runner->is_short_of_hands))
        replace_hands(runner);
}
