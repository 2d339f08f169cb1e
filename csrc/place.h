// SPDX-License-Identifier: MIT
//
// Where a store is: a file, or this process's memory under a name, so that several connections can
// meet there. Beside each store lies its owners file (a nameless one for a store in memory).
//
// Processes on a store must find the same owners file, and SQLite its same log, whatever name they
// were given. So links are followed, and what would still give one file two names is refused.

#ifndef BATCH_PLACE_H
#define BATCH_PLACE_H

#include "status.h"

#include <stdbool.h>

struct place {
    char *path;    // absolute, without links: a later chdir changes nothing
    char *uri;     // what the store's library opens
    char *owners;  // path of the owners file
    bool is_memory;
    int memory_fd;  // keeps the owners file of a store in memory; else -1
};

// Resolves path, at which a file need not be yet; ":memory:" makes a new, empty place. Refuses what
// is no regular file, what has further names by hard links, and a file that is mounted by itself.
// Returns 0, STATUS_STORE or STATUS_NO_MEMORY.
int place_open(const char *path, struct place *out_place, struct fault *fault);

// A second handle on the same place.
int place_copy(const struct place *place, struct place *out_place, struct fault *fault);

// Harmless on a place that is all zero or was closed.
void place_close(struct place *place);

#endif
