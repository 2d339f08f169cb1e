// SPDX-License-Identifier: MIT
//
// A counter and a plan for each point, all of atomics: a point may be passed by any thread while a
// test changes its plan.

#include "fault_point.h"

#include <time.h>
#include <unistd.h>

struct point {
    _Atomic int64_t n_passed;
    _Atomic int64_t first;  // passage that is answered; 0: none is
    _Atomic int64_t last;
    _Atomic int answer;
    _Atomic int64_t delay_us;
};

_Atomic bool fault_point_is_on;

static struct point points[FAULT_N_POINTS];

void fault_point_begin(void) {
    atomic_store(&fault_point_is_on, true);
}

void fault_point_set(enum fault_at at, const struct fault_plan *plan) {
    struct point *point = &points[at];
    int64_t left = INT64_MAX - plan->nth;
    atomic_store(&point->first, 0);
    atomic_store(&point->n_passed, 0);
    atomic_store(&point->answer, plan->answer);
    atomic_store(&point->delay_us, plan->delay_us);
    atomic_store(&point->last, plan->nth + (plan->times - 1 < left ? plan->times - 1 : left));
    atomic_store(&point->first, plan->nth);  // last: from here on it is answered
}

void fault_point_clear(enum fault_at at) {
    atomic_store(&points[at].first, 0);
}

int64_t fault_point_passed(enum fault_at at) {
    return atomic_load(&points[at].n_passed);
}

void fault_point_die(void) {
    _exit(FAULT_EXIT_STATUS);
}

static void delay(int64_t span_us) {
    struct timespec nap = {span_us / 1000000, (long)(span_us % 1000000) * 1000};
    nanosleep(&nap, NULL);
}

enum fault_answer fault_point_count(enum fault_at at) {
    struct point *point = &points[at];
    int64_t passage = atomic_fetch_add(&point->n_passed, 1) + 1;
    int64_t first = atomic_load(&point->first);
    if (!first || passage < first || passage > atomic_load(&point->last))
        return FAULT_GO_ON;
    enum fault_answer answer = (enum fault_answer)atomic_load(&point->answer);
    if (answer == FAULT_DIE)
        fault_point_die();
    if (answer != FAULT_DELAY)
        return answer;
    delay(atomic_load(&point->delay_us));
    return FAULT_GO_ON;
}
