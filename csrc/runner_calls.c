// SPDX-License-Identifier: MIT
//
// What programs ask of a runner: submit, cancel, touch. Each is one item in the commit queue, which
// the caller waits for, or which is answered by an event: for event loops.

#include "runner_state.h"

#include "canonical.h"

#include <stdlib.h>
#include <string.h>

// Let commit_run's item be found again from inside its callbacks.
struct submission {
    struct commit_item item;  // first
    struct runner *runner;
    struct new_job job;
    struct live *live;  // NULL: a client's, or for others
    // The answer, which is the known job's or that of the new one. Apart from job, for a try that
    // fails may have found a known job that is gone at the next one.
    char id[JOB_ID_SIZE];
    int64_t expires_at;
    int job_status;
    bool is_reused;
};

struct request {
    struct commit_item item;  // first
    struct runner *runner;
    char id[JOB_ID_SIZE];
    int64_t key;
    struct live *orphan;  // cancelled, and no runner's: its end is told here
    bool is_others;       // another runner has it
};

// One of these that no thread waits for, with all that it needs until its end.
struct call {
    union {
        struct commit_item item;  // first in both
        struct submission submission;
        struct request request;
    } of;
    struct runner *runner;
    void (*settle_locked)(struct commit_item *item);  // NULL: nothing to do
    struct event *answer;                             // with room for a sentence behind it
    struct fault fault;
    struct targets targets;
    bool is_submit;
    char texts[];  // caller and class
};

// --- submit ---

static int admit(struct submission *submission, struct store *store) {
    const struct new_job *job = &submission->job;
    struct load load = {.targets = (int64_t)job->targets->count};
    const struct caps *caps = &submission->runner->config.caps;
    int status = store->ops->count_live(store, &load.total_jobs);
    // Below its cap even if all of them were the caller's: not counted, which a high cap would make
    // slower with each job.
    if (!status && load.total_jobs >= caps->jobs_per_caller)
        status = store->ops->count_live_of(store, job->caller, &load.caller_jobs);
    if (status)
        return status;
    submission->item.status = caps_admit(caps, &load);
    return STATUS_OK;
}

static void set_answer(struct submission *submission, const char *id, int64_t expires_at,
                       int job_status) {
    memcpy(submission->id, id, JOB_ID_SIZE);
    submission->expires_at = expires_at;
    submission->job_status = job_status;
}

static int apply_submit(struct commit_item *item, struct store *store) {
    struct submission *submission = (struct submission *)item;
    const struct new_job *job = &submission->job;
    struct job_row known;
    int status = store->ops->find_job(store, job->caller, job->idem_key, job->now, &known);
    submission->is_reused = status == STATUS_OK;
    if (!status) {
        set_answer(submission, known.id, known.expires_at, known.status);
        return STATUS_OK;
    }
    if (status == STATUS_NOT_FOUND)
        status = admit(submission, store);
    if (status || item->status)
        return status;
    int64_t key;
    status = store->ops->insert_job(store, job, &key);
    if (!status && submission->live)
        submission->live->key = key;
    set_answer(submission, job->id, job->expires_at, JOB_QUEUED);
    return status;
}

static void submit_done_locked(struct commit_item *item) {
    struct submission *submission = (struct submission *)item;
    struct runner *runner = submission->runner;
    if (item->status || submission->is_reused)
        return;
    runner->is_to_ring |= !submission->live;
    if (!submission->live)
        return;
    // A hand is free for it: it starts without a read. A job that has to wait keeps no inputs.
    if (runner->workers && workers_idle(runner->workers) > 0)
        live_prime(submission->live, submission->job.targets);
    runner_adopt_locked(runner, submission->live);
    submission->live = NULL;
}

static int prepare_submit(struct submission *submission, const struct submit *submit,
                          struct fault *fault) {
    struct runner *runner = submission->runner;
    struct new_job *job = &submission->job;
    job->caller = submit->caller;
    job->class_name = submit->class_name;
    job->targets = submit->targets;
    job->owner = runner->owner.id && !runner_leaves_to_others(runner) ? runner->owner.id : 0;
    job->now = runner_now_ms(runner);
    job->expires_at = job->now + runner->config.ttl_ms;
    int status =
        canonical_key(submit->caller.start, submit->caller.len, submit->targets, job->idem_key);
    if (status)
        return fault_set(fault, status, "%s",
                         status == STATUS_STORE ? "the targets' temporary file cannot be read"
                                                : status_message(status));
    if (job_id_make(job->now, job->id))
        return fault_set(fault, STATUS_STORE, "cannot make an id: the system has no randomness");
    if (!job->owner)
        return STATUS_OK;
    struct job_row row = {.caller = submit->caller,
                          .class_name = submit->class_name,
                          .targets_total = (int64_t)submit->targets->count,
                          .created_at = job->now};
    memcpy(row.id, job->id, JOB_ID_SIZE);
    submission->live = live_new(&row);
    if (!submission->live)
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    submission->live->submitted_us = runner_now_us(runner);
    // Before anybody can know it, so that no cancel is missed.
    submission->live->seen_announced = owners_announced(runner->owners);
    return STATUS_OK;
}

