// SPDX-License-Identifier: MIT
//
// The caps, cell by cell: each count below, at and above its limit, in every combination.

#include "caps.h"

#include "check.h"
#include "status.h"

static const struct caps caps = {.targets_per_job = 32, .jobs_per_caller = 2, .jobs_total = 8};

// The least load that is too much, less one: what may just come in.
static const struct load edge = {.targets = 32, .caller_jobs = 1, .total_jobs = 7};

static int expected(int over_targets, int over_caller, int over_total) {
    if (over_targets > 0)
        return STATUS_TOO_MANY_TARGETS;
    if (over_caller > 0)
        return STATUS_CALLER_BUSY;
    return over_total > 0 ? STATUS_BUSY : STATUS_OK;
}

static void test_cells(void) {
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++)
            for (int k = -1; k <= 1; k++) {
                char claim[96];
                struct load load = {edge.targets + i, edge.caller_jobs + j, edge.total_jobs + k};
                snprintf(claim, sizeof claim, "targets %+d, caller's jobs %+d, jobs in all %+d", i,
                         j, k);
                CHECK(claim, caps_admit(&caps, &load) == expected(i, j, k));
            }
}

static void test_ends_of_the_ranges(void) {
    struct caps widest = {INT64_MAX, INT64_MAX, INT64_MAX};
    struct load heavy = {INT64_MAX, INT64_MAX - 1, INT64_MAX - 1}, none = {0, 0, 0};
    CHECK("the widest caps admit all that can be counted",
          caps_admit(&widest, &heavy) == STATUS_OK);
    struct caps narrowest = {1, 1, 1};
    struct load one = {1, 0, 0};
    CHECK("the narrowest admit one", caps_admit(&narrowest, &one) == STATUS_OK);
    struct caps closed = {0, 0, 0};
    CHECK("caps of nothing admit no job", caps_admit(&closed, &none) == STATUS_CALLER_BUSY);
}

static void test_sentences(void) {
    CHECK_TEXT("too many targets", status_message(STATUS_TOO_MANY_TARGETS));
    CHECK_TEXT("busy", status_message(STATUS_CALLER_BUSY));
    CHECK_TEXT("jobs busy", status_message(STATUS_BUSY));
    CHECK_TEXT("too_many_targets", status_code(STATUS_TOO_MANY_TARGETS));
    CHECK_TEXT("caller_busy", status_code(STATUS_CALLER_BUSY));
    CHECK_TEXT("busy", status_code(STATUS_BUSY));
}

int main(void) {
    test_cells();
    test_ends_of_the_ranges();
    test_sentences();
    return check_report();
}
