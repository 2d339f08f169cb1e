// SPDX-License-Identifier: MIT
//
// Hands: that they sleep and wake without missing work, stop in time, and are replaced when stuck.

#include "workers.h"

#include "check.h"
#include "clock.h"
#include "status.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

struct rig {
    struct workers *workers;
    _Atomic int n_available;
    _Atomic int n_worked;
    _Atomic int n_begun;
    _Atomic int n_ended;
    _Atomic bool is_stuck;  // the work does not come back while this is set
    _Atomic int n_late;     // came back after they were abandoned
};

static void *begin(void *context, struct hand *hand) {
    struct rig *rig = context;
    (void)hand;
    rig->n_begun++;
    return rig;
}

static void end(void *state) {
    ((struct rig *)state)->n_ended++;
}

static bool work(void *context, struct hand *hand) {
    struct rig *rig = context;
    int n = atomic_load(&rig->n_available);
    do
        if (n == 0)
            return false;
    while (!atomic_compare_exchange_weak(&rig->n_available, &n, n - 1));
    hand_begin(hand, 42, 1000);
    while (rig->is_stuck)
        usleep(200);
    if (hand_end(hand))
        rig->n_worked++;
    else
        rig->n_late++;
    return true;
}

static void open_rig(struct rig *rig, int count) {
    *rig = (struct rig){0};
    struct workers_config config = {.count = count,
                                    .context = rig,
                                    .begin_context = rig,
                                    .begin = begin,
                                    .end = end,
                                    .work = work};
    CHECK("hands start", workers_open(&config, &rig->workers) == STATUS_OK);
}

static void close_rig(struct rig *rig) {
    CHECK("hands stop", workers_stop(rig->workers, INT64_MAX) == STATUS_OK);
    CHECK("all of them", workers_alive(rig->workers) == 0);
    workers_close(rig->workers);
}

static bool eventually(_Atomic int *counter, int wanted) {
    for (int i = 0; i < 200000 && *counter < wanted; i++)
        usleep(100);
    return *counter >= wanted;
}

static void test_wakes(void) {
    struct rig rig;
    open_rig(&rig, 3);
    bool is_missed = false;
    // One at a time, right when the hands are about to sleep.
    for (int i = 1; i <= 5000 && !is_missed; i++) {
        rig.n_available++;
        workers_wake(rig.workers, 1);
        for (int64_t until = clock_mono_us(NULL) + 2000000;
             rig.n_worked < i && clock_mono_us(NULL) < until;)
            ;
        is_missed = rig.n_worked < i;
    }
    CHECK("no work is missed on the way to sleep", !is_missed);
    close_rig(&rig);
    CHECK("each hand had its state made and ended", rig.n_begun == 3 && rig.n_ended == 3);
}

static void test_stop(void) {
    struct rig rig;
    open_rig(&rig, 2);
    rig.is_stuck = true;
    rig.n_available = 1;
    workers_wake(rig.workers, 1);
    for (int i = 0; i < 200000 && rig.n_available; i++)
        usleep(100);
    int64_t due_us = clock_mono_us(NULL) + 30000;
    CHECK("a stop ends in time", workers_stop(rig.workers, due_us) == STATUS_TIMEOUT);
    rig.is_stuck = false;
    close_rig(&rig);
    CHECK("what was begun is finished", rig.n_worked == 1);
}

static void test_abandon(void) {
    struct rig rig;
    struct overdue overdue, stale;
    open_rig(&rig, 1);
    rig.is_stuck = true;
    rig.n_available = 1;
    workers_wake(rig.workers, 1);
    bool is_found = false;
    for (int i = 0; i < 200000 && !is_found; i++) {
        usleep(100);
        is_found = workers_find_overdue(rig.workers, 2000, &overdue);
    }
    CHECK("a fetch that is due is found", is_found && overdue.job_key == 42);
    CHECK("one that is not due is not", !workers_find_overdue(rig.workers, 1000, &stale));
    stale = overdue;
    stale.state += 1 << HAND_STATE_BITS;
    CHECK("another fetch of the hand is not meant", !workers_abandon(rig.workers, &stale, false));
    CHECK("the one that was seen is abandoned", workers_abandon(rig.workers, &overdue, false));
    CHECK("once", !workers_abandon(rig.workers, &overdue, false));
    CHECK("another hand takes its place", workers_alive(rig.workers) == 1);
    rig.n_available = 1;
    workers_wake(rig.workers, 1);
    CHECK("and works", eventually(&rig.n_begun, 2));
    rig.is_stuck = false;
    CHECK("the late one knows that it is late", eventually(&rig.n_late, 1));
    CHECK("and ends its own state", eventually(&rig.n_ended, 1));
    CHECK("the other one goes on", eventually(&rig.n_worked, 1));
    close_rig(&rig);
    CHECK("and ends its state, too", rig.n_ended == 2);
}

static void test_no_more(void) {
    struct rig rig;
    struct overdue overdue;
    open_rig(&rig, 1);
    rig.is_stuck = true;
    rig.n_available = 1;
    workers_wake(rig.workers, 1);
    for (int i = 0; i < 200000 && !workers_find_overdue(rig.workers, 2000, &overdue); i++)
        usleep(100);
    CHECK("a hand is abandoned", workers_abandon(rig.workers, &overdue, true));
    CHECK("and not replaced", workers_alive(rig.workers) == 0);
    close_rig(&rig);  // while its code is still stuck
    rig.is_stuck = false;
    CHECK("its thread ends without its workers", eventually(&rig.n_ended, 1));
}

static bool is_readable(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static void test_cancel(void) {
    struct hand hand;
    CHECK("a hand without a thread is made", hand_init(&hand) == STATUS_OK);
    CHECK("it is not cancelled", !hand.is_cancelled && !is_readable(hand.wake_fd));
    hand_cancel(&hand);
    hand_cancel(&hand);
    CHECK("a cancel can be polled for", hand.is_cancelled && is_readable(hand.wake_fd));
    hand_reset(&hand);
    CHECK("and taken back", !hand.is_cancelled && !is_readable(hand.wake_fd));
    hand_fini(&hand);
    hand_fini(&hand);
}

int main(void) {
    test_wakes();
    test_stop();
    test_abandon();
    test_no_more();
    test_cancel();
    return check_report();
}
