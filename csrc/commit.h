// SPDX-License-Identifier: MIT
//
// The commit queue: whatever must be written joins it, and one thread at a time, the leader,
// commits all that waits in one transaction, again and again until nothing waits. Who leads is a
// question of who has nothing better to do: a thread that must wait for its own item anyway, a
// worker when no other target is ready, else the queue's own committer thread.
//
// The committer wakes at once for urgent items. Otherwise, while there is traffic, it looks every
// tick_us and leads only what it saw waiting at its last look: so a worker that is done with
// a handful of quick targets still commits them itself, all in one, and nothing waits longer than
// three looks. The same looks serve the runner (on_tick) to see targets that nobody has taken.

#ifndef BATCH_COMMIT_H
#define BATCH_COMMIT_H

#include "store.h"

#include <stdbool.h>
#include <stdint.h>

struct commit_item {
    // Writes, inside a transaction; may be called again when the transaction is tried again.
    // Returns 0, also for a refusal that wrote nothing (then put into status), or the store's
    // failure.
    int (*apply)(struct commit_item *item, struct store *store);
    // Called by the leader between begin_settling and end_settling once the item is stored or
    // refused. May free the item unless somebody waits for it. NULL: nothing to do.
    void (*done)(struct commit_item *item);
    struct fault *fault;   // gets the sentence of a failure; NULL: nobody wants it
    int status;            // the answer: what apply put there, or the failure
    unsigned n_targets;    // outcomes in it, for the figures
    bool must_be_stored;   // is tried again after any failure, never refused
    bool may_use_reserve;  // small, and not to be refused for want of space
    // Of the queue:
    struct commit_item *next;
    uint64_t came_at_tick;
    int64_t give_up_at_us;  // when a locked store is the answer; 0: nobody waits for one
    bool has_waiter;        // a thread does
    bool is_finished;
};

// A transaction that went well.
struct committed {
    bool is_whole;  // all that waited is in it, and it took no reserve: the store is well
    unsigned n_targets;
    int64_t span_us;
};

struct commit_config {
    struct store *store;  // the writing connection; the queue's until commit_stop
    void *context;
    // Called without a lock by the committer at each look. Returns whether it wants to be asked
    // again.
    bool (*on_tick)(void *context);
    // Called with the queue's lock: how long until the next look.
    int64_t (*tick_us)(void *context);
    // Called by the leader around the done calls of a transaction's items, so that their owner's
    // lock is taken once for all of them. committed is NULL after a failure.
    void (*begin_settling)(void *context, const struct committed *committed);
    void (*end_settling)(void *context);
    // Called without a lock by the leader after each transaction that failed.
    void (*on_failure)(void *context, int status, const char *text);
    // Called by the leader around one more try of items that may use the reserve. lend returns
    // whether there is one. NULL: there is none.
    bool (*lend_reserve)(void *context);
    void (*take_reserve_back)(void *context);
};

struct commit_queue;

// Starts the committer. Returns 0 or STATUS_NO_MEMORY (no thread could be had).
int commit_open(const struct commit_config *config, struct commit_queue **out_queue);

// Commits what waits, waiting at most give_up_ms for a store that fails, and stops the committer.
// Items that could not be stored get their done call with the failure as status; what comes later
// gets it with STATUS_CLOSED.
void commit_stop(struct commit_queue *queue, int64_t give_up_ms);

// After commit_stop, when no thread is in a call any more.
void commit_close(struct commit_queue *queue);

// Commits an item and waits for it; leads if nobody does, but no longer than until that item has
// its end. Returns the item's status.
int commit_run(struct commit_queue *queue, struct commit_item *item);

enum commit_by {
    COMMIT_BY_ANYBODY,    // the caller has better things to do: whoever leads next
    COMMIT_BY_COMMITTER,  // the same, but at once
    COMMIT_BY_CALLER,     // the caller leads if nobody does, until nothing waits
    COMMIT_WITH_NEXT,     // with whatever is committed next; commit_rouse sees to it at the latest
    COMMIT_TO_ANSWER,     // by the committer at once; as patient as commit_run, done has the answer
};

// Puts an item into the queue without waiting for it.
void commit_leave(struct commit_queue *queue, struct commit_item *item, enum commit_by by);

// Makes sure that the committer looks soon. commit_rouse does so if something waits; commit_hurry
// has it lead at once then.
void commit_nudge(struct commit_queue *queue);
void commit_hurry(struct commit_queue *queue);
void commit_rouse(struct commit_queue *queue);

// For how long nothing has moved, though somebody leads, or something waits for a leader that
// should have come. 0: all is well.
int64_t commit_still_us(struct commit_queue *queue);

// Whether something waits that failed and is tried again.
bool commit_is_pausing(struct commit_queue *queue);

#endif
