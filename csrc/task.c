// SPDX-License-Identifier: MIT
//
// One allocation for what a task shows; buffers for its verdict.

#include "task.h"

#include "json.h"

#include <stdlib.h>
#include <string.h>

static const char no_memory[] = "out of memory";

static const char *put(char **place, const char *bytes, size_t len) {
    char *start = *place;
    memcpy(start, bytes, len);
    start[len] = '\0';
    *place += len + 1;
    return start;
}

struct task *task_new(const struct task_source *source) {
    const struct target *target = &source->target;
    size_t size = sizeof(struct task) + source->caller.len + source->class_name.len +
                  target->url_len + target->options_len + 4;
    struct task *task = malloc(size);
    if (!task)
        return NULL;
    memset(task, 0, sizeof *task);
    char *place = (char *)(task + 1);
    task->caller.start = put(&place, source->caller.start, source->caller.len);
    task->caller.len = source->caller.len;
    task->class_name.start = put(&place, source->class_name.start, source->class_name.len);
    task->class_name.len = source->class_name.len;
    task->target.url = put(&place, target->url, target->url_len);
    task->target.url_len = target->url_len;
    task->target.options = put(&place, target->options, target->options_len);
    task->target.options_len = target->options_len;
    memcpy(task->job_id, source->job_id, JOB_ID_SIZE);
    return task;
}

void task_free(struct task *task) {
    if (!task)
        return;
    buffer_fini(&task->content);
    buffer_fini(&task->meta);
    buffer_fini(&task->error);
    buffer_fini(&task->hint);
    buffer_fini(&task->trace);
    free(task);
}

static void clear(struct task *task) {
    task->verdict = VERDICT_NONE;
    task->has_hint = task->is_patient = false;
    buffer_fini(&task->content);
    buffer_fini(&task->meta);
    buffer_fini(&task->error);
    buffer_fini(&task->hint);
}

void task_succeed(struct task *task, struct bytes content, struct bytes meta) {
    clear(task);
    buffer_add(&task->content, content.start, content.len);
    buffer_add(&task->meta, meta.start, meta.len);
    task->verdict = VERDICT_DONE;
    if (task->content.is_broken || task->meta.is_broken)
        task_fail_with(task, no_memory, NULL);
}

void task_fail(struct task *task, struct bytes error, struct bytes hint) {
    clear(task);
    task->verdict = VERDICT_FAILED;
    json_clean_utf8(&task->error, error.start, error.len, TASK_MAX_TEXT);
    if (hint.start)
        json_clean_utf8(&task->hint, hint.start, hint.len, TASK_MAX_TEXT);
    task->has_hint = hint.start && !task->hint.is_broken;
}

struct bytes task_error(const struct task *task) {
    const struct buffer *error = &task->error;
    if (error->is_broken)
        return (struct bytes){no_memory, sizeof no_memory - 1};
    return (struct bytes){error->bytes ? error->bytes : "", error->len};
}

void task_fail_with(struct task *task, const char *error, const char *hint) {
    struct bytes error_bytes = {error, strlen(error)};
    struct bytes hint_bytes = {hint, hint ? strlen(hint) : 0};
    task_fail(task, error_bytes, hint_bytes);
}

void task_postpone(struct task *task, struct bytes message, int64_t wait_ms, bool is_patient) {
    task_fail(task, message, (struct bytes){NULL, 0});
    task->verdict = VERDICT_LATER;
    task->wait_ms = wait_ms;
    task->is_patient = is_patient;
}
