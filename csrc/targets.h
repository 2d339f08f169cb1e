// SPDX-License-Identifier: MIT
//
// The inputs of one job: a packed list of targets, each a URL and its options as canonical JSON.
// Plain bytes; knows nothing of how they came here or where they go.

#ifndef BATCH_TARGETS_H
#define BATCH_TARGETS_H

#include "buffer.h"

#include <stddef.h>
#include <stdint.h>

struct targets {
    struct buffer packed;
    size_t count;
};

// One target as it lies in the list, or in a row of the store. The bytes belong to whoever gave it.
struct target {
    const char *url;
    size_t url_len;
    const char *options;  // canonical JSON, "{}" when there are none
    size_t options_len;
};

void targets_init(struct targets *targets);
void targets_fini(struct targets *targets);

// Appends a copy. Memory shortage is remembered in packed.is_broken.
void targets_add(struct targets *targets, const struct target *target);

// Reads the target at *offset (0 for the first) and moves *offset behind it.
// Returns 0, or STATUS_NOTHING at the end.
int targets_next(const struct targets *targets, size_t *offset, struct target *out_target);

#endif
