// SPDX-License-Identifier: MIT
//
// A small pool of connections for reading, so that a long read never blocks a commit and a program
// with many threads does not hold as many files open. Safe from any thread.

#ifndef BATCH_READERS_H
#define BATCH_READERS_H

#include "store.h"

struct readers;

// Copies the place. Opens no connection yet. Returns 0, STATUS_STORE or STATUS_NO_MEMORY.
int readers_open(const struct place *place, struct readers **out_readers, struct fault *fault);

// All connections have been given back.
void readers_close(struct readers *readers);

// Lends a connection with a consistent view begun; waits for one if all are lent. It is given back
// by the thread that took it.
int readers_take(struct readers *readers, struct store **out_store, struct fault *fault);
void readers_give(struct readers *readers, struct store *store);

#endif
