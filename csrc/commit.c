// SPDX-License-Identifier: MIT
//
// Leader and followers. queue->lock guards the list and the flags, never a transaction and never a
// callback: the leader takes the whole list out, works on it alone, and only then locks again.
// Whoever sets is_led is the leader, and only the leader touches the store.

#include "commit.h"

#include "clock.h"
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    PATIENCE_MS = 10000,     // for locks of other processes, from when an item came
    SLICE_MS = 50,           // of it at once: a stop whose time is up does not wait for the rest
    MAX_BATCH = 4096,        // items in one transaction
    IDLE_TICKS = 40,         // looks without traffic until the committer sleeps
    FIRST_PAUSE_US = 10000,  // after a failure; doubles
    LONGEST_PAUSE_US = 2000000,
};

struct list {
    struct commit_item *first;
    struct commit_item *last;
};

struct commit_queue {
    struct commit_config config;
    pthread_mutex_t lock;
    pthread_cond_t work;      // for the committer: urgent work, a nudge, or the end
    pthread_cond_t finished;  // for those that wait for an item
    struct list waiting;
    uint64_t tick;
    uint64_t n_nudges;
    int64_t pause_us;      // 0: the last transaction went well
    int64_t resume_at_us;  // while pausing
    bool is_led;
    bool is_urgent;  // for the committer: at once; while pausing, somebody wants an answer
    bool is_closing;
    _Atomic bool is_abandoned;  // closing, and the time for retries is over
    _Atomic bool is_asleep;
    _Atomic int64_t moved_at_us;  // when a leader, or the first that waits for one, did something
    pthread_t committer;
};

static void append(struct list *list, struct commit_item *item) {
    item->next = NULL;
    if (list->last)
        list->last->next = item;
    else
        list->first = item;
    list->last = item;
}

static void prepend_all(struct list *list, struct list *head) {
    if (!head->first)
        return;
    head->last->next = list->first;
    if (!list->first)
        list->last = head->last;
    list->first = head->first;
}

static struct commit_item *take_first(struct list *list) {
    struct commit_item *item = list->first;
    list->first = item->next;
    if (!list->first)
        list->last = NULL;
    item->next = NULL;
    return item;
}

// How long a locked store may be waited for: no longer than the first of those that wait has time.
static int64_t patience_ms(const struct commit_item *first, const struct commit_item *end) {
    while (first != end && !first->give_up_at_us)
        first = first->next;
    if (first == end)
        return PATIENCE_MS;
    int64_t left_us = first->give_up_at_us - clock_mono_us(NULL);
    return left_us > 0 ? (left_us + 999) / 1000 : 0;
}

static void note_move(struct commit_queue *queue) {
    atomic_store_explicit(&queue->moved_at_us, clock_mono_us(NULL), memory_order_relaxed);
}

static int begin(struct commit_queue *queue, int64_t left_ms) {
    struct store *store = queue->config.store;
    int status;
    do {
        note_move(queue);
        status = store->ops->begin(store, left_ms < SLICE_MS ? left_ms : SLICE_MS);
        left_ms -= SLICE_MS;
    } while (status == STATUS_LOCKED && left_ms > 0 && !queue->is_abandoned);
    return status;
}

// The items from first up to (not including) end, in one transaction.
static int try_once(struct commit_queue *queue, struct commit_item *first, struct commit_item *end,
                    struct committed *out_committed) {
    struct store *store = queue->config.store;
    int64_t began_us = clock_mono_us(NULL);
    unsigned n_targets = 0;
    int status = begin(queue, patience_ms(first, end));
    for (struct commit_item *item = first; !status && item != end; item = item->next) {
        item->status = STATUS_OK;
        note_move(queue);
        status = item->apply(item, store);
        n_targets += item->n_targets;
    }
    note_move(queue);
    if (!status)
        status = store->ops->commit(store);
    note_move(queue);
    if (status) {
        store->ops->rollback(store);
        queue->config.on_failure(queue->config.context, status, store->fault.text);
        return status;
    }
    *out_committed = (struct committed){
        .is_whole = true, .n_targets = n_targets, .span_us = clock_mono_us(NULL) - began_us};
    return STATUS_OK;
}

static bool lend_reserve(struct commit_queue *queue, const struct commit_item *first,
                         const struct commit_item *end) {
    while (first != end && first->may_use_reserve)
        first = first->next;
    return first == end && queue->config.lend_reserve &&
           queue->config.lend_reserve(queue->config.context);
}

