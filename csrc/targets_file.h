// SPDX-License-Identifier: MIT
//
// Where the beginning of a long list of targets rests until it is stored: a file without a name,
// which goes with its last user. Bytes are appended, and read again through a window. Knows no
// format.

#ifndef BATCH_TARGETS_FILE_H
#define BATCH_TARGETS_FILE_H

#include "buffer.h"

#include <stddef.h>
#include <stdint.h>

struct targets_file {
    int fd;
    size_t len;            // of all that was appended
    struct buffer window;  // what lies in the file from window_at on
    size_t window_at;
};

// Makes a file in TMPDIR, /var/tmp or /tmp. NULL when none can be had.
struct targets_file *targets_file_new(void);
void targets_file_free(struct targets_file *file);

// Returns 0, or STATUS_STORE when the disk does not take it; then nothing was appended.
int targets_file_add(struct targets_file *file, const char *bytes, size_t len);

// Finds what lies at offset: wanted bytes, or all that there are to the end, or more. It lives
// until the next call. Returns 0, STATUS_STORE or STATUS_NO_MEMORY.
int targets_file_look(struct targets_file *file, size_t offset, size_t wanted,
                      const char **out_bytes, size_t *out_len);

#endif
