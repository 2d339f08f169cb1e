// SPDX-License-Identifier: MIT
//
// The calls of a runner that read jobs and targets as tables.

#include "lrunner.h"

#include "largs.h"
#include "lreading.h"
#include "lrows.h"

// Pushes a list of what the cursor gives. Closing it is left to the end of the read, so that an
// error on the way loses nothing.
static void push_targets(lua_State *L, struct reading *reading, struct store_cursor *cursor) {
    const struct store_ops *ops = reading->store->ops;
    struct target_row row;
    size_t n_bytes = 0;
    lua_newtable(L);
    int status = STATUS_OK;
    for (int i = 1; !(reading->is_page && n_bytes > LREADING_PAGE_BYTES); i++) {
        status = ops->next_target(cursor, &row);
        if (status)
            break;
        n_bytes += row.outcome.content.len;
        if (!row.seq && row.idx == reading->next_idx)
            row.outcome.attempts = reading->next_attempts;
        lrows_push_target(L, &row, reading->range.has_content);
        lua_rawseti(L, -2, i);
    }
    if (status != STATUS_NOTHING)
        reading->status = status;
}

static int push_status(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    struct job_row job;
    struct store_cursor *cursor;
    reading->status =
        runner_read_job(reading->runner, reading->store, reading->id, reading->caller, &job);
    if (reading->status)
        return 0;
    lrows_push_job(L, &job);
    reading->range.job_key = job.key;
    reading->range.targets_total = job.targets_total;
    reading->next_idx = job.targets_done;
    reading->next_attempts = job.attempts;
    reading->status = reading->store->ops->list_targets(reading->store, &reading->range, &cursor);
    if (!reading->status)
        push_targets(L, reading, cursor);
    return reading->status ? 0 : 2;
}

// status(id, from, limit, has_content, has_outcomes_only, is_page) → job, targets
static int method_status(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct reading reading = {.runner = box->runner, .id = lrunner_check_id(L, 2)};
    reading.range.from = lreading_count(L, 3, 0);
    reading.range.limit = lreading_count(L, 4, INT64_MAX);
    reading.range.has_content = lua_toboolean(L, 5);
    reading.range.has_outcomes = lua_toboolean(L, 6);
    reading.is_page = lua_toboolean(L, 7);
    return lreading_run(L, &reading, push_status);
}

static int push_jobs(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    const struct store_ops *ops = reading->store->ops;
    struct store_cursor *cursor;
    struct job_row job;
    lua_newtable(L);
    reading->status = ops->list_jobs(reading->store, &reading->filter, &cursor);
    for (int i = 1; !reading->status; i++) {
        reading->status = ops->next_job(cursor, &job);
        if (reading->status)
            break;
        runner_refresh_job(reading->runner, &job);
        lrows_push_job(L, &job);
        lua_rawseti(L, -2, i);
    }
    if (reading->status == STATUS_NOTHING)
        reading->status = STATUS_OK;
    return 1;
}

// jobs(caller, status, limit, before) → list
static int method_jobs(lua_State *L) {
    struct reading reading = {.runner = lrunner_check(L, 1)->runner};
    lreading_filter(L, &reading.filter);
    return lreading_run(L, &reading, push_jobs);
}

static int push_changes(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    const struct store_ops *ops = reading->store->ops;
    struct store_cursor *cursor;
    reading->status =
        ops->list_changes(reading->store, reading->after_seq, reading->range.limit, &cursor);
    if (!reading->status)
        push_targets(L, reading, cursor);
    return reading->status ? 0 : 1;
}

// changes(after, limit) → list of targets with job and seq
static int method_changes(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct reading reading = {.runner = box->runner, .is_page = true};
    reading.after_seq = lreading_count(L, 2, 0);
    reading.range.limit = lreading_count(L, 3, 100);
    reading.range.has_content = true;
    return lreading_run(L, &reading, push_changes);
}

static int push_job(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    struct job_row job;
    reading->status =
        runner_read_job(reading->runner, reading->store, reading->id, reading->caller, &job);
    if (reading->status)
        return 0;
    lrows_push_job(L, &job);
    return 1;
}

// wait(id, seconds) → job
static int method_wait(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct reading reading = {.runner = box->runner, .id = lrunner_check_id(L, 2)};
    int64_t timeout_ms = largs_opt_span_ms(L, 3);
    struct fault fault = {""};
    int status = runner_wait(box->runner, reading.id, timeout_ms, &fault);
    if (status)
        return largs_refuse(L, status, fault.text[0] ? fault.text : status_message(status));
    return lreading_run(L, &reading, push_job);
}

const luaL_Reg lrunner_read_methods[] = {
    {"status", method_status},   {"jobs", method_jobs}, {"wait", method_wait},
    {"changes", method_changes}, {NULL, NULL},
};