// The same, with the reserve if all of them may use it and the store failed without.
static int try_items(struct commit_queue *queue, struct commit_item *first, struct commit_item *end,
                     struct committed *out_committed) {
    int status = try_once(queue, first, end, out_committed);
    if (status != STATUS_STORE || !lend_reserve(queue, first, end))
        return status;
    status = try_once(queue, first, end, out_committed);
    queue->config.take_reserve_back(queue->config.context);
    out_committed->is_whole = false;
    return status;
}

// Hands an item its end. After done an item that nobody waits for may be gone.
static void finish(struct commit_queue *queue, struct commit_item *item, int failure,
                   struct list *finished) {
    if (failure) {
        item->status = failure;
        fault_set(item->fault, failure, "%s", queue->config.store->fault.text);
    }
    bool has_waiter = item->has_waiter;
    if (item->done)
        item->done(item);
    if (has_waiter)
        append(finished, item);
}

// Whether an item is tried again after a failure. Of those that wait for a locked store, one may
// have come later than the one whose time is up.
static bool is_kept(const struct commit_queue *queue, const struct commit_item *item, int failure) {
    if (!failure || queue->is_abandoned)
        return false;
    return item->must_be_stored || (failure == STATUS_LOCKED && item->give_up_at_us &&
                                    clock_mono_us(NULL) < item->give_up_at_us);
}

enum trial {
    WHOLE_BATCH,
    ALONE,       // a batch of one
    ONE_OF_MANY  // after the whole batch failed
};

// Tries the items up to end in one transaction, and ends them or keeps those that are tried again.
// Returns the status; of a whole batch a failure that not all may share ends nothing yet.
static int run_items(struct commit_queue *queue, struct list *batch, struct commit_item *end,
                     enum trial trial, struct list *kept, struct list *finished) {
    struct committed committed = {0};
    int status = try_items(queue, batch->first, end, &committed);
    if (status && status != STATUS_LOCKED && trial == WHOLE_BATCH)
        return status;
    committed.is_whole &= trial != ONE_OF_MANY;
    if (status == STATUS_LOCKED)
        end = NULL;  // it fails them all alike
    queue->config.begin_settling(queue->config.context, status ? NULL : &committed);
    while (batch->first != end) {
        struct commit_item *item = take_first(batch);
        if (is_kept(queue, item, status))
            append(kept, item);
        else
            finish(queue, item, status, finished);
    }
    queue->config.end_settling(queue->config.context);
    return status;
}

// Commits a batch; after a failure tries its items one by one, so that one that cannot be stored
// holds up nobody but itself.
static void commit_batch(struct commit_queue *queue, struct list *batch, struct list *kept,
                         struct list *finished) {
    enum trial trial = batch->first == batch->last ? ALONE : WHOLE_BATCH;
    run_items(queue, batch, NULL, trial, kept, finished);
    while (batch->first)
        run_items(queue, batch, batch->first->next, ONE_OF_MANY, kept, finished);
}

static struct list take_batch(struct commit_queue *queue) {
    struct list batch = {NULL, NULL};
    for (int i = 0; i < MAX_BATCH && queue->waiting.first; i++)
        append(&batch, take_first(&queue->waiting));
    return batch;
}

static void announce_locked(struct commit_queue *queue, struct list *finished) {
    if (!finished->first)
        return;
    while (finished->first)
        take_first(finished)->is_finished = true;
    pthread_cond_broadcast(&queue->finished);
}

static void set_pause_locked(struct commit_queue *queue, bool has_kept) {
    if (!has_kept) {
        queue->pause_us = 0;
        return;
    }
    queue->pause_us = queue->pause_us ? 2 * queue->pause_us : FIRST_PAUSE_US;
    if (queue->pause_us > LONGEST_PAUSE_US)
        queue->pause_us = LONGEST_PAUSE_US;
    queue->resume_at_us = clock_mono_us(NULL) + queue->pause_us;
    pthread_cond_signal(&queue->work);
}

static void wake_committer_locked(struct commit_queue *queue, bool is_urgent) {
    queue->n_nudges++;
    queue->is_urgent |= is_urgent;
    if (is_urgent || atomic_load(&queue->is_asleep))
        pthread_cond_signal(&queue->work);
}

