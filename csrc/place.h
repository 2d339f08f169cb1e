// SPDX-License-Identifier: MIT
//
// Where a store is: a file, or this process's memory under a name, so that several connections can
// meet there. Beside each store lies its owners file (a nameless one for a store in memory).

#ifndef BATCH_PLACE_H
#define BATCH_PLACE_H

#include "status.h"

#include <stdbool.h>

struct place {
    char *path;    // what the user gave
    char *uri;     // what the store's library opens
    char *owners;  // path of the owners file
    bool is_memory;
    int memory_fd;  // keeps the owners file of a store in memory; else -1
};

// Resolves path; ":memory:" makes a new, empty place. Returns 0, STATUS_STORE or STATUS_NO_MEMORY.
int place_open(const char *path, struct place *out_place, struct fault *fault);

// A second handle on the same place.
int place_copy(const struct place *place, struct place *out_place, struct fault *fault);

// Harmless on a place that is all zero or was closed.
void place_close(struct place *place);

#endif
