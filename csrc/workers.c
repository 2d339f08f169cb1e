// SPDX-License-Identifier: MIT
//
// Threads and their sleep. n_wakes and the sleepers' count are an event count: a hand notes n_wakes
// before it looks for work, and goes to sleep only if it has not moved since; so work that comes
// between the look and the sleep is not missed.

#include "workers.h"

#include "clock.h"
#include "status.h"
#include "threads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct workers {
    struct workers_config config;
    pthread_mutex_t lock;
    pthread_cond_t wake;     // for sleeping hands
    pthread_cond_t stopped;  // for workers_stop
    _Atomic uint64_t n_wakes;
    _Atomic unsigned n_idle;
    _Atomic unsigned n_alive;
    _Atomic bool is_stopping;
    struct hand **hands;
    pthread_t *threads;  // of the hands that are there
};

static _Thread_local bool is_hand;

bool workers_is_hand(void) {
    return is_hand;
}

void hand_cancel(struct hand *hand) {
    uint64_t one = 1;
    if (!atomic_exchange(&hand->is_cancelled, true)) {
        ssize_t n = write(hand->wake_fd, &one, sizeof one);
        (void)n;
    }
}

static int phase(uint64_t state) {
    return (int)(state & ((1 << HAND_STATE_BITS) - 1));
}

static uint64_t with_phase(uint64_t state, int new_phase) {
    return (state >> HAND_STATE_BITS << HAND_STATE_BITS) | (uint64_t)new_phase;
}

void hand_begin(struct hand *hand, int64_t job_key, int64_t deadline_us) {
    uint64_t state = atomic_load(&hand->state) + (1 << HAND_STATE_BITS);
    atomic_store(&hand->job_key, job_key);
    atomic_store(&hand->deadline_us, deadline_us);
    atomic_store(&hand->state, with_phase(state, HAND_FETCHING));
}

void hand_reset(struct hand *hand) {
    uint64_t count;
    if (atomic_exchange(&hand->is_cancelled, false)) {
        ssize_t n = read(hand->wake_fd, &count, sizeof count);
        (void)n;
    }
}

bool hand_end(struct hand *hand) {
    uint64_t state = atomic_load(&hand->state);
    uint64_t fetching = with_phase(state, HAND_FETCHING);
    return atomic_compare_exchange_strong(&hand->state, &fetching, with_phase(state, HAND_STORING));
}

static void sleep_until_woken(struct workers *workers, uint64_t seen) {
    pthread_mutex_lock(&workers->lock);
    atomic_fetch_add(&workers->n_idle, 1);
    while (atomic_load(&workers->n_wakes) == seen && !workers->is_stopping)
        pthread_cond_wait(&workers->wake, &workers->lock);
    atomic_fetch_sub(&workers->n_idle, 1);
    pthread_mutex_unlock(&workers->lock);
}

int hand_init(struct hand *hand) {
    memset(hand, 0, sizeof *hand);
    atomic_init(&hand->deadline_us, INT64_MAX);
    hand->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return hand->wake_fd < 0 ? STATUS_NO_MEMORY : STATUS_OK;
}

void hand_fini(struct hand *hand) {
    if (hand->wake_fd >= 0)
        close(hand->wake_fd);
    hand->wake_fd = -1;
}

static void hand_free(struct hand *hand) {
    hand_fini(hand);
    free(hand);
}

// An abandoned hand's thread is alone in the world: its workers may be gone.
static void end_abandoned(struct hand *hand, void (*end)(void *state)) {
    if (hand->state_of_fetch)
        end(hand->state_of_fetch);
    hand_free(hand);
}