// Whether something waits for an answer that no thread leads for.
static bool has_unanswered(const struct list *list) {
    const struct commit_item *item = list->first;
    while (item && (item->has_waiter || !item->give_up_at_us))
        item = item->next;
    return item != NULL;
}

// Leads until nothing waits, or until own has its end: whoever waits for one item must not be kept
// by what others bring meanwhile.
static void lead_locked(struct commit_queue *queue, const struct commit_item *own) {
    queue->is_led = true;
    queue->is_urgent = false;
    bool is_failing = false;
    while (queue->waiting.first && !is_failing && !(own && own->is_finished)) {
        struct list batch = take_batch(queue), kept = {NULL, NULL}, finished = {NULL, NULL};
        pthread_mutex_unlock(&queue->lock);
        commit_batch(queue, &batch, &kept, &finished);
        pthread_mutex_lock(&queue->lock);
        announce_locked(queue, &finished);
        is_failing = kept.first != NULL;
        set_pause_locked(queue, is_failing);
        prepend_all(&queue->waiting, &kept);
    }
    queue->is_led = false;
    note_move(queue);
    // An answer does not wait for the end of a pause: it came while the last batch failed, or has
    // still time to wait for a lock, which the next try does.
    if (queue->waiting.first && (!is_failing || has_unanswered(&queue->waiting)))
        wake_committer_locked(queue, true);
    // Those that came while the last batch failed may lead their own try; the end may be near.
    pthread_cond_broadcast(&queue->finished);
    if (queue->is_closing)
        pthread_cond_signal(&queue->work);
}

static void enqueue_locked(struct commit_queue *queue, struct commit_item *item) {
    item->came_at_tick = queue->tick;
    item->is_finished = false;
    if (!queue->waiting.first && !queue->is_led)
        note_move(queue);
    append(&queue->waiting, item);
}

// After commit_stop has begun, nothing comes in.
static void refuse(struct commit_queue *queue, struct commit_item *item) {
    item->status = STATUS_CLOSED;
    fault_set(item->fault, STATUS_CLOSED, "%s", status_message(STATUS_CLOSED));
    queue->config.begin_settling(queue->config.context, NULL);
    if (item->done)
        item->done(item);
    queue->config.end_settling(queue->config.context);
}

int commit_run(struct commit_queue *queue, struct commit_item *item) {
    item->has_waiter = true;
    item->give_up_at_us = clock_mono_us(NULL) + PATIENCE_MS * 1000;
    pthread_mutex_lock(&queue->lock);
    bool is_refused = queue->is_closing;
    if (!is_refused)
        enqueue_locked(queue, item);
    while (!is_refused && !item->is_finished) {
        if (queue->is_led)
            pthread_cond_wait(&queue->finished, &queue->lock);
        else
            lead_locked(queue, item);
    }
    pthread_mutex_unlock(&queue->lock);
    if (is_refused)
        refuse(queue, item);
    return item->status;
}

void commit_leave(struct commit_queue *queue, struct commit_item *item, enum commit_by by) {
    bool is_urgent = by == COMMIT_BY_COMMITTER || by == COMMIT_TO_ANSWER;
    item->has_waiter = false;
    item->give_up_at_us = by == COMMIT_TO_ANSWER ? clock_mono_us(NULL) + PATIENCE_MS * 1000 : 0;
    pthread_mutex_lock(&queue->lock);
    bool is_refused = queue->is_closing;
    if (!is_refused)
        enqueue_locked(queue, item);
    if (!is_refused && !queue->is_led && (!queue->pause_us || by == COMMIT_TO_ANSWER)) {
        if (by == COMMIT_BY_CALLER)
            lead_locked(queue, NULL);
        else if (by != COMMIT_WITH_NEXT)
            wake_committer_locked(queue, is_urgent);
    }
    pthread_mutex_unlock(&queue->lock);
    if (is_refused)
        refuse(queue, item);
}

void commit_nudge(struct commit_queue *queue) {
    if (!atomic_load(&queue->is_asleep))
        return;
    pthread_mutex_lock(&queue->lock);
    wake_committer_locked(queue, false);
    pthread_mutex_unlock(&queue->lock);
}

void commit_hurry(struct commit_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    if (queue->waiting.first && !queue->is_led && !queue->pause_us && !queue->is_urgent)
        wake_committer_locked(queue, true);
    pthread_mutex_unlock(&queue->lock);
}

