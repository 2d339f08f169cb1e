// SPDX-License-Identifier: MIT
//
// The states of a job and the moves between them. Pure: knows no store, thread or clock.

#ifndef BATCH_JOB_H
#define BATCH_JOB_H

#include <stdbool.h>
#include <stdint.h>

enum job_status {
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_DONE,
    JOB_PARTIAL,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_N_STATUSES,
};

// A UUID as text, with its NUL.
enum { JOB_ID_SIZE = 37 };

// The name that SQL, Lua, HTTP and the command line use. NULL for a number that is no status.
const char *job_status_name(int status);

// The status of that name, or STATUS_INVALID.
int job_status_parse(const char *name);

// Queued or running: it counts against the caps and is never expired or evicted.
bool job_is_live(int status);

bool job_may_become(int from, int to);

// What a job ends as when all of its targets have an outcome.
enum job_status job_ending(int64_t targets_total, int64_t targets_failed);

// Writes a fresh UUIDv7 of that moment; those of one clock sort as they were made. Returns 0, or
// STATUS_STORE when the system has no randomness.
int job_id_make(int64_t now_ms, char out_id[JOB_ID_SIZE]);

// Whether this is the text of an id: 36 characters, lower-case hex and hyphens.
bool job_id_is_valid(const char *id);

#endif
