// SPDX-License-Identifier: MIT
//
// A hash table of hosts under one lock. A host has the slots under way, the oldest first, and a
// queue of those who were sent away, the first first. Waiting is cheap but not free, for each
// return is a call of a fetch function and a note in the store: so the moment of a return is
// estimated from how long the host's requests last, by the place in the queue.
//
// With a delay the queue is strict, or else the returns would not stay one delay apart. Without one
// whoever comes takes what is free: a slot is not kept idle until somebody wakes up, unless the
// first in the queue has waited for far longer than his share.

#include "hosts.h"

#include "status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_BUCKETS = 64,
    SWEPT_BUCKETS = 4,        // by each entry; more than it can add
    KEPT_US = 1000000,        // how long an idle host's mean is remembered
    ABSENT_US = 100000,       // who is later than that has lost his place, perhaps he was cancelled
    MIN_WAIT_US = 1000,       // what a runner can tell apart
    MAX_DELAY_US = 30000000,  // who waits longer comes back to ask again, and keeps his place
    // The same for those who wait for a slot, where the estimate may be far off: much earlier, but
    // by the step for each in the queue never more than 2000 of them in a second.
    MAX_WAIT_US = 1000000,
    MAX_WAIT_MEAN_US = 5000000,
    MAX_WAIT_STEP_US = 500,
    PATIENCE_US = 50000,
};

struct waiter {
    uint64_t who;  // a hash; two who share one share a place, which does no harm
    int64_t since_us;
    int64_t due_us;
};

struct host {
    struct host *next;  // in its bucket
    uint64_t hash;
    struct hosts_slot *oldest;
    struct hosts_slot *newest;
    unsigned n_slots;
    int64_t ready_at_us;  // the earliest beginning of the next request
    int64_t mean_us;      // how long one lasts, the later ones weigh more; 0: not known yet
    int64_t used_at_us;
    struct waiter *queue;
    size_t n_waiters;
    size_t queue_capacity;
    size_t name_len;
    char name[];
};

struct hosts {
    pthread_mutex_t lock;
    const struct clock *clock;
    struct host **buckets;  // NULL while there was none
    size_t n_buckets;       // a power of two
    size_t n_hosts;
    size_t sweep_at;
    uint64_t random;
    unsigned generation;  // moves with each fork
};

static struct hosts shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .random = 1};
static pthread_once_t shared_once = PTHREAD_ONCE_INIT;

static void before_fork(void) {
    pthread_mutex_lock(&shared.lock);
}

static void after_fork_in_parent(void) {
    pthread_mutex_unlock(&shared.lock);
}

// The parent's hosts are left where they are: slots in the child's memory still point to them.
static void after_fork_in_child(void) {
    shared.buckets = NULL;
    shared.n_buckets = shared.n_hosts = shared.sweep_at = 0;
    shared.generation++;
    pthread_mutex_unlock(&shared.lock);
}

static void open_shared(void) {
    shared.random ^= (uint64_t)clock_wall_ms(NULL);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static uint64_t hash_of(const char *bytes, size_t len) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return hash;
}

// From 0 up to, not including, span_us.
static int64_t jitter(struct hosts *hosts, int64_t span_us) {
    hosts->random = hosts->random * 6364136223846793005 + 1442695040888963407;
    return span_us > 0 ? (int64_t)((hosts->random >> 33) % (uint64_t)span_us) : 0;
}

static struct host **bucket_of(struct hosts *hosts, uint64_t hash) {
    return &hosts->buckets[hash & (hosts->n_buckets - 1)];
}

// When memory is short the table stays as it is.
static void resize(struct hosts *hosts, size_t n_buckets) {
    struct host **before = hosts->buckets;
    size_t n_before = hosts->n_buckets;
    struct host **buckets = calloc(n_buckets, sizeof *buckets);
    if (!buckets)
        return;
    hosts->buckets = buckets;
    hosts->n_buckets = n_buckets;
    for (size_t i = 0; i < n_before; i++) {
        for (struct host *host = before[i], *next; host; host = next) {
            struct host **bucket = bucket_of(hosts, host->hash);
            next = host->next;
            host->next = *bucket;
            *bucket = host;
        }
    }
    free(before);
}

