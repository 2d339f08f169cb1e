// SPDX-License-Identifier: MIT
//
// Whose turn it is: a list of those that are ready, first in first out, and a heap of those that
// wait for a moment. Picking is O(1), waiting O(log n). Pure: holds no lock, reads no clock, and
// owns nothing: a turn is embedded in whatever takes turns.

#ifndef BATCH_ROTATION_H
#define BATCH_ROTATION_H

#include <stddef.h>
#include <stdint.h>

enum turn_place { TURN_AWAY, TURN_READY, TURN_WAITING };

struct turn {
    struct turn *next;  // in the ready list
    struct turn *prev;
    int64_t due_at_us;     // while waiting
    size_t heap_index;     // while waiting
    uint64_t ready_since;  // while ready: the rotation's count when it came in
    enum turn_place place;
};

struct rotation {
    struct turn *first;  // ready
    struct turn *last;
    size_t n_ready;
    uint64_t n_entered;  // turns that ever became ready
    struct turn **heap;  // waiting, the earliest at 0
    size_t n_waiting;
    size_t heap_capacity;
};

void rotation_init(struct rotation *rotation);
void rotation_fini(struct rotation *rotation);

void turn_init(struct turn *turn);

// Puts a turn that is away at the end of the ready list.
void rotation_push(struct rotation *rotation, struct turn *turn);

// Takes the turn that has been ready longest; NULL when none is.
struct turn *rotation_pop(struct rotation *rotation);

// Lets a turn that is away wait until due_at_us. Returns 0, or STATUS_NO_MEMORY and leaves it away.
int rotation_wait(struct rotation *rotation, struct turn *turn, int64_t due_at_us);

// Makes those ready whose moment has come, the earliest first. Returns how many.
size_t rotation_wake_due(struct rotation *rotation, int64_t now_us);

// The earliest moment that anybody waits for; INT64_MAX when nobody waits.
int64_t rotation_next_due(const struct rotation *rotation);

// Takes a turn out, wherever it is. Harmless when it is away.
void rotation_remove(struct rotation *rotation, struct turn *turn);

#endif
