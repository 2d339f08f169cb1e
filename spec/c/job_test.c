// SPDX-License-Identifier: MIT
//
// The states of a job: every cell of the table of moves, endings, and ids.

#include "job.h"

#include "check.h"
#include "clock.h"
#include "status.h"

#include <stdlib.h>

// Rows: from; columns: to; both in the order of enum job_status.
static const char *const permitted[JOB_N_STATUSES] = {
    // queued, running, done, partial, failed, cancelled
    ".xxxxx",  // queued
    "x.xxxx",  // running
    "......",  // done
    "......",  // partial
    "......",  // failed
    "......",  // cancelled
};

static void test_moves(void) {
    for (int from = 0; from < JOB_N_STATUSES; from++) {
        for (int to = 0; to < JOB_N_STATUSES; to++) {
            char claim[64];
            bool is_permitted = permitted[from][to] == 'x';
            snprintf(claim, sizeof claim, "%s may%s become %s", job_status_name(from),
                     is_permitted ? "" : " not", job_status_name(to));
            CHECK(claim, job_may_become(from, to) == is_permitted);
        }
    }
    CHECK("no status is left for one that does not exist",
          !job_may_become(JOB_RUNNING, JOB_N_STATUSES) && !job_may_become(JOB_RUNNING, -1));
    CHECK("what is no status becomes nothing",
          !job_may_become(JOB_N_STATUSES, JOB_DONE) && !job_may_become(-1, JOB_DONE));
}

static void test_names(void) {
    static const char *const names[] = {"queued",  "running", "done",
                                        "partial", "failed",  "cancelled"};
    for (int status = 0; status < JOB_N_STATUSES; status++) {
        CHECK_TEXT(names[status], job_status_name(status));
        CHECK("a name is read back", job_status_parse(names[status]) == status);
    }
    CHECK("a number beyond the last has no name", !job_status_name(JOB_N_STATUSES));
    CHECK("a negative number has no name", !job_status_name(-1));
    CHECK("pending is no status of a job", job_status_parse("pending") == STATUS_INVALID);
    CHECK("names are lower case", job_status_parse("Done") == STATUS_INVALID);
    CHECK("nothing is no name", job_status_parse("") == STATUS_INVALID);
}

static void test_live(void) {
    for (int status = 0; status < JOB_N_STATUSES; status++) {
        bool has_way_out = false;
        for (int to = 0; to < JOB_N_STATUSES; to++)
            has_way_out |= job_may_become(status, to);
        CHECK("live is what can still change", job_is_live(status) == has_way_out);
    }
}

static void test_endings(void) {
    CHECK("without a failure it is done", job_ending(3, 0) == JOB_DONE);
    CHECK("with some failures it is partial", job_ending(3, 1) == JOB_PARTIAL);
    CHECK("with one success it is partial", job_ending(3, 2) == JOB_PARTIAL);
    CHECK("when all failed it is failed", job_ending(3, 3) == JOB_FAILED);
    CHECK("one target that failed is all of them", job_ending(1, 1) == JOB_FAILED);
    int64_t huge = INT64_C(1) << 53;
    CHECK("counts may be larger than 32 bits", job_ending(huge, huge - 1) == JOB_PARTIAL);
}

static int64_t moment_of(const char *id) {
    char digits[13];
    memcpy(digits, id, 8);
    memcpy(digits + 8, id + 9, 4);
    digits[12] = '\0';
    return strtoll(digits, NULL, 16);
}

static void test_ids(void) {
    static const int64_t moments[] = {0, 1, 1700000000123, (INT64_C(1) << 48) - 1};
    char id[JOB_ID_SIZE], other[JOB_ID_SIZE];
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        CHECK("an id is made", job_id_make(moments[i], id) == STATUS_OK);
        CHECK("it is valid", job_id_is_valid(id));
        CHECK("it begins with its moment", moment_of(id) == moments[i]);
        CHECK("its version is 7", id[14] == '7');
        CHECK("its variant is RFC 9562's", strchr("89ab", id[19]) != NULL);
        job_id_make(moments[i], other);
        CHECK("two of one moment differ", strcmp(id, other) != 0);
    }
    job_id_make(1000, id);
    job_id_make(1001, other);
    CHECK("a later one sorts behind", strcmp(id, other) < 0);
}

static void test_ids_are_in_order(void) {
    char last[JOB_ID_SIZE], id[JOB_ID_SIZE];
    int n_in_order = 0;
    job_id_make(clock_wall_ms(NULL), last);
    for (int i = 0; i < 200; i++) {
        int64_t until_us = clock_mono_us(NULL) + 20;
        while (clock_mono_us(NULL) < until_us)
            ;
        job_id_make(clock_wall_ms(NULL), id);
        n_in_order += strcmp(last, id) < 0;
        memcpy(last, id, sizeof last);
    }
    // Not all: two may be made behind the end of the same millisecond.
    CHECK("ids made one after the other sort so, inside of a millisecond too", n_in_order >= 190);
}

static void test_what_is_no_id(void) {
    static const char *const nonsense[] = {
        "",
        "0",
        "0190a1b2-c3d4-7e5f-8a6b-0123456789a",    // one digit short
        "0190a1b2-c3d4-7e5f-8a6b-0123456789abc",  // one too many
        "0190A1B2-C3D4-7E5F-8A6B-0123456789AB",
        "0190a1b2c3d4-7e5f--8a6b-0123456789ab",
        "0190a1b2-c3d4-7e5f-8a6b-0123456789ag",
        "0190a1b2-c3d4-7e5f-8a6b-0123456789a\n",
        "------------------------------------",
    };
    CHECK("36 digits and hyphens are an id",
          job_id_is_valid("0190a1b2-c3d4-7e5f-8a6b-0123456789ab"));
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++)
        CHECK(nonsense[i], !job_id_is_valid(nonsense[i]));
}

int main(void) {
    test_moves();
    test_names();
    test_live();
    test_endings();
    test_ids();
    test_ids_are_in_order();
    test_what_is_no_id();
    return check_report();
}
