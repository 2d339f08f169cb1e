// SPDX-License-Identifier: MIT
//
// The inputs of one job: a packed list of targets, each a URL and its options as canonical JSON.
// Plain bytes; knows nothing of how they came here or where they go. A list may be told to hold
// only so much of itself in memory; the rest waits in a file then, and is read as if it did not.
//
// The format is the same on every machine, for stores keep pieces of such lists. Targets follow one
// another without a gap, each as
//   the length of its URL, the length of its options, the URL, the options.
// A length is a varint (LEB128): seven bits to a byte, the lowest first, the top bit set in every
// byte but the last; at most five bytes, below 2^32. No options, "{}", are written with length 0.

#ifndef BATCH_TARGETS_H
#define BATCH_TARGETS_H

#include "buffer.h"
#include "targets_file.h"

#include <stddef.h>
#include <stdint.h>

struct targets {
    struct buffer packed;  // behind those in the file
    size_t count;
    size_t max_held;            // bytes of packed, about; then they go to the file. 0: no limit
    struct targets_file *file;  // NULL: all are in packed
};

// One target as it lies in the list, or in a row of the store. The bytes belong to whoever gave it.
struct target {
    const char *url;
    size_t url_len;
    const char *options;  // canonical JSON, "{}" when there are none
    size_t options_len;
};

// Without a limit, which may be set as long as the list is empty.
void targets_init(struct targets *targets);
void targets_fini(struct targets *targets);

// Appends a copy. Memory shortage is remembered in packed.is_broken. What no file takes stays in
// memory.
void targets_add(struct targets *targets, const struct target *target);

// Reads the target at *offset (0 for the first) and moves *offset behind it. It lives until the
// list is read again or added to, so that one thread at a time may read a list that has a file.
// Returns 0, STATUS_NOTHING at the end, or STATUS_STORE or STATUS_NO_MEMORY when the file cannot be
// read back.
int targets_next(const struct targets *targets, size_t *offset, struct target *out_target);

// The same of as many as max_len bytes hold, but at least of one, packed as they are.
int targets_run(const struct targets *targets, size_t *offset, size_t max_len,
                const char **out_packed, size_t *out_len, size_t *out_count);

// targets_next of a piece of a list that comes from elsewhere. STATUS_INVALID when what lies there
// is no target; then *offset stays.
int targets_read(const char *packed, size_t len, size_t *offset, struct target *out_target);

#endif