static void *run_hand(void *argument) {
    struct hand *hand = argument;
    struct workers *workers = hand->workers;
    void (*end)(void *state) = workers->config.end;
    is_hand = true;
    hand->state_of_fetch = workers->config.begin(workers->config.begin_context, hand);
    while (!workers->is_stopping) {
        uint64_t seen = atomic_load(&workers->n_wakes);
        hand_reset(hand);
        bool had_work = workers->config.work(workers->config.context, hand);
        if (phase(atomic_load(&hand->state)) == HAND_ABANDONED) {
            end_abandoned(hand, end);
            return NULL;
        }
        if (!had_work && !workers->is_stopping)
            sleep_until_woken(workers, seen);
    }
    if (hand->state_of_fetch)
        end(hand->state_of_fetch);
    pthread_mutex_lock(&workers->lock);
    atomic_fetch_sub(&workers->n_alive, 1);
    pthread_cond_signal(&workers->stopped);
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static int start_hand(struct workers *workers, int index) {
    struct hand *hand = malloc(sizeof *hand);
    if (!hand || hand_init(hand)) {
        free(hand);
        return STATUS_NO_MEMORY;
    }
    hand->workers = workers;
    hand->index = index;
    workers->hands[index] = hand;
    atomic_fetch_add(&workers->n_alive, 1);
    if (threads_start(&workers->threads[index], run_hand, hand)) {
        workers->hands[index] = NULL;
        atomic_fetch_sub(&workers->n_alive, 1);
        hand_free(hand);
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

int workers_open(const struct workers_config *config, struct workers **out_workers) {
    *out_workers = NULL;
    struct workers *workers = calloc(1, sizeof *workers);
    if (!workers)
        return STATUS_NO_MEMORY;
    workers->config = *config;
    pthread_mutex_init(&workers->lock, NULL);
    threads_cond_init(&workers->wake);
    threads_cond_init(&workers->stopped);
    workers->hands = calloc((size_t)config->count, sizeof(struct hand *));
    workers->threads = calloc((size_t)config->count, sizeof(pthread_t));
    int status = workers->hands && workers->threads ? STATUS_OK : STATUS_NO_MEMORY;
    // Held until all are started: a hand that runs ahead waits here before it can end.
    for (int i = 0; !status && i < config->count; i++) {
        pthread_mutex_lock(&workers->lock);
        status = start_hand(workers, i);
        pthread_mutex_unlock(&workers->lock);
    }
    if (status) {
        workers_stop(workers, INT64_MAX);
        workers_close(workers);
        return status;
    }
    *out_workers = workers;
    return STATUS_OK;
}

int workers_stop(struct workers *workers, int64_t due_at_us) {
    int status = STATUS_OK;
    pthread_mutex_lock(&workers->lock);
    workers->is_stopping = true;
    atomic_fetch_add(&workers->n_wakes, 1);
    pthread_cond_broadcast(&workers->wake);
    while (!status && workers->n_alive > 0) {
        if (due_at_us == INT64_MAX)
            pthread_cond_wait(&workers->stopped, &workers->lock);
        else if (!threads_wait_until(&workers->stopped, &workers->lock, due_at_us) &&
                 clock_mono_us(NULL) >= due_at_us)
            status = workers->n_alive > 0 ? STATUS_TIMEOUT : STATUS_OK;
    }
    pthread_mutex_unlock(&workers->lock);
    return status;
}

void workers_close(struct workers *workers) {
    // Joined, not only counted: a thread on its last steps is still there when the process ends.
    for (int i = 0; workers->hands && i < workers->config.count; i++) {
        if (!workers->hands[i])
            continue;
        pthread_join(workers->threads[i], NULL);
        hand_free(workers->hands[i]);
    }
    pthread_cond_destroy(&workers->wake);
    pthread_cond_destroy(&workers->stopped);
    pthread_mutex_destroy(&workers->lock);
    free(workers->hands);
    free(workers->threads);
    free(workers);
}

void workers_stay_awake(struct workers *workers) {
    atomic_fetch_add(&workers->n_wakes, 1);
}

void workers_wake(struct workers *workers, unsigned n) {
    atomic_fetch_add(&workers->n_wakes, 1);
    unsigned n_idle = atomic_load(&workers->n_idle);
    if (n_idle == 0)
        return;
    pthread_mutex_lock(&workers->lock);
    if (n >= n_idle)
        pthread_cond_broadcast(&workers->wake);
    else
        while (n-- > 0)
            pthread_cond_signal(&workers->wake);
    pthread_mutex_unlock(&workers->lock);
}

unsigned workers_idle(const struct workers *workers) {
    return atomic_load(&workers->n_idle);
}

unsigned workers_alive(const struct workers *workers) {
    return atomic_load(&workers->n_alive);
}

void workers_replace(struct workers *workers) {
    int status = STATUS_OK;
    pthread_mutex_lock(&workers->lock);
    for (int i = 0; i < workers->config.count && !status && !workers->is_stopping; i++)
        if (!workers->hands[i])
            status = start_hand(workers, i);
    pthread_mutex_unlock(&workers->lock);
}

static bool is_overdue(struct hand *hand, int64_t due_us, struct overdue *out_overdue) {
    uint64_t state = atomic_load(&hand->state);
    if (phase(state) != HAND_FETCHING || atomic_load(&hand->deadline_us) >= due_us)
        return false;
    *out_overdue = (struct overdue){hand->index, state, atomic_load(&hand->job_key)};
    return true;
}

bool workers_find_overdue(struct workers *workers, int64_t due_us, struct overdue *out_overdue) {
    bool is_found = false;
    pthread_mutex_lock(&workers->lock);
    for (int i = 0; i < workers->config.count && !is_found; i++)
        is_found = workers->hands[i] && is_overdue(workers->hands[i], due_us, out_overdue);
    pthread_mutex_unlock(&workers->lock);
    return is_found;
}

bool workers_abandon(struct workers *workers, const struct overdue *overdue, bool no_more) {
    pthread_mutex_lock(&workers->lock);
    struct hand *hand = workers->hands[overdue->index];
    uint64_t seen = overdue->state;
    // The number in the state has not moved: what else was seen belongs to this fetch.
    bool is_abandoned =
        hand && atomic_compare_exchange_strong(&hand->state, &seen,
                                               with_phase(overdue->state, HAND_ABANDONED));
    if (is_abandoned) {
        pthread_detach(workers->threads[overdue->index]);
        workers->hands[overdue->index] = NULL;
        atomic_fetch_sub(&workers->n_alive, 1);
        if (!no_more && !workers->is_stopping)
            start_hand(workers, overdue->index);  // without memory later: workers_replace
        pthread_cond_signal(&workers->stopped);
    }
    pthread_mutex_unlock(&workers->lock);
    return is_abandoned;
}
