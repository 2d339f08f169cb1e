// SPDX-License-Identifier: MIT
//
// The inputs of one job: a packed list of targets, each a URL and its options as canonical JSON.
// Plain bytes; knows nothing of how they came here or where they go.
//
// The format is the same on every machine, for stores keep pieces of such lists. Targets follow one
// another without a gap, each as
//   the length of its URL, the length of its options, the URL, the options.
// A length is a varint (LEB128): seven bits to a byte, the lowest first, the top bit set in every
// byte but the last; at most five bytes, below 2^32. No options, "{}", are written with length 0.

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

// The same of a piece of a list that comes from elsewhere. STATUS_INVALID when what lies there is
// no target; then *offset stays.
int targets_read(const char *packed, size_t len, size_t *offset, struct target *out_target);

#endif
