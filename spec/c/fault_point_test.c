// SPDX-License-Identifier: MIT
//
// Counting, and the passages that a plan answers.

#include "fault_point.h"

#include "check.h"

#include "clock.h"

static void test_off(void) {
    static const struct fault_plan plan = {.answer = FAULT_FULL, .nth = 1, .times = 1};
    fault_point_set(FAULT_AT_WRITE, &plan);
    CHECK("a point that is off goes on", fault_point_pass(FAULT_AT_WRITE) == FAULT_GO_ON);
    CHECK("and does not count", fault_point_passed(FAULT_AT_WRITE) == 0);
    fault_point_begin();
    CHECK("once it is on, the plan is met", fault_point_pass(FAULT_AT_WRITE) == FAULT_FULL);
}

static void test_passages(void) {
    static const struct fault_plan plan = {.answer = FAULT_IOERR, .nth = 2, .times = 2};
    static const struct fault_plan lasting = {.answer = FAULT_BUSY, .nth = 1, .times = INT64_MAX};
    fault_point_set(FAULT_AT_SYNC, &plan);
    CHECK("the first passage is before it", !fault_point_pass(FAULT_AT_SYNC));
    CHECK("the second one meets it", fault_point_pass(FAULT_AT_SYNC) == FAULT_IOERR);
    CHECK("another point does not", !fault_point_pass(FAULT_AT_READ));
    CHECK("the third one does", fault_point_pass(FAULT_AT_SYNC) == FAULT_IOERR);
    CHECK("the fourth one is behind it", !fault_point_pass(FAULT_AT_SYNC));
    CHECK("all are counted", fault_point_passed(FAULT_AT_SYNC) == 4);
    fault_point_set(FAULT_AT_SYNC, &lasting);
    CHECK("a new plan counts anew", fault_point_passed(FAULT_AT_SYNC) == 0);
    for (int i = 0; i < 100; i++)
        CHECK("it may last", fault_point_pass(FAULT_AT_SYNC) == FAULT_BUSY);
    fault_point_clear(FAULT_AT_SYNC);
    CHECK("until it is dropped", !fault_point_pass(FAULT_AT_SYNC));
    CHECK("which does not count anew", fault_point_passed(FAULT_AT_SYNC) == 101);
}

static void test_delay(void) {
    static const struct fault_plan plan = {
        .answer = FAULT_DELAY, .nth = 1, .times = 1, .delay_us = 20000};
    fault_point_set(FAULT_AT_COMMIT, &plan);
    int64_t began_us = clock_mono_us(NULL);
    CHECK("after a delay it goes on", !fault_point_pass(FAULT_AT_COMMIT));
    CHECK("late", clock_mono_us(NULL) - began_us >= 20000);
}

int main(void) {
    test_off();
    test_passages();
    test_delay();
    return check_report();
}
