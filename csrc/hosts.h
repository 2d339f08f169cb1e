// SPDX-License-Identifier: MIT
//
// How many requests may be under way to one host, and how soon after one the next may begin, over
// all threads of the process. Nobody waits in here: who cannot begin is told when to come back, and
// keeps a place in the host's queue until then. Knows nothing of URLs and of requests. Safe from
// any thread; nothing blocks but for a short lock.

#ifndef BATCH_HOSTS_H
#define BATCH_HOSTS_H

#include "clock.h"

#include <stddef.h>
#include <stdint.h>

struct hosts;
struct host;

enum {
    HOSTS_MAX_QUEUE = 4096,  // of one host; who comes when it is full waits without a place in it
};

struct hosts_wish {
    const char *name;  // tells hosts apart: any bytes
    size_t name_len;
    const char *who;  // tells those who wait apart, from one call to the next: any bytes
    size_t who_len;
    unsigned limit;    // requests at once, from 1
    int64_t delay_us;  // from the beginning of one to that of the next
    int64_t lasts_us;  // then the slot lapses, for the thread that holds it may be lost
};

// A slot lies with its holder, in the list of its host until it is given back or lapses. All zero:
// none. Must not move meanwhile. The fields are the table's own.
struct hosts_slot {
    struct hosts *hosts;
    struct host *host;
    struct hosts_slot *older;
    struct hosts_slot *newer;
    int64_t begun_us;
    int64_t lapses_us;
    unsigned generation;
};

// The table of this process, which never goes; after a fork the child's is empty.
struct hosts *hosts_shared(void);

// One of its own; NULL when memory ran out. The clock must outlive it, and so must it its slots.
struct hosts *hosts_new(const struct clock *clock);
void hosts_free(struct hosts *hosts);

// Takes a slot. Returns 0; or STATUS_BUSY with the time after which to come back in
// *out_wait_us: never 0, and not the same for all who wait; or STATUS_NO_MEMORY.
int hosts_enter(struct hosts *hosts, const struct hosts_wish *wish, struct hosts_slot *out_slot,
                int64_t *out_wait_us);

// Gives the slot back. Harmless on one that is all zero, was given back, has lapsed, or was taken
// before a fork.
void hosts_leave(struct hosts_slot *slot);

// How many hosts are remembered: those in use, and for a moment those that were.
size_t hosts_count(struct hosts *hosts);

#endif