static void fit(struct hosts *hosts) {
    if (hosts->n_hosts >= hosts->n_buckets)
        resize(hosts, hosts->n_buckets ? 2 * hosts->n_buckets : MIN_BUCKETS);
    else if (hosts->n_buckets > MIN_BUCKETS && hosts->n_hosts < hosts->n_buckets / 8)
        resize(hosts, hosts->n_buckets / 2);
}

static void unlink_slot(struct hosts_slot *slot) {
    struct host *host = slot->host;
    *(slot->older ? &slot->older->newer : &host->oldest) = slot->newer;
    *(slot->newer ? &slot->newer->older : &host->newest) = slot->older;
    host->n_slots--;
    slot->host = NULL;
}

static void link_slot(struct host *host, struct hosts_slot *slot) {
    slot->host = host;
    slot->newer = NULL;
    slot->older = host->newest;
    *(host->newest ? &host->newest->newer : &host->oldest) = slot;
    host->newest = slot;
    host->n_slots++;
}

// Slots that have lapsed, and the places of those who did not come back.
static void drop_stale(struct host *host, int64_t now_us) {
    for (struct hosts_slot *slot = host->oldest, *newer; slot; slot = newer) {
        newer = slot->newer;
        if (slot->lapses_us <= now_us)
            unlink_slot(slot);
    }
    size_t n_kept = 0;
    for (size_t i = 0; i < host->n_waiters; i++)
        if (now_us < host->queue[i].due_us + ABSENT_US)
            host->queue[n_kept++] = host->queue[i];
    host->n_waiters = n_kept;
}

static bool is_idle(const struct host *host, int64_t now_us) {
    return host->n_slots == 0 && host->n_waiters == 0 && host->ready_at_us <= now_us &&
           host->used_at_us + KEPT_US <= now_us;
}

static void free_host(struct host *host) {
    free(host->queue);
    free(host);
}

static void sweep_bucket(struct hosts *hosts, struct host **place, int64_t now_us) {
    while (*place) {
        struct host *host = *place;
        drop_stale(host, now_us);
        if (is_idle(host, now_us)) {
            *place = host->next;
            free_host(host);
            hosts->n_hosts--;
        } else {
            place = &host->next;
        }
    }
}

static void sweep(struct hosts *hosts, int64_t now_us) {
    for (int i = 0; i < SWEPT_BUCKETS && hosts->n_buckets; i++) {
        hosts->sweep_at = (hosts->sweep_at + 1) & (hosts->n_buckets - 1);
        sweep_bucket(hosts, &hosts->buckets[hosts->sweep_at], now_us);
    }
}

static struct host *find(struct hosts *hosts, const struct hosts_wish *wish, uint64_t hash) {
    struct host *host = hosts->n_buckets ? *bucket_of(hosts, hash) : NULL;
    while (host && (host->hash != hash || host->name_len != wish->name_len ||
                    memcmp(host->name, wish->name, wish->name_len) != 0))
        host = host->next;
    return host;
}

static struct host *find_or_add(struct hosts *hosts, const struct hosts_wish *wish) {
    uint64_t hash = hash_of(wish->name, wish->name_len);
    struct host *host = find(hosts, wish, hash);
    if (host)
        return host;
    fit(hosts);
    if (!hosts->n_buckets || !(host = calloc(1, sizeof *host + wish->name_len)))
        return NULL;
    host->hash = hash;
    host->name_len = wish->name_len;
    memcpy(host->name, wish->name, wish->name_len);
    host->next = *bucket_of(hosts, hash);
    *bucket_of(hosts, hash) = host;
    hosts->n_hosts++;
    return host;
}

// The place in the queue, or the one behind its end.
static size_t rank_of(const struct host *host, uint64_t who) {
    size_t rank = 0;
    while (rank < host->n_waiters && host->queue[rank].who != who)
        rank++;
    return rank;
}

static void leave_queue(struct host *host, size_t rank) {
    if (rank >= host->n_waiters)
        return;
    host->n_waiters--;
    memmove(&host->queue[rank], &host->queue[rank + 1],
            (host->n_waiters - rank) * sizeof *host->queue);
}

