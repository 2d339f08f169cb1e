// SPDX-License-Identifier: MIT
//
// What keeps the store in order, as steps inside a transaction of whoever calls: jobs of dead
// owners, lapsed leases, results that no longer fit.

#include "runner_state.h"

#include <stdlib.h>
#include <string.h>

enum {
    // How long a record outlives its lease, so that its reader learns "expired" and not "unknown".
    SWEEP_GRACE_MS = 60000,
    REAP_JOBS = 1000,  // in one transaction
    SWEEP_JOBS = 100,  // in one transaction
    SWEEP_ROWS = 2000,
    EVICT_JOBS = 1000,
    RECOUNT_AFTER_US = 1000000,  // other processes store results too
    JUMP_MS = 60000,             // more than clocks drift apart between two sweeps
};

// So long a wall clock that was set forward has to stay there until sweeps believe it: a mistake is
// noticed by then.
static const int64_t believe_after_us = INT64_C(3600) * 1000000;

static const char crashed[] = "crashed", restart[] = "restart";

// --- dead owners ---

static int remember(struct reap *reap, const struct reaped *what, const struct job_row *job) {
    struct reaped *reaped = malloc(sizeof *reaped);
    struct live *live = reaped ? live_new(job) : NULL;
    if (!live) {
        free(reaped);
        reap->is_broken = true;
        return STATUS_NO_MEMORY;
    }
    *reaped = *what;
    reaped->live = live;
    reaped->next = reap->first;
    reap->first = reaped;
    return STATUS_OK;
}

static void remember_failed(void *context, const struct job_row *job) {
    remember(context, &(struct reaped){.job_status = JOB_FAILED}, job);
}

static int store_crashed(struct runner *runner, struct store *store, struct job_row *job,
                         struct reap *reap) {
    static const char hint[] = "its process died again and again while it was in flight";
    int64_t now = runner_now_ms(runner);
    struct reaped what = {.job_status = JOB_RUNNING, .is_crashed = true};
    job->attempts += job->deaths;
    struct outcome outcome = {.job_key = job->key,
                              .idx = job->targets_done,
                              .error = {crashed, sizeof crashed - 1},
                              .hint = {hint, sizeof hint - 1},
                              .attempts = job->attempts,
                              .started_at = now,
                              .finished_at = now,
                              .expires_at = now + runner->config.ttl_ms,
                              .is_last = job->targets_done + 1 == job->targets_total};
    // Remembered first: the row's texts live until the store's next call.
    int status = remember(reap, &what, job);
    return status ? status : store->ops->put_outcome(store, &outcome, &reap->first->job_status);
}

static int note_deaths(struct runner *runner, struct store *store, const struct owner_row *owner,
                       struct reap *reap) {
    struct in_flight in_flight[OWNER_MAX_IN_FLIGHT];
    size_t n = owners_read(runner->owners, owner->slot, in_flight, OWNER_MAX_IN_FLIGHT);
    int status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++) {
        struct job_row job;
        status = store->ops->note_death(store, in_flight[i].job_key, in_flight[i].idx, &job);
        if (!status && job.deaths >= runner->config.crash_limit)
            status = store_crashed(runner, store, &job, reap);
        if (status == STATUS_NOT_FOUND)
            status = STATUS_OK;
    }
    return status;
}

// Takes the jobs of a dead owner over, or fails some of them.
static int reap_jobs(struct runner *runner, struct store *store, const struct owner_row *owner,
                     struct reap *reap) {
    int64_t n_jobs;
    int status;
    if (runner->config.resumes) {
        status = note_deaths(runner, store, owner, reap);
        if (!status)
            status = store->ops->release_jobs(store, owner->id, &reap->n_released);
    } else {
        struct mass_failure failure = {.owner = owner->id,
                                       .reason = restart,
                                       .now = runner_now_ms(runner),
                                       .limit = REAP_JOBS,
                                       .visit = remember_failed,
                                       .context = reap};
        status = store->ops->fail_jobs(store, &failure, &n_jobs);
        reap->has_more = n_jobs == REAP_JOBS;
    }
    return reap->is_broken ? fault_set(&store->fault, STATUS_NO_MEMORY, "out of memory") : status;
}

