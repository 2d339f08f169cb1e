// SPDX-License-Identifier: MIT
//
// The store's statements against the table of moves: from each status each call that would change
// it does so where the table permits the move, and leaves the job alone where not.

#include "store.h"

#include "check.h"
#include "status.h"

static struct place place;
static struct store *store;
static const struct store_ops *ops;

enum { NOW = 1000000, LEASE = 2000000, PATIENCE_MS = 1000, OWNER = 7 };

// A job of two targets that OWNER works on.
static int64_t insert(char out_id[JOB_ID_SIZE]) {
    struct targets targets;
    struct target target = {"u", 1, "{}", 2};
    struct new_job job = {.caller = {"me", 2},
                          .class_name = {"", 0},
                          .owner = OWNER,
                          .now = NOW,
                          .expires_at = LEASE,
                          .targets = &targets};
    int64_t key;
    targets_init(&targets);
    targets_add(&targets, &target);
    targets_add(&targets, &target);
    job_id_make(NOW, job.id);
    memcpy(out_id, job.id, JOB_ID_SIZE);
    CHECK("a job is inserted", ops->insert_job(store, &job, &key) == STATUS_OK);
    targets_fini(&targets);
    return key;
}

static void put(int64_t key, int64_t idx, bool is_result) {
    struct outcome outcome = {
        .job_key = key, .idx = idx, .attempts = 1, .expires_at = LEASE, .is_last = idx == 1};
    int status;
    if (is_result)
        outcome.content = (struct bytes){"content", 7};
    else
        outcome.error = (struct bytes){"error", 5};
    ops->put_outcome(store, &outcome, &status);
}

// Calls what leads to that status, whatever the job's status is.
static void push_towards(int to, const char *id, int64_t key) {
    int64_t count;
    struct job_row job;
    switch (to) {
    case JOB_QUEUED:
        ops->release_jobs(store, OWNER, &count);
        break;
    case JOB_RUNNING:
        ops->start_job(store, key, NOW);
        break;
    case JOB_CANCELLED:
        ops->cancel_job(store, id, NOW, &job);
        break;
    default:
        put(key, 0, to != JOB_FAILED);
        put(key, 1, to == JOB_DONE);
    }
}

static void check_move(int from, int to) {
    char id[JOB_ID_SIZE], claim[80];
    struct job_row job;
    CHECK("a transaction begins", ops->begin(store, PATIENCE_MS) == STATUS_OK);
    int64_t key = insert(id);
    if (from != JOB_QUEUED)
        push_towards(from, id, key);
    push_towards(to, id, key);
    ops->read_job(store, id, &job);
    bool is_permitted = job_may_become(from, to);
    snprintf(claim, sizeof claim, "%s, pushed towards %s, is %s", job_status_name(from),
             job_status_name(to), job_status_name(is_permitted ? to : from));
    CHECK(claim, job.status == (is_permitted ? to : from));
    ops->rollback(store);
}

int main(void) {
    struct fault fault;
    CHECK("a place in memory", place_open(":memory:", &place, &fault) == STATUS_OK);
    CHECK("a store opens", store_open(&place, DURABILITY_NORMAL, true, &store, &fault) == 0);
    ops = store->ops;
    for (int from = 0; from < JOB_N_STATUSES; from++)
        for (int to = 0; to < JOB_N_STATUSES; to++)
            check_move(from, to);
    ops->close(store);
    place_close(&place);
    return check_report();
}
