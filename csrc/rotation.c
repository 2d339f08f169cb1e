// SPDX-License-Identifier: MIT
//
// A doubly linked list for the ready, a binary heap for the waiting; each turn knows its place, so
// that a cancelled job leaves without a search.

#include "rotation.h"

#include "status.h"

#include <stdlib.h>
#include <string.h>

static void heap_set(struct rotation *rotation, size_t index, struct turn *turn) {
    rotation->heap[index] = turn;
    turn->heap_index = index;
}

static void sift_up(struct rotation *rotation, size_t index) {
    struct turn *turn = rotation->heap[index];
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (rotation->heap[parent]->due_at_us <= turn->due_at_us)
            break;
        heap_set(rotation, index, rotation->heap[parent]);
        index = parent;
    }
    heap_set(rotation, index, turn);
}

static void sift_down(struct rotation *rotation, size_t index) {
    struct turn *turn = rotation->heap[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= rotation->n_waiting)
            break;
        if (child + 1 < rotation->n_waiting &&
            rotation->heap[child + 1]->due_at_us < rotation->heap[child]->due_at_us)
            child++;
        if (turn->due_at_us <= rotation->heap[child]->due_at_us)
            break;
        heap_set(rotation, index, rotation->heap[child]);
        index = child;
    }
    heap_set(rotation, index, turn);
}

static void heap_remove(struct rotation *rotation, struct turn *turn) {
    size_t index = turn->heap_index;
    struct turn *moved = rotation->heap[--rotation->n_waiting];
    turn->place = TURN_AWAY;
    if (moved == turn)
        return;
    heap_set(rotation, index, moved);
    sift_up(rotation, index);
    sift_down(rotation, moved->heap_index);
}

static void list_remove(struct rotation *rotation, struct turn *turn) {
    if (turn->prev)
        turn->prev->next = turn->next;
    else
        rotation->first = turn->next;
    if (turn->next)
        turn->next->prev = turn->prev;
    else
        rotation->last = turn->prev;
    turn->next = turn->prev = NULL;
    turn->place = TURN_AWAY;
    rotation->n_ready--;
}

void rotation_init(struct rotation *rotation) {
    memset(rotation, 0, sizeof *rotation);
}

void rotation_fini(struct rotation *rotation) {
    free(rotation->heap);
    rotation_init(rotation);
}

void turn_init(struct turn *turn) {
    memset(turn, 0, sizeof *turn);
}

void rotation_push(struct rotation *rotation, struct turn *turn) {
    turn->prev = rotation->last;
    turn->next = NULL;
    if (rotation->last)
        rotation->last->next = turn;
    else
        rotation->first = turn;
    rotation->last = turn;
    turn->ready_since = ++rotation->n_entered;
    turn->place = TURN_READY;
    rotation->n_ready++;
}

struct turn *rotation_pop(struct rotation *rotation) {
    struct turn *turn = rotation->first;
    if (turn)
        list_remove(rotation, turn);
    return turn;
}

int rotation_wait(struct rotation *rotation, struct turn *turn, int64_t due_at_us) {
    if (rotation->n_waiting == rotation->heap_capacity) {
        size_t capacity = rotation->heap_capacity ? 2 * rotation->heap_capacity : 16;
        struct turn **heap = realloc(rotation->heap, capacity * sizeof(struct turn *));
        if (!heap)
            return STATUS_NO_MEMORY;
        rotation->heap = heap;
        rotation->heap_capacity = capacity;
    }
    turn->due_at_us = due_at_us;
    turn->place = TURN_WAITING;
    heap_set(rotation, rotation->n_waiting++, turn);
    sift_up(rotation, turn->heap_index);
    return STATUS_OK;
}

size_t rotation_wake_due(struct rotation *rotation, int64_t now_us) {
    size_t n_woken = 0;
    for (; rotation_next_due(rotation) <= now_us; n_woken++) {
        struct turn *turn = rotation->heap[0];
        heap_remove(rotation, turn);
        rotation_push(rotation, turn);
    }
    return n_woken;
}

int64_t rotation_next_due(const struct rotation *rotation) {
    return rotation->n_waiting ? rotation->heap[0]->due_at_us : INT64_MAX;
}

void rotation_remove(struct rotation *rotation, struct turn *turn) {
    if (turn->place == TURN_READY)
        list_remove(rotation, turn);
    else if (turn->place == TURN_WAITING)
        heap_remove(rotation, turn);
}
