// SPDX-License-Identifier: MIT
//
// The caps that protect the host, as arithmetic on counts that somebody else took.

#ifndef BATCH_CAPS_H
#define BATCH_CAPS_H

#include <stdint.h>

struct caps {
    int64_t targets_per_job;
    int64_t jobs_per_caller;
    int64_t jobs_total;
};

// What stands when a job asks to be let in, that job not counted.
struct load {
    int64_t targets;      // in the job that asks
    int64_t caller_jobs;  // live jobs of its caller
    int64_t total_jobs;   // live jobs in all
};

// Returns 0, STATUS_TOO_MANY_TARGETS, STATUS_CALLER_BUSY or STATUS_BUSY: the first that applies.
int caps_admit(const struct caps *caps, const struct load *load);

#endif
