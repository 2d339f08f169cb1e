// SPDX-License-Identifier: MIT
//
// What the tests of a store begin with: an empty one in memory, and what writes an outcome.

#ifndef BATCH_FRESH_STORE_H
#define BATCH_FRESH_STORE_H

#include "store.h"

#include "check.h"
#include "status.h"

static struct place place;
static struct store *store;
static const struct store_ops *ops;

enum { NOW = 1000000, LEASE = 2000000, PATIENCE_MS = 1000 };

static struct bytes text(const char *start) {
    return (struct bytes){start, start ? strlen(start) : 0};
}

static void open_store(void) {
    struct fault fault;
    CHECK("a place in memory", place_open(":memory:", &place, &fault) == STATUS_OK);
    CHECK("a store opens", store_open(&place, DURABILITY_NORMAL, true, &store, &fault) == 0);
    ops = store->ops;
}

static void count_fault(void *context, const char *found) {
    int *n_faults = context;
    ++*n_faults;
    printf("    %s\n", found);
}

static int n_faults_found(void) {
    int n_faults = 0;
    return ops->check(store, count_fault, &n_faults) ? -1 : n_faults;
}

static void close_store(void) {
    CHECK("the invariants hold at the end", n_faults_found() == 0);
    ops->close(store);
    place_close(&place);
}

// Everything that writes is called between these two.
static void begin(void) {
    CHECK("a transaction begins", ops->begin(store, PATIENCE_MS) == STATUS_OK);
}

static void commit(void) {
    CHECK("a transaction ends", ops->commit(store) == STATUS_OK);
}

static struct outcome outcome_of(int64_t key, int64_t idx, const char *content, bool is_last) {
    return (struct outcome){.job_key = key,
                            .idx = idx,
                            .content = text(content),
                            .error = text(content ? NULL : "no luck"),
                            .attempts = 1,
                            .started_at = NOW,
                            .finished_at = NOW + idx,
                            .expires_at = LEASE + 1,
                            .is_last = is_last};
}

static int put(int64_t key, int64_t idx, const char *content, bool is_last, int *out_status) {
    struct outcome outcome = outcome_of(key, idx, content, is_last);
    begin();
    int status = ops->put_outcome(store, &outcome, out_status);
    commit();
    return status;
}

#endif