static bool has_room(struct host *host) {
    if (host->n_waiters < host->queue_capacity)
        return true;
    size_t capacity = host->queue_capacity ? 2 * host->queue_capacity : 16;
    struct waiter *grown = NULL;
    if (capacity <= HOSTS_MAX_QUEUE)
        grown = realloc(host->queue, capacity * sizeof *grown);
    if (!grown)
        return false;
    host->queue = grown;
    host->queue_capacity = capacity;
    return true;
}

static void stay_in_queue(struct host *host, size_t rank, uint64_t who, int64_t now_us,
                          int64_t due_us) {
    if (rank == host->n_waiters) {
        if (!has_room(host))
            return;
        host->queue[host->n_waiters++] = (struct waiter){.who = who, .since_us = now_us};
    }
    host->queue[rank].due_us = due_us;
}

// Until one has ended, a request lasts twice as long as the oldest does already.
static int64_t mean_of(const struct host *host, int64_t now_us) {
    int64_t guess_us = host->oldest ? 2 * (now_us - host->oldest->begun_us) : 0;
    if (host->mean_us)
        return host->mean_us;
    return guess_us > MIN_WAIT_US ? guess_us : MIN_WAIT_US;
}

// Whether the first in the queue should have had his turn, and is about to come for it.
static bool is_starving(const struct host *host, unsigned limit, int64_t now_us) {
    int64_t mean_us = mean_of(host, now_us);
    if (host->n_waiters == 0 || host->queue[0].due_us > now_us + mean_us / 2 + MIN_WAIT_US)
        return false;
    int64_t share_us = (int64_t)(host->n_waiters + 1) * mean_us / limit;
    int64_t patience_us = 2 * share_us > PATIENCE_US ? 2 * share_us : PATIENCE_US;
    return now_us - host->queue[0].since_us > patience_us;
}

static bool may_enter(const struct host *host, const struct hosts_wish *wish, size_t rank,
                      int64_t now_us) {
    if (host->n_slots >= wish->limit || now_us < host->ready_at_us)
        return false;
    if (wish->delay_us > 0)
        return rank == 0;
    return rank < wish->limit - host->n_slots || !is_starving(host, wish->limit, now_us);
}

// When the request in the slot is likely to have ended. One that lasts longer than the mean is
// likely to last still longer.
static int64_t end_of(const struct hosts_slot *slot, int64_t mean_us, int64_t now_us) {
    int64_t end_us = slot->begun_us + mean_us;
    return end_us > now_us ? end_us : now_us + mean_us / 16 + (now_us - end_us) / 4;
}