int runner_reap(struct runner *runner, struct store *store, const struct owner_row *owner,
                struct reap *out_reap) {
    struct owner_row known;
    *out_reap = (struct reap){0};
    if (owners_is_alive(runner->owners, owner->id))
        return STATUS_OK;
    // Somebody else may have reaped it since it was seen: then its slot may be another's by now.
    int status = store->ops->next_owner(store, owner->id - 1, &known);
    if (status == STATUS_NOTHING || (!status && known.id != owner->id))
        return STATUS_OK;
    if (!status)
        status = reap_jobs(runner, store, owner, out_reap);
    if (!status)
        owners_inherit(runner->owners, owner->slot);
    return status ? status : store->ops->delete_owner(store, owner->id);
}

// How long its fetches took before their process died is not known.
static void tell_crash_locked(struct runner *runner, const struct live *live) {
    struct event event = {.kind = EVENT_TARGET,
                          .number = live->next_idx,
                          .attempts = live->attempts,
                          .text = crashed,
                          .caller = live->caller.start,
                          .class_name = live->class_name.start};
    memcpy(event.job_id, live->id, JOB_ID_SIZE);
    runner->figures.targets_failed++;
    events_add(runner->events, &event);
}

void runner_tell_reap_locked(struct runner *runner, struct reap *reap) {
    for (const struct reaped *reaped = reap->first; reaped; reaped = reaped->next) {
        const struct live *live = reaped->live;
        if (reaped->is_crashed)
            tell_crash_locked(runner, live);
        if (!job_is_live(reaped->job_status))
            runner_tell_end_locked(runner, live, reaped->job_status,
                                   reaped->is_crashed ? NULL : restart,
                                   runner_job_seconds(runner, live));
    }
    runner_drop_reap(reap);
}

void runner_drop_reap(struct reap *reap) {
    while (reap->first) {
        struct reaped *reaped = reap->first;
        reap->first = reaped->next;
        live_free(reaped->live);
        free(reaped);
    }
}

// --- lapsed leases ---

// The moment by which sweeps go. A dropped job does not come back when the clock does, so a jump
// forward counts only once it has lasted; one back counts at once.
static int64_t sweep_now_ms(struct runner *runner) {
    int64_t now_us = runner_now_us(runner), now_ms = runner_now_ms(runner);
    int64_t offset_ms = now_ms - now_us / 1000;
    bool is_ahead = offset_ms > runner->wall_offset_ms + JUMP_MS;
    if (is_ahead && !runner->jump_seen_at_us)
        runner->jump_seen_at_us = now_us;
    if (is_ahead && now_us - runner->jump_seen_at_us < believe_after_us)
        return now_us / 1000 + runner->wall_offset_ms;
    runner->wall_offset_ms = offset_ms;
    runner->jump_seen_at_us = 0;
    return now_ms;
}

int runner_sweep(struct runner *runner, struct store *store, bool *out_has_more) {
    int64_t n_dropped;
    *out_has_more = false;
    int64_t before = sweep_now_ms(runner) - SWEEP_GRACE_MS;
    int status = store->ops->drop_expired(store, before, SWEEP_JOBS, &n_dropped);
    int cleared = status ? status : store->ops->clear_dropped(store, SWEEP_ROWS);
    if (cleared && cleared != STATUS_NOTHING)
        return cleared;
    int shrunk = store->ops->shrink(store);
    *out_has_more = !cleared || !shrunk;
    return shrunk == STATUS_NOTHING ? STATUS_OK : shrunk;
}

int runner_prove(struct runner *runner, struct store *store) {
    struct owner_row owner;
    int status = store->ops->insert_owner(store, runner->pid, runner_now_ms(runner), &owner);
    return status ? status : store->ops->delete_owner(store, owner.id);
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
