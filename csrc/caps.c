// SPDX-License-Identifier: MIT
//
// The decision, in the order in which users are told.

#include "caps.h"

#include "status.h"

int caps_admit(const struct caps *caps, const struct load *load) {
    if (load->targets > caps->targets_per_job)
        return STATUS_TOO_MANY_TARGETS;
    if (load->caller_jobs >= caps->jobs_per_caller)
        return STATUS_CALLER_BUSY;
    if (load->total_jobs >= caps->jobs_total)
        return STATUS_BUSY;
    return STATUS_OK;
}