static int refuse_closed(struct runner *runner, struct fault *fault) {
    return runner->is_closing ? fault_set(fault, STATUS_CLOSED, "%s", status_message(STATUS_CLOSED))
                              : STATUS_OK;
}

// A failure of the store has put its own sentence.
static bool has_sentence(int status) {
    return status == STATUS_STORE || status == STATUS_LOCKED || status == STATUS_NO_MEMORY;
}

int runner_submit(struct runner *runner, const struct submit *submit, char out_id[JOB_ID_SIZE],
                  bool *out_reused, struct fault *fault) {
    struct submission submission = {
        .item = {.apply = apply_submit, .done = submit_done_locked, .fault = fault},
        .runner = runner};
    out_id[0] = '\0';
    *out_reused = false;
    int status = refuse_closed(runner, fault);
    if (!status)
        status = prepare_submit(&submission, submit, fault);
    if (status)
        return status;
    status = commit_run(runner->queue, &submission.item);
    if (submission.live)
        live_free(submission.live);
    if (!has_sentence(status))
        fault_set(fault, status, "%s", status_message(status));
    if (!status) {
        memcpy(out_id, submission.id, JOB_ID_SIZE);
        *out_reused = submission.is_reused;
    }
    return status;
}

// --- cancel, touch ---

// Whether a runner has the job and tells its end.
static bool is_somebodys(struct runner *runner, const struct job_row *job) {
    if (job->owner && job->owner == runner->owner.id)
        return true;
    return job->owner && owners_is_alive(runner->owners, job->owner);
}

static void drop_orphan(struct request *request) {
    if (request->orphan)
        live_free(request->orphan);
    request->orphan = NULL;
}

static int apply_cancel(struct commit_item *item, struct store *store) {
    struct request *request = (struct request *)item;
    struct runner *runner = request->runner;
    struct job_row job;
    drop_orphan(request);  // of a try that failed
    int status = store->ops->cancel_job(store, request->id, runner_now_ms(runner), &job);
    if (status == STATUS_NOT_FOUND) {
        item->status = status;
        return STATUS_OK;
    }
    if (status)
        return status;
    request->key = job.key;
    request->is_others = job.owner != runner->owner.id;
    if (is_somebodys(runner, &job))
        return STATUS_OK;
    request->orphan = live_new(&job);
    return request->orphan ? STATUS_OK
                           : fault_set(&store->fault, STATUS_NO_MEMORY, "out of memory");
}

static void cancel_done_locked(struct commit_item *item) {
    struct request *request = (struct request *)item;
    struct runner *runner = request->runner;
    if (item->status)
        return;
    owners_announce(runner->owners);
    runner->is_to_ring |= request->is_others;
    runner_mark_cancelled_locked(runner, request->key);
    if (request->orphan)
        runner_tell_end_locked(runner, request->orphan, JOB_CANCELLED, NULL, -1);
    runner_announce_change_locked(runner);
}

static int apply_touch(struct commit_item *item, struct store *store) {
    struct request *request = (struct request *)item;
    int64_t now = runner_now_ms(request->runner);
    int status =
        store->ops->touch_job(store, request->id, now, now + request->runner->config.ttl_ms);
    if (status == STATUS_NOT_FOUND) {
        item->status = status;
        status = STATUS_OK;
    }
    return status;
}

static int run_request(struct runner *runner, struct request *request, const char *id) {
    if (!job_id_is_valid(id))
        return STATUS_NOT_FOUND;
    request->runner = runner;
    memcpy(request->id, id, JOB_ID_SIZE);
    return commit_run(runner->queue, &request->item);
}

int runner_cancel(struct runner *runner, const char *id, struct fault *fault) {
    struct request request = {.item = {.apply = apply_cancel,
                                       .done = cancel_done_locked,
                                       .fault = fault,
                                       .may_use_reserve = true}};
    int status = run_request(runner, &request, id);
    drop_orphan(&request);
    return status;
}