static int64_t lesser(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// How long until a slot is likely to be free for whoever is that many places behind those for whom
// there is one now.
static int64_t wait_behind(const struct host *host, unsigned limit, size_t n_places,
                           int64_t mean_us, int64_t now_us) {
    const struct hosts_slot *slot = host->oldest;
    if (!slot)
        return (int64_t)(n_places / limit + 1) * mean_us;
    for (size_t i = n_places % host->n_slots; i > 0; i--)
        slot = slot->newer;
    // Half of what is far off, so that a wrong mean leaves no gap in the row of those who return.
    return end_of(slot, mean_us, now_us) - now_us +
           (int64_t)(n_places / host->n_slots) * mean_us / 2;
}

static int64_t wait_for_slot(struct hosts *hosts, const struct host *host, unsigned limit,
                             size_t rank, int64_t now_us) {
    size_t n_free = host->n_slots < limit ? limit - host->n_slots : 0;
    if (rank < n_free)
        return 0;
    int64_t mean_us = mean_of(host, now_us);
    int64_t max_us =
        MAX_WAIT_US + lesser(mean_us, MAX_WAIT_MEAN_US) + (int64_t)rank * MAX_WAIT_STEP_US;
    int64_t wait_us =
        wait_behind(host, limit, rank - n_free, mean_us, now_us) + jitter(hosts, mean_us / 32);
    return wait_us < max_us ? wait_us : max_us - jitter(hosts, max_us / 4);
}

static int64_t wait_for_delay(struct hosts *hosts, const struct host *host, int64_t delay_us,
                              size_t rank, int64_t now_us) {
    // Also who has no delay of his own waits for the end of one that another began.
    int64_t wait_us = host->ready_at_us > now_us ? host->ready_at_us - now_us : 0;
    if (delay_us <= 0)
        return wait_us;
    if ((int64_t)rank < MAX_DELAY_US / delay_us + 1)
        wait_us += (int64_t)rank * delay_us;
    else
        wait_us = MAX_DELAY_US;
    return wait_us < MAX_DELAY_US ? wait_us : MAX_DELAY_US - jitter(hosts, MAX_DELAY_US / 2);
}

static int64_t estimate(struct hosts *hosts, const struct host *host, const struct hosts_wish *wish,
                        size_t rank, int64_t now_us) {
    int64_t slot_us = wait_for_slot(hosts, host, wish->limit, rank, now_us);
    int64_t delay_us = wait_for_delay(hosts, host, wish->delay_us, rank, now_us);
    int64_t wait_us = slot_us > delay_us ? slot_us : delay_us;
    return wait_us > MIN_WAIT_US ? wait_us : MIN_WAIT_US;
}

static int enter_locked(struct hosts *hosts, const struct hosts_wish *wish, struct hosts_slot *slot,
                        int64_t *out_wait_us) {
    int64_t now_us = clock_mono_us(hosts->clock);
    uint64_t who = hash_of(wish->who, wish->who_len);
    sweep(hosts, now_us);
    struct host *host = find_or_add(hosts, wish);
    if (!host)
        return STATUS_NO_MEMORY;
    drop_stale(host, now_us);
    host->used_at_us = now_us;
    size_t rank = rank_of(host, who);
    if (!may_enter(host, wish, rank, now_us)) {
        *out_wait_us = estimate(hosts, host, wish, rank, now_us);
        stay_in_queue(host, rank, who, now_us, now_us + *out_wait_us);
        return STATUS_BUSY;
    }
    leave_queue(host, rank);
    host->ready_at_us = now_us + wish->delay_us;
    slot->hosts = hosts;
    slot->generation = hosts->generation;
    slot->begun_us = now_us;
    slot->lapses_us = now_us + wish->lasts_us;
    link_slot(host, slot);
    return STATUS_OK;
}

struct hosts *hosts_shared(void) {
    pthread_once(&shared_once, open_shared);
    return &shared;
}

struct hosts *hosts_new(const struct clock *clock) {
    struct hosts *hosts = calloc(1, sizeof *hosts);
    if (!hosts)
        return NULL;
    pthread_mutex_init(&hosts->lock, NULL);
    hosts->clock = clock;
    return hosts;
}

void hosts_free(struct hosts *hosts) {
    if (!hosts)
        return;
    for (size_t i = 0; i < hosts->n_buckets; i++) {
        for (struct host *host = hosts->buckets[i], *next; host; host = next) {
            next = host->next;
            free_host(host);
        }
    }
    free(hosts->buckets);
    pthread_mutex_destroy(&hosts->lock);
    free(hosts);
}

int hosts_enter(struct hosts *hosts, const struct hosts_wish *wish, struct hosts_slot *out_slot,
                int64_t *out_wait_us) {
    memset(out_slot, 0, sizeof *out_slot);
    *out_wait_us = 0;
    pthread_mutex_lock(&hosts->lock);
    int status = enter_locked(hosts, wish, out_slot, out_wait_us);
    pthread_mutex_unlock(&hosts->lock);
    return status;
}

void hosts_leave(struct hosts_slot *slot) {
    struct hosts *hosts = slot->hosts;
    if (!hosts)
        return;
    pthread_mutex_lock(&hosts->lock);
    struct host *host = slot->generation == hosts->generation ? slot->host : NULL;
    if (host) {
        int64_t now_us = clock_mono_us(hosts->clock);
        int64_t span_us = now_us - slot->begun_us;
        host->mean_us += host->mean_us ? (span_us - host->mean_us) / 8 : span_us;
        host->used_at_us = now_us;
        unlink_slot(slot);
    }
    pthread_mutex_unlock(&hosts->lock);
    slot->hosts = NULL;
}

size_t hosts_count(struct hosts *hosts) {
    pthread_mutex_lock(&hosts->lock);
    size_t count = hosts->n_hosts;
    pthread_mutex_unlock(&hosts->lock);
    return count;
}
