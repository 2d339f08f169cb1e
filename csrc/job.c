// SPDX-License-Identifier: MIT
//
// The table of moves, and the ids (UUIDv7: RFC 9562, section 5.7).

#include "job.h"

#include "status.h"

#include <openssl/rand.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const names[JOB_N_STATUSES] = {
    [JOB_QUEUED] = "queued",   [JOB_RUNNING] = "running", [JOB_DONE] = "done",
    [JOB_PARTIAL] = "partial", [JOB_FAILED] = "failed",   [JOB_CANCELLED] = "cancelled",
};

// moves[from][to]. A terminal status is left by no move. running → queued is how a job goes back
// when its process gives it up; queued → done and partial happen when the note that it runs was
// lost for want of memory. The store's conditional statements make these moves and no other.
static const bool moves[JOB_N_STATUSES][JOB_N_STATUSES] = {
    [JOB_QUEUED] = {[JOB_RUNNING] = true,
                    [JOB_DONE] = true,
                    [JOB_PARTIAL] = true,
                    [JOB_FAILED] = true,
                    [JOB_CANCELLED] = true},
    [JOB_RUNNING] = {[JOB_QUEUED] = true,
                     [JOB_DONE] = true,
                     [JOB_PARTIAL] = true,
                     [JOB_FAILED] = true,
                     [JOB_CANCELLED] = true},
};

const char *job_status_name(int status) {
    return status >= 0 && status < JOB_N_STATUSES ? names[status] : NULL;
}

int job_status_parse(const char *name) {
    for (int status = 0; status < JOB_N_STATUSES; status++)
        if (strcmp(names[status], name) == 0)
            return status;
    return STATUS_INVALID;
}

bool job_is_live(int status) {
    return status == JOB_QUEUED || status == JOB_RUNNING;
}

bool job_may_become(int from, int to) {
    return from >= 0 && from < JOB_N_STATUSES && to >= 0 && to < JOB_N_STATUSES && moves[from][to];
}

enum job_status job_ending(int64_t targets_total, int64_t targets_failed) {
    if (targets_failed == 0)
        return JOB_DONE;
    return targets_failed == targets_total ? JOB_FAILED : JOB_PARTIAL;
}

// How far the system's clock was inside of that millisecond, in 4096ths: its end when it is over
// since. -1 when the clock shows quite another time, as it does beside a virtual one.
static int fraction_of(int64_t now_ms) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t late_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - now_ms;
    if (late_ms < 0 || late_ms > 1000)
        return -1;
    return late_ms ? 4095 : (int)(now.tv_nsec % 1000000 * 4096 / 1000000);
}

// The twelve bits behind the moment continue it (RFC 9562, section 6.2, method 3): a list of jobs
// that looks for its place by the id of one that is gone would lose those of the same millisecond.
int job_id_make(int64_t now_ms, char out_id[JOB_ID_SIZE]) {
    unsigned char b[16];
    int fraction = fraction_of(now_ms);
    out_id[0] = '\0';
    if (RAND_bytes(b + 6, 10) != 1)
        return STATUS_STORE;
    for (int i = 0; i < 6; i++)
        b[i] = (unsigned char)(now_ms >> (40 - 8 * i));
    if (fraction >= 0) {
        b[6] = (unsigned char)(fraction >> 8);
        b[7] = (unsigned char)fraction;
    }
    b[6] = (unsigned char)(0x70 | (b[6] & 0x0f));  // version 7
    b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));  // variant 10
    snprintf(out_id, JOB_ID_SIZE,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return STATUS_OK;
}

bool job_id_is_valid(const char *id) {
    if (strlen(id) != JOB_ID_SIZE - 1)
        return false;
    for (int i = 0; i < JOB_ID_SIZE - 1; i++) {
        bool is_hyphen_place = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_hyphen_place ? id[i] != '-' : !strchr("0123456789abcdef", id[i]))
            return false;
    }
    return true;
}