int runner_touch(struct runner *runner, const char *id, struct fault *fault) {
    struct request request = {.item = {.apply = apply_touch, .fault = fault}};
    return run_request(runner, &request, id);
}

static void free_request(struct commit_item *item) {
    free(item);
}

void runner_touch_soon(struct runner *runner, const char *id) {
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return;
    request->item.apply = apply_touch;
    request->item.done = free_request;
    request->runner = runner;
    memcpy(request->id, id, JOB_ID_SIZE);
    commit_leave(runner->queue, &request->item, COMMIT_WITH_NEXT);
}

// --- answered later ---

static void free_call(struct call *call) {
    if (call->is_submit && call->of.submission.live)
        live_free(call->of.submission.live);
    if (!call->is_submit)
        drop_orphan(&call->of.request);
    targets_fini(&call->targets);
    free(call->answer);
    free(call);
}

static void fill_answer(struct call *call) {
    struct event *answer = call->answer;
    const struct submission *submission = &call->of.submission;
    int status = call->of.item.status;
    answer->status = status;
    if (status) {
        const char *text = has_sentence(status) ? call->fault.text : status_message(status);
        answer->text = strcpy((char *)(answer + 1), text);
    } else if (call->is_submit) {
        memcpy(answer->job_id, submission->id, JOB_ID_SIZE);
        answer->job_status = submission->job_status;
        answer->is_reused = submission->is_reused;
        answer->expires_at = submission->expires_at;
    }
}

static void answer_locked(struct commit_item *item) {
    struct call *call = (struct call *)item;
    if (call->settle_locked)
        call->settle_locked(item);
    fill_answer(call);
    events_put(call->runner->events, call->answer);
    call->answer = NULL;
    free_call(call);
}

static struct call *new_call(struct runner *runner, int64_t ticket, size_t n_text_bytes) {
    struct call *call = calloc(1, sizeof *call + n_text_bytes);
    if (!call)
        return NULL;
    targets_init(&call->targets);
    call->runner = runner;
    call->of.item.done = answer_locked;
    call->of.item.fault = &call->fault;
    call->answer = calloc(1, sizeof *call->answer + sizeof call->fault.text);
    if (!call->answer) {
        free_call(call);
        return NULL;
    }
    call->answer->kind = EVENT_ANSWER;
    call->answer->number = ticket;
    return call;
}

static struct bytes keep_text(char *place, struct bytes text) {
    if (text.len)
        memcpy(place, text.start, text.len);
    return (struct bytes){place, text.len};
}

int runner_begin_submit(struct runner *runner, const struct submit *submit, struct targets *targets,
                        int64_t ticket, struct fault *fault) {
    struct submit kept;
    int status = refuse_closed(runner, fault);
    if (status)
        return status;
    struct call *call = new_call(runner, ticket, submit->caller.len + submit->class_name.len);
    if (!call)
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    call->is_submit = true;
    call->targets = *targets;
    targets_init(targets);
    kept.caller = keep_text(call->texts, submit->caller);
    kept.class_name = keep_text(call->texts + kept.caller.len, submit->class_name);
    kept.targets = &call->targets;
    call->settle_locked = submit_done_locked;
    call->of.item.apply = apply_submit;
    call->of.submission.runner = runner;
    status = prepare_submit(&call->of.submission, &kept, fault);
    if (status)
        free_call(call);
    else
        commit_leave(runner->queue, &call->of.item, COMMIT_TO_ANSWER);
    return status;
}

static int begin_request(struct runner *runner, const char *id, int64_t ticket, bool is_cancel) {
    if (!job_id_is_valid(id))
        return STATUS_NOT_FOUND;
    struct call *call = new_call(runner, ticket, 0);
    if (!call)
        return STATUS_NO_MEMORY;
    call->settle_locked = is_cancel ? cancel_done_locked : NULL;
    call->of.item.apply = is_cancel ? apply_cancel : apply_touch;
    call->of.item.may_use_reserve = is_cancel;
    call->of.request.runner = runner;
    memcpy(call->of.request.id, id, JOB_ID_SIZE);
    commit_leave(runner->queue, &call->of.item, COMMIT_TO_ANSWER);
    return STATUS_OK;
}

int runner_begin_cancel(struct runner *runner, const char *id, int64_t ticket) {
    return begin_request(runner, id, ticket, true);
}

int runner_begin_touch(struct runner *runner, const char *id, int64_t ticket) {
    return begin_request(runner, id, ticket, false);
}
