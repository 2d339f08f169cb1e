// SPDX-License-Identifier: MIT
//
// What the proof of a store and its mending share: how sentences are told, and the walk over the
// inputs.

#ifndef BATCH_STORE_CHECK_H
#define BATCH_STORE_CHECK_H

#include "store_sqlite.h"

struct report {
    void (*call)(void *context, const char *text);
    void *context;
};

__attribute__((format(printf, 2, 3))) void check_say(const struct report *report,
                                                     const char *format, ...);

// Runs a statement whose rows are sentences, and reports each but "ok".
int check_tell(struct sqlite *sqlite, const char *sql, const struct report *report);

// The inputs of one job. proven: they are whole, and those that its idem_key stands for.
struct inputs_found {
    int64_t job_key;
    int64_t targets_total;
    int64_t n_targets;
    bool is_proven;
};

// Walks over the inputs of all jobs. found may be NULL; it may write, also to the job that it is
// called with.
int check_inputs(struct sqlite *sqlite, const struct report *report,
                 int (*found)(void *context, const struct inputs_found *inputs), void *context);

// Everything but the file itself; what cannot be read is a fault like any other.
int check_rows(struct sqlite *sqlite, const struct report *report);

// The file: pages and indexes.
int check_file(struct sqlite *sqlite, const struct report *report);

#endif
