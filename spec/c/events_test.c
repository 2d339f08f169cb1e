// SPDX-License-Identifier: MIT
//
// The list of events: its order, its bound, its descriptor.

#include "events.h"

#include "check.h"
#include "status.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

enum { ALL = (1 << EVENT_N_KINDS) - 1 };

static bool is_readable(struct events *events) {
    struct pollfd one = {.fd = events_fd(events), .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static void test_order(void) {
    struct events *events;
    CHECK("a list opens", events_open(ALL, &events) == STATUS_OK);
    CHECK("empty", !events_take(events) && !is_readable(events));
    char text[] = "gone", caller[] = "me";
    struct event event = {.kind = EVENT_TARGET, .number = 7, .text = text, .caller = caller};
    events_add(events, &event);
    event.number = 8;
    event.text = NULL;
    events_add(events, &event);
    text[0] = caller[0] = '?';
    CHECK("its descriptor says so", is_readable(events));
    struct event *first = events_take(events);
    CHECK("the oldest comes first", first && first->number == 7);
    CHECK_TEXT("gone", first->text);
    CHECK_TEXT("me", first->caller);
    CHECK("what was absent is", !first->detail && !first->class_name);
    CHECK("it is readable until the last was taken", is_readable(events));
    struct event *second = events_take(events);
    CHECK("then the next", second && second->number == 8 && !second->text);
    CHECK("then none", !events_take(events) && !is_readable(events));
    events_add(events, &event);
    CHECK("it is readable again", is_readable(events));
    free(first);
    free(second);
    events_close(events);  // frees the one that is left
}

static void test_wanted(void) {
    struct events *events;
    events_open(1 << EVENT_JOB, &events);
    struct event event = {.kind = EVENT_DEPTH};
    events_add(events, &event);
    CHECK("what nobody reads is not kept", !events_take(events));
    CHECK("nor counted as dropped", events_dropped(events) == 0);
    CHECK("it knows what is read",
          events_wants(events, EVENT_JOB) && !events_wants(events, EVENT_DEPTH));
    events_close(events);
}

static void test_bound(void) {
    struct events *events;
    events_open(ALL, &events);
    struct event event = {.kind = EVENT_DEPTH};
    for (int i = 0; i < EVENTS_MAX_WAITING + 10; i++) {
        event.number = i;
        events_add(events, &event);
    }
    CHECK("what does not fit is counted", events_dropped(events) == 10);
    int n = 0;
    bool is_ordered = true;
    for (struct event *taken; (taken = events_take(events)); n++) {
        is_ordered = is_ordered && taken->number == n;
        free(taken);
    }
    CHECK("the oldest are kept, in order", is_ordered && n == EVENTS_MAX_WAITING);
    events_add(events, &event);
    struct event *taken = events_take(events);
    CHECK("there is room again", taken != NULL);
    free(taken);
    events_close(events);
}

static void test_changes(void) {
    struct events *events;
    events_open(1 << EVENT_DEPTH, &events);
    struct event change = {.kind = EVENT_CHANGE}, depth = {.kind = EVENT_DEPTH};
    events_add(events, &change);
    CHECK("changes are kept once somebody wants them", !events_take(events));
    events_want(events, EVENT_CHANGE);
    for (int i = 0; i < 1000; i++)
        events_add(events, &change);
    events_add(events, &depth);
    events_add(events, &change);
    struct event *first = events_take(events);
    CHECK("many are one", first && first->kind == EVENT_CHANGE);
    events_add(events, &change);
    struct event *second = events_take(events), *third = events_take(events);
    CHECK("what came between stays", second && second->kind == EVENT_DEPTH);
    CHECK("one behind the last look is told again", third && third->kind == EVENT_CHANGE);
    CHECK("and then no more", !events_take(events) && events_dropped(events) == 0);
    free(first);
    free(second);
    free(third);
    events_close(events);
}

static void put_answer(struct events *events, int64_t ticket) {
    struct event *answer = calloc(1, sizeof *answer);
    answer->kind = EVENT_ANSWER;
    answer->number = ticket;
    events_put(events, answer);
}

// A list that is full loses nothing that somebody waits for.
static void test_full_list(void) {
    enum { ANSWERS = 100 };
    struct events *events;
    events_open(1 << EVENT_DEPTH | 1 << EVENT_CHANGE, &events);
    struct event event = {.kind = EVENT_DEPTH}, change = {.kind = EVENT_CHANGE};
    for (int i = 0; i < EVENTS_MAX_WAITING; i++)
        events_add(events, &event);
    for (int i = 0; i < ANSWERS; i++) {
        put_answer(events, i);
        events_add(events, &event);
        events_add(events, &change);
    }
    CHECK("what has no room is counted", events_dropped(events) == ANSWERS);
    int n_answers = 0, n_changes = 0, n_others = 0;
    for (struct event *taken; (taken = events_take(events));) {
        n_changes += taken->kind == EVENT_CHANGE;
        n_others += taken->kind == EVENT_DEPTH;
        n_answers += taken->kind == EVENT_ANSWER && taken->number == n_answers;
        free(taken);
    }
    CHECK("each answer is there, in order", n_answers == ANSWERS);
    CHECK("and the change", n_changes == 1);
    CHECK("beside what was there before", n_others == EVENTS_MAX_WAITING);
    put_answer(events, 1);  // left in it: freed with it
    events_close(events);
}

enum { WRITERS = 4, EACH = 3000 };

static void *write_events(void *argument) {
    struct event event = {.kind = EVENT_DEPTH, .text = "text"};
    for (int i = 0; i < EACH; i++)
        events_add(argument, &event);
    return NULL;
}

static void test_threads(void) {
    struct events *events;
    pthread_t threads[WRITERS];
    events_open(ALL, &events);
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, write_events, events);
    struct pollfd one = {.fd = events_fd(events), .events = POLLIN};
    int n = 0;
    // As an event loop does it: wait, take all, wait again.
    while (n < WRITERS * EACH && poll(&one, 1, 2000) == 1)
        for (struct event *event; (event = events_take(events)); n++)
            free(event);
    CHECK("no wake-up is missed", n == WRITERS * EACH);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    events_close(events);
}

int main(void) {
    test_order();
    test_wanted();
    test_bound();
    test_changes();
    test_full_list();
    test_threads();
    return check_report();
}
