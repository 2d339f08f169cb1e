// SPDX-License-Identifier: MIT
//
// The workers' own Lua states: made in the worker's thread, closed there, known to nobody else.

#ifndef BATCH_LWORKER_H
#define BATCH_LWORKER_H

#include "clock.h"
#include "runner.h"

#include <stddef.h>

// What every worker's state is made from. Shared and counted; never changes.
struct lworker_source;

struct lworker_settings {
    const char *path;   // package.path
    const char *cpath;  // package.cpath
    const char *kind;   // "module": fetch is a module's name; "carried": what carry.pack made
    const char *fetch;
    size_t fetch_len;
    struct clock *clock;  // held
};

// Copies the settings. NULL when memory ran out.
struct lworker_source *lworker_source_new(const struct lworker_settings *settings);
void lworker_source_free(struct lworker_source *source);

// The runner's fetcher made of such states. Holds the source until the last state has ended.
struct fetcher lworker_fetcher(struct lworker_source *source);

#endif
