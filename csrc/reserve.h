// SPDX-License-Identifier: MIT
//
// A file beside the store that only takes up space, for the day when the disk is full: given up, it
// makes room for what is small and must not be refused then. Shared by all processes on the store;
// knows nothing of what the room is for. A file system that copies on write promises no room.

#ifndef BATCH_RESERVE_H
#define BATCH_RESERVE_H

#include "place.h"

#include <stdbool.h>

// A cancel appends some ten pages of 4 KiB to the log: room for about 25 of them, more if they come
// at once.
enum { BATCH_RESERVE_BYTES = 1024 * 1024 };

struct reserve {
    char *path;   // NULL: none, for a store in memory
    int lent_fd;  // holds its lock while it is given up; else -1
};

// Touches no file yet. Returns 0 or STATUS_NO_MEMORY.
int reserve_init(struct reserve *reserve, const struct place *place);
// Harmless on one that is all zero.
void reserve_fini(struct reserve *reserve);

// Takes as much space as there is, up to BATCH_RESERVE_BYTES. Blocks on the disk alone.
void reserve_fill(const struct reserve *reserve);

// Gives the space up until reserve_take_back, by the same thread. Returns false when there is none.
bool reserve_lend(struct reserve *reserve);
// Takes back what is left of it: whatever goes on filling the disk does not get it.
void reserve_take_back(struct reserve *reserve);

#endif