void commit_rouse(struct commit_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    if (queue->waiting.first && !queue->is_led)
        wake_committer_locked(queue, false);
    pthread_mutex_unlock(&queue->lock);
}

int64_t commit_still_us(struct commit_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    bool is_busy = queue->is_led || (queue->waiting.first && !queue->pause_us);
    int64_t since_us = atomic_load_explicit(&queue->moved_at_us, memory_order_relaxed);
    pthread_mutex_unlock(&queue->lock);
    return is_busy ? clock_mono_us(NULL) - since_us : 0;
}

bool commit_is_pausing(struct commit_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    bool is_pausing = queue->pause_us && queue->waiting.first;
    pthread_mutex_unlock(&queue->lock);
    return is_pausing;
}

// Whether what waits is the committer's business now.
static bool is_due_locked(struct commit_queue *queue) {
    if (queue->is_led || !queue->waiting.first)
        return false;
    if (queue->is_abandoned)
        return true;
    if (queue->is_urgent)
        return true;
    if (queue->pause_us)
        return clock_mono_us(NULL) >= queue->resume_at_us;
    return queue->is_closing || queue->waiting.first->came_at_tick + 1 < queue->tick;
}

// Asks the runner without the lock. is_asleep is set before the question: whoever makes work after
// the answer sees it and nudges, and the nudge is seen here by its count.
static bool has_traffic_locked(struct commit_queue *queue, bool will_sleep) {
    uint64_t n_nudges = queue->n_nudges;
    atomic_store(&queue->is_asleep, will_sleep);
    pthread_mutex_unlock(&queue->lock);
    bool has_traffic = queue->config.on_tick(queue->config.context);
    pthread_mutex_lock(&queue->lock);
    return has_traffic || queue->waiting.first || n_nudges != queue->n_nudges;
}

static void wait_locked(struct commit_queue *queue, int *n_idle_ticks) {
    bool will_sleep = *n_idle_ticks >= IDLE_TICKS;
    bool has_traffic = has_traffic_locked(queue, will_sleep);
    *n_idle_ticks = has_traffic ? 0 : *n_idle_ticks + 1;
    if (queue->is_closing || queue->is_urgent)
        ;
    else if (queue->pause_us && queue->waiting.first)
        threads_wait_until(&queue->work, &queue->lock, queue->resume_at_us);
    else if (!will_sleep || has_traffic)
        threads_wait_until(&queue->work, &queue->lock,
                           clock_mono_us(NULL) + queue->config.tick_us(queue->config.context));
    else
        pthread_cond_wait(&queue->work, &queue->lock);
    atomic_store(&queue->is_asleep, false);
    queue->tick++;
}

static void *run_committer(void *argument) {
    struct commit_queue *queue = argument;
    int n_idle_ticks = 0;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        if (is_due_locked(queue)) {
            lead_locked(queue, NULL);
            n_idle_ticks = 0;
        } else if (queue->is_closing && !queue->waiting.first && !queue->is_led) {
            break;
        } else if (queue->is_closing) {
            threads_wait_until(&queue->work, &queue->lock, clock_mono_us(NULL) + 1000);
            queue->tick++;
        } else {
            wait_locked(queue, &n_idle_ticks);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

int commit_open(const struct commit_config *config, struct commit_queue **out_queue) {
    *out_queue = NULL;
    struct commit_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return STATUS_NO_MEMORY;
    queue->config = *config;
    pthread_mutex_init(&queue->lock, NULL);
    threads_cond_init(&queue->work);
    threads_cond_init(&queue->finished);
    int status = threads_start(&queue->committer, run_committer, queue);
    if (status) {
        free(queue);
        return status;
    }
    *out_queue = queue;
    return STATUS_OK;
}

void commit_stop(struct commit_queue *queue, int64_t give_up_ms) {
    int64_t give_up_at_us = clock_mono_us(NULL) + give_up_ms * 1000;
    pthread_mutex_lock(&queue->lock);
    queue->is_closing = true;
    pthread_cond_signal(&queue->work);
    while ((queue->waiting.first || queue->is_led) && clock_mono_us(NULL) < give_up_at_us)
        threads_wait_until(&queue->finished, &queue->lock, clock_mono_us(NULL) + 1000);
    queue->is_abandoned = true;
    pthread_cond_signal(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->committer, NULL);
}

void commit_close(struct commit_queue *queue) {
    pthread_cond_destroy(&queue->work);
    pthread_cond_destroy(&queue->finished);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}
