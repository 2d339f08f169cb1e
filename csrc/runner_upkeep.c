// SPDX-License-Identifier: MIT
//
// What keeps the store in order, as steps inside a transaction of whoever calls: jobs of dead
// owners, lapsed leases, results that no longer fit.

#include "runner_state.h"

#include <string.h>

enum {
    // How long a record outlives its lease, so that its reader learns "expired" and not "unknown".
    SWEEP_GRACE_MS = 60000,
    SWEEP_JOBS = 100,  // in one transaction
    SWEEP_ROWS = 2000,
    EVICT_JOBS = 1000,
    RECOUNT_AFTER_US = 1000000,  // other processes store results too
};

// --- dead owners ---

static int store_crashed(struct runner *runner, struct store *store, const struct job_row *job) {
    static const char error[] = "crashed";
    static const char hint[] = "its process died again and again while it was in flight";
    int64_t now = runner_now_ms(runner);
    struct outcome outcome = {.job_key = job->key,
                              .idx = job->targets_done,
                              .error = {error, sizeof error - 1},
                              .hint = {hint, sizeof hint - 1},
                              .attempts = job->attempts + job->deaths,
                              .started_at = now,
                              .finished_at = now,
                              .expires_at = now + runner->config.ttl_ms,
                              .is_last = job->targets_done + 1 == job->targets_total};
    int job_status;
    return store->ops->put_outcome(store, &outcome, &job_status);
}

static int note_deaths(struct runner *runner, struct store *store, const struct owner_row *owner) {
    struct in_flight in_flight[OWNER_MAX_IN_FLIGHT];
    size_t n = owners_read(runner->owners, owner->slot, in_flight, OWNER_MAX_IN_FLIGHT);
    int status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++) {
        struct job_row job;
        status = store->ops->note_death(store, in_flight[i].job_key, in_flight[i].idx, &job);
        if (!status && job.deaths >= runner->config.crash_limit)
            status = store_crashed(runner, store, &job);
        if (status == STATUS_NOT_FOUND)
            status = STATUS_OK;
    }
    return status;
}

int runner_reap(struct runner *runner, struct store *store, const struct owner_row *owner,
                int64_t *out_count) {
    struct owner_row known;
    *out_count = 0;
    if (owners_is_alive(runner->owners, owner->id))
        return STATUS_OK;
    // Somebody else may have reaped it since it was seen: then its slot may be another's by now.
    int status = store->ops->next_owner(store, owner->id - 1, &known);
    if (status == STATUS_NOTHING || (!status && known.id != owner->id))
        return STATUS_OK;
    if (status)
        return status;
    if (runner->config.resumes) {
        status = note_deaths(runner, store, owner);
        if (!status)
            status = store->ops->release_jobs(store, owner->id, out_count);
    } else {
        status =
            store->ops->fail_jobs(store, owner->id, "restart", runner_now_ms(runner), out_count);
    }
    return status ? status : store->ops->delete_owner(store, owner->id);
}

// --- lapsed leases ---

int runner_sweep(struct runner *runner, struct store *store, bool *out_has_more) {
    int64_t n_dropped;
    *out_has_more = false;
    int64_t before = runner_now_ms(runner) - SWEEP_GRACE_MS;
    int status = store->ops->drop_expired(store, before, SWEEP_JOBS, &n_dropped);
    int cleared = status ? status : store->ops->clear_dropped(store, SWEEP_ROWS);
    if (cleared && cleared != STATUS_NOTHING)
        return cleared;
    int shrunk = store->ops->shrink(store);
    *out_has_more = !cleared || !shrunk;
    return shrunk == STATUS_NOTHING ? STATUS_OK : shrunk;
}

// --- results that no longer fit ---

static int recount(struct runner *runner, struct store *store) {
    struct store_gauges gauges;
    int status = store->ops->read_gauges(store, &gauges);
    if (status)
        return status;
    runner->known_bytes = gauges.stored_bytes;
    runner->bytes_since = 0;
    runner->counted_at_us = clock_mono_us(NULL);
    return STATUS_OK;
}

int runner_evict(struct runner *runner, struct store *store, int64_t n_new_bytes, bool has_finished,
                 int64_t *out_n_evicted) {
    int64_t max_bytes = runner->config.max_bytes;
    int status = STATUS_OK;
    *out_n_evicted = 0;
    runner->bytes_since += n_new_bytes;
    if (clock_mono_us(NULL) - runner->counted_at_us > RECOUNT_AFTER_US)
        status = recount(runner, store);
    if (has_finished)
        runner->evict_above = max_bytes;
    if (status || runner->known_bytes + runner->bytes_since <= runner->evict_above)
        return status;
    while (!status && *out_n_evicted < EVICT_JOBS) {
        status = store->ops->drop_oldest(store, max_bytes);
        *out_n_evicted += status == STATUS_OK;
    }
    if (status && status != STATUS_NOTHING)
        return status;
    status = recount(runner, store);
    // Nothing left to drop: try again when some more has come, or a job has finished.
    if (runner->known_bytes > max_bytes)
        runner->evict_above = runner->known_bytes + max_bytes / 64;
    return status;
}
