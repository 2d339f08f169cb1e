// SPDX-License-Identifier: MIT
//
// A target that was handed out, and the verdict that comes back for it. Owns copies of all it
// shows, so that it outlives the job's place in memory. Knows no store and no thread; a task has
// one holder at a time.

#ifndef BATCH_TASK_H
#define BATCH_TASK_H

#include "buffer.h"
#include "commit.h"
#include "job.h"
#include "targets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TASK_MAX_TEXT = 4096 };  // bytes of an error or a hint that are stored

enum verdict {
    VERDICT_NONE,  // dropped: the target stays pending
    VERDICT_DONE,
    VERDICT_FAILED,
    VERDICT_LATER,  // busy: try again
};

struct live;
struct hand;

struct task {
    struct commit_item item;  // its outcome on the way to the store
    struct runner *runner;
    struct live *job;
    struct hand *hand;  // NULL: the program itself holds it
    char job_id[JOB_ID_SIZE];
    int64_t job_key;
    struct bytes caller;
    struct bytes class_name;
    struct target target;
    int64_t idx;
    int64_t attempt;        // from 1
    int64_t started_at_ms;  // wall clock
    int64_t started_us;     // monotonic
    int64_t deadline_ms;    // wall clock
    int64_t deadline_us;    // monotonic
    size_t place;           // in the owner's register
    bool is_last;

    enum verdict verdict;
    struct buffer content;
    struct buffer meta;  // JSON
    struct buffer error;
    struct buffer hint;
    struct buffer trace;  // for the log: what was raised, and where
    bool has_hint;
    bool is_patient;
    int64_t wait_ms;  // VERDICT_LATER; -1: the runner's retry_wait
    // Filled while it is stored:
    int64_t n_unstored_bytes;  // it counts for so much of what waits
    struct outcome outcome;
    int job_status;
    int64_t n_evicted;
    int64_t span_us;
};

// What a task shows of its job, copied by task_new.
struct task_source {
    const char *job_id;
    struct bytes caller;
    struct bytes class_name;
    struct target target;
};

// Returns NULL when memory ran out.
struct task *task_new(const struct task_source *source);
void task_free(struct task *task);

// Each of these sets the verdict; the last one counts. Texts are cleaned to UTF-8 and cut. When
// memory runs out the verdict is a failure that says so. Meta is JSON, or absent.
void task_succeed(struct task *task, struct bytes content, struct bytes meta);
void task_fail(struct task *task, struct bytes error, struct bytes hint);
void task_postpone(struct task *task, struct bytes message, int64_t wait_ms, bool is_patient);

// task_fail with texts of our own.
void task_fail_with(struct task *task, const char *error, const char *hint);

// The text of a failure, which lives as long as the task: that there was no memory for its own one
// is said without any.
struct bytes task_error(const struct task *task);

#endif
