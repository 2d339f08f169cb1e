// SPDX-License-Identifier: MIT
//
// Whose turn it is: order, waiting, removal from anywhere, and many random operations beside a
// naive model.

#include "rotation.h"

#include "check.h"
#include "status.h"

#include <stdlib.h>

static void test_order(void) {
    struct rotation rotation;
    struct turn turns[3];
    rotation_init(&rotation);
    CHECK("an empty rotation hands out nothing", !rotation_pop(&rotation));
    for (int i = 0; i < 3; i++) {
        turn_init(&turns[i]);
        rotation_push(&rotation, &turns[i]);
    }
    CHECK("three are ready", rotation.n_ready == 3);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 3; i++) {
            CHECK("turns come round in order", rotation_pop(&rotation) == &turns[i]);
            CHECK("a turn taken is away", turns[i].place == TURN_AWAY);
            rotation_push(&rotation, &turns[i]);
        }
    rotation_fini(&rotation);
}

static void test_waiting(void) {
    struct rotation rotation;
    struct turn late, early, ready;
    rotation_init(&rotation);
    turn_init(&late);
    turn_init(&early);
    turn_init(&ready);
    CHECK("nobody waits", rotation_next_due(&rotation) == INT64_MAX);
    rotation_wait(&rotation, &late, 200);
    rotation_wait(&rotation, &early, 100);
    rotation_push(&rotation, &ready);
    CHECK("the earliest moment is known", rotation_next_due(&rotation) == 100);
    CHECK("before it nobody wakes", rotation_wake_due(&rotation, 99) == 0);
    CHECK("at its moment one wakes", rotation_wake_due(&rotation, 100) == 1);
    CHECK("the other still waits", rotation_next_due(&rotation) == 200);
    CHECK("who was ready comes first", rotation_pop(&rotation) == &ready);
    CHECK("then who woke", rotation_pop(&rotation) == &early);
    CHECK("and nobody else", !rotation_pop(&rotation));
    rotation_wait(&rotation, &early, 150);
    CHECK("both wake when both are due", rotation_wake_due(&rotation, 1000) == 2);
    CHECK("the earlier moment first", rotation_pop(&rotation) == &early);
    CHECK("the later one second", rotation_pop(&rotation) == &late);
    rotation_fini(&rotation);
}

// Removes turn `which` of five that are all ready, or all waiting.
static void remove_one(int which, bool is_waiting) {
    struct rotation rotation;
    struct turn turns[5];
    rotation_init(&rotation);
    for (int i = 0; i < 5; i++) {
        turn_init(&turns[i]);
        if (is_waiting)
            rotation_wait(&rotation, &turns[i], i);
        else
            rotation_push(&rotation, &turns[i]);
    }
    rotation_remove(&rotation, &turns[which]);
    CHECK("who was removed is away", turns[which].place == TURN_AWAY);
    rotation_remove(&rotation, &turns[which]);
    CHECK("removing again changes nothing", rotation.n_ready + rotation.n_waiting == 4);
    rotation_wake_due(&rotation, 10);
    for (int i = 0; i < 5; i++)
        if (i != which)
            CHECK("the others keep their order", rotation_pop(&rotation) == &turns[i]);
    CHECK("and nobody is left", !rotation_pop(&rotation));
    rotation_fini(&rotation);
}

// --- beside a naive model ---

enum { N_TURNS = 200, N_STEPS = 100000 };

// Places as in the rotation; ranks: the order in which turns became ready.
struct model {
    enum turn_place places[N_TURNS];
    int64_t dues[N_TURNS];
    uint64_t ranks[N_TURNS];
};

static int64_t model_next_due(const struct model *model) {
    int64_t due = INT64_MAX;
    for (int i = 0; i < N_TURNS; i++)
        if (model->places[i] == TURN_WAITING && model->dues[i] < due)
            due = model->dues[i];
    return due;
}

static int model_first_ready(const struct model *model) {
    int first = -1;
    for (int i = 0; i < N_TURNS; i++)
        if (model->places[i] == TURN_READY && (first < 0 || model->ranks[i] < model->ranks[first]))
            first = i;
    return first;
}

// Follows the rotation in the order among equal moments, which is its own business.
static size_t model_wake(struct model *model, const struct turn *turns, int64_t now) {
    size_t n_woken = 0;
    for (int i = 0; i < N_TURNS; i++)
        if (model->places[i] == TURN_WAITING && model->dues[i] <= now) {
            model->places[i] = TURN_READY;
            model->ranks[i] = turns[i].ready_since;
            n_woken++;
        }
    return n_woken;
}

static bool agree(const struct rotation *rotation, const struct model *model,
                  const struct turn *turns) {
    size_t n_ready = 0, n_waiting = 0;
    for (int i = 0; i < N_TURNS; i++) {
        n_ready += model->places[i] == TURN_READY;
        n_waiting += model->places[i] == TURN_WAITING;
        if (turns[i].place != model->places[i])
            return false;
    }
    return rotation->n_ready == n_ready && rotation->n_waiting == n_waiting &&
           rotation_next_due(rotation) == model_next_due(model);
}

static bool step(struct rotation *rotation, struct model *model, struct turn *turns) {
    int i = rand() % N_TURNS;
    struct turn *popped;
    switch (rand() % 5) {
    case 0:
        if (model->places[i] != TURN_AWAY)
            return true;
        rotation_push(rotation, &turns[i]);
        model->places[i] = TURN_READY;
        model->ranks[i] = turns[i].ready_since;
        return true;
    case 1:
        if (model->places[i] != TURN_AWAY)
            return true;
        model->dues[i] = rand() % 1000;
        model->places[i] = TURN_WAITING;
        return rotation_wait(rotation, &turns[i], model->dues[i]) == STATUS_OK;
    case 2:
        i = model_first_ready(model);
        popped = rotation_pop(rotation);
        if (i >= 0)
            model->places[i] = TURN_AWAY;
        return popped == (i < 0 ? NULL : &turns[i]);
    case 3: {
        int64_t now = model_next_due(model);
        now = now == INT64_MAX ? 0 : now + rand() % 20;
        size_t n_woken = rotation_wake_due(rotation, now);
        return n_woken == model_wake(model, turns, now);
    }
    default:
        rotation_remove(rotation, &turns[i]);
        model->places[i] = TURN_AWAY;
        return true;
    }
}

static void test_against_model(unsigned seed) {
    struct rotation rotation;
    static struct turn turns[N_TURNS];
    static struct model model;
    memset(&model, 0, sizeof model);
    rotation_init(&rotation);
    for (int i = 0; i < N_TURNS; i++)
        turn_init(&turns[i]);
    srand(seed);
    bool holds = true;
    for (int i = 0; i < N_STEPS && holds; i++)
        holds = step(&rotation, &model, turns) && (i % 50 || agree(&rotation, &model, turns));
    CHECK("random operations do what the model does", holds);
    rotation_fini(&rotation);
}

int main(void) {
    test_order();
    test_waiting();
    for (int which = 0; which < 5; which++) {
        remove_one(which, false);
        remove_one(which, true);
    }
    for (unsigned seed = 1; seed <= 5; seed++)
        test_against_model(seed);
    return check_report();
}
