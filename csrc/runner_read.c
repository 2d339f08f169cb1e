// SPDX-License-Identifier: MIT
//
// Reading jobs, and waiting for their end. Reads go over connections of their own and see what is
// stored; what has not reached the store yet is added from this process's memory.

#include "runner_state.h"

#include <string.h>

int runner_begin_read(struct runner *runner, struct store **out_store, struct fault *fault) {
    return readers_take(runner->readers, out_store, fault);
}

void runner_end_read(struct runner *runner, struct store *store) {
    readers_give(runner->readers, store);
}

void runner_refresh_job(struct runner *runner, struct job_row *job) {
    if (job->status != JOB_QUEUED || !runner->owner.id || job->owner != runner->owner.id)
        return;
    pthread_mutex_lock(&runner->lock);
    struct live *live = live_map_find(&runner->jobs, job->key);
    if (live && live->started_at) {
        job->status = JOB_RUNNING;
        if (!job->started_at)
            job->started_at = live->started_at;
    }
    pthread_mutex_unlock(&runner->lock);
}

static bool is_callers(const struct job_row *job, struct bytes caller) {
    return !caller.start || (caller.len == job->caller.len &&
                             memcmp(caller.start, job->caller.start, caller.len) == 0);
}

int runner_read_job(struct runner *runner, struct store *store, const char *id, struct bytes caller,
                    struct job_row *out_job) {
    if (!job_id_is_valid(id))
        return STATUS_NOT_FOUND;
    int status = store->ops->read_job(store, id, out_job);
    if (status)
        return status;
    if (!is_callers(out_job, caller))
        return STATUS_NOT_FOUND;
    int64_t now = runner_now_ms(runner), ttl = runner->config.ttl_ms;
    runner_refresh_job(runner, out_job);
    if (out_job->expires_at <= now)
        return STATUS_EXPIRED;
    if (now + ttl - out_job->expires_at > ttl / 100 && !runner->is_closing)
        runner_touch_soon(runner, id);
    return STATUS_OK;
}

// Whether the end of a job has been counted and told, if that is this runner's to do.
static bool is_end_told(struct runner *runner, int64_t key) {
    pthread_mutex_lock(&runner->lock);
    const struct live *live = live_map_find(&runner->jobs, key);
    bool is_told = !live || live->is_cancelled;
    pthread_mutex_unlock(&runner->lock);
    return is_told;
}

// Whether there is no more to wait for; 0, or the failure.
static int look_for_end(struct runner *runner, const char *id, bool *out_ended,
                        struct fault *fault) {
    struct store *store;
    struct job_row job;
    *out_ended = false;
    int status = runner_begin_read(runner, &store, fault);
    if (status)
        return status;
    status = runner_read_job(runner, store, id, (struct bytes){0}, &job);
    if (status == STATUS_OK || status == STATUS_EXPIRED)
        *out_ended = !job_is_live(job.status) && is_end_told(runner, job.key);
    else if (status != STATUS_NOT_FOUND)
        fault_set(fault, status, "%s", store->fault.text);
    runner_end_read(runner, store);
    return status == STATUS_EXPIRED && !*out_ended ? STATUS_OK : status;
}

int runner_wait(struct runner *runner, const char *id, int64_t timeout_ms, struct fault *fault) {
    int64_t due_us = timeout_ms < 0 ? INT64_MAX : clock_mono_us(NULL) + timeout_ms * 1000;
    for (;;) {
        bool is_ended;
        pthread_mutex_lock(&runner->lock);
        uint64_t seen = runner->n_changes;
        pthread_mutex_unlock(&runner->lock);
        int status = look_for_end(runner, id, &is_ended, fault);
        if (status || is_ended)
            return status;
        pthread_mutex_lock(&runner->lock);
        int64_t left_us = due_us - clock_mono_us(NULL);
        while (runner->n_changes == seen && left_us > 0 && !runner->is_closing) {
            int64_t nap_us = left_us < 1000000 ? left_us : 1000000;
            threads_wait_until(&runner->changed, &runner->lock, clock_mono_us(NULL) + nap_us);
            left_us = due_us - clock_mono_us(NULL);
        }
        pthread_mutex_unlock(&runner->lock);
        if (left_us <= 0)
            return STATUS_TIMEOUT;
        if (runner->is_closing)
            return STATUS_CLOSED;
    }
}
