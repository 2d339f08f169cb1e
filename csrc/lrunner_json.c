// SPDX-License-Identifier: MIT
//
// The calls of a runner that read for a server: jobs and targets as JSON, in pages, and marks by
// which it sees what has changed.

#include "lrunner.h"

#include "json.h"
#include "lreading.h"
#include "lrows.h"
#include "rows.h"

#include <string.h>

// A stream's page waits in memory, several times over, for a client that is slow to read.
enum { STREAM_PAGE_BYTES = 256 * 1024 };

enum { USUAL_BYTES = 2048 };  // of a job, or a target: most are rendered without growing

// A number that changes with all that waiting for a job is about: its status and its outcomes.
static int64_t job_mark(const struct job_row *job) {
    return job->targets_done * 8 + job->status;
}

static void push_text(lua_State *L, struct reading *reading) {
    if (reading->text.is_broken)
        luaL_error(L, "out of memory");
    lua_pushlstring(L, reading->text.bytes, reading->text.len);
    reading->text.len = 0;
}

// The next target of the range, rendered behind the text.
static int add_target(struct reading *reading, struct store_cursor *cursor, int64_t *out_next) {
    struct target_row row;
    int status = reading->store->ops->next_target(cursor, &row);
    if (status)
        return status;
    if (!row.seq && row.idx == reading->next_idx)
        row.outcome.attempts = reading->next_attempts;
    json_comma(&reading->text);
    rows_add_target(&reading->text, &row, reading->range.has_content);
    *out_next = row.idx + 1;
    return STATUS_OK;
}

// Begins with the job, whose targets the range then means.
static int read_job(struct reading *reading, struct job_row *out_job) {
    int status =
        runner_read_job(reading->runner, reading->store, reading->id, reading->caller, out_job);
    if (status)
        return status;
    buffer_reserve(&reading->text, USUAL_BYTES);
    reading->range.job_key = out_job->key;
    reading->range.targets_total = out_job->targets_total;
    reading->next_idx = out_job->targets_done;
    reading->next_attempts = out_job->attempts;
    return STATUS_OK;
}

static int list_targets(struct reading *reading, struct store_cursor **out_cursor) {
    return reading->store->ops->list_targets(reading->store, &reading->range, out_cursor);
}

// Pushes a list of targets as JSON. out_next: the idx behind the last one.
static void push_target_texts(lua_State *L, struct reading *reading, int64_t *out_next) {
    struct store_cursor *cursor;
    size_t n_bytes = 0, max_bytes = LREADING_PAGE_BYTES;
    if (reading->range.has_outcomes)
        max_bytes = STREAM_PAGE_BYTES;
    lua_newtable(L);
    *out_next = reading->range.from;
    reading->status = list_targets(reading, &cursor);
    for (int i = 1; !reading->status && n_bytes < max_bytes; i++) {
        reading->status = add_target(reading, cursor, out_next);
        if (reading->status)
            break;
        n_bytes += reading->text.len;
        push_text(L, reading);
        lua_rawseti(L, -2, i);
    }
    if (reading->status == STATUS_NOTHING)
        reading->status = STATUS_OK;
}

static int push_json(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    struct job_row job;
    int64_t next;
    reading->status = read_job(reading, &job);
    if (reading->status)
        return 0;
    lua_createtable(L, 0, 6);
    lrows_set_word(L, "status", job_status_name(job.status));
    lrows_set_integer(L, "mark", job_mark(&job));
    lrows_set_integer(L, "targets_done", job.targets_done);
    lrows_set_integer(L, "targets_total", job.targets_total);
    rows_add_job(&reading->text, &job);
    push_text(L, reading);
    lua_setfield(L, -2, "job");
    push_target_texts(L, reading, &next);
    lua_setfield(L, -2, "targets");
    lrows_set_integer(L, "next", next);
    return reading->status ? 0 : 1;
}

// json(id, caller, from, limit, has_content, has_outcomes_only) → table: job and list of targets as
// JSON (at most a page; outcomes only, for a stream, a small one), next idx, and of the job status,
// mark, targets_done, targets_total
static int method_json(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct reading reading = {.runner = box->runner, .id = lrunner_check_id(L, 2)};
    reading.caller.start = luaL_optlstring(L, 3, NULL, &reading.caller.len);
    reading.range.from = lreading_count(L, 4, 0);
    reading.range.limit = lreading_count(L, 5, INT64_MAX);
    reading.range.has_content = lua_toboolean(L, 6);
    reading.range.has_outcomes = lua_toboolean(L, 7);
    return lreading_run(L, &reading, push_json);
}

static void add_words(struct reading *reading, const char *words) {
    buffer_add(&reading->text, words, strlen(words));
}

static int push_page(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    struct store_cursor *cursor;
    struct job_row job;
    int64_t next = reading->range.from;
    reading->status = read_job(reading, &job);
    if (!reading->status)
        reading->status = list_targets(reading, &cursor);
    if (reading->status)
        return 0;
    add_words(reading, "{\"job\":");
    rows_add_job(&reading->text, &job);
    add_words(reading, ",\"targets\":[");
    while (!reading->status && reading->text.len < LREADING_PAGE_BYTES)
        reading->status = add_target(reading, cursor, &next);
    if (reading->status != STATUS_NOTHING && reading->status)
        return 0;
    reading->status = STATUS_OK;
    add_words(reading, "],\"next\":");
    if (next < job.targets_total)
        json_integer(&reading->text, next);
    else
        add_words(reading, "null");
    add_words(reading, "}");
    push_text(L, reading);
    return 1;
}

// page_json(id, caller, from, limit, has_content) → job, a page of targets, and where the next one
// begins, as one text
static int method_page_json(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct reading reading = {.runner = box->runner, .id = lrunner_check_id(L, 2)};
    reading.caller.start = luaL_optlstring(L, 3, NULL, &reading.caller.len);
    reading.range.from = lreading_count(L, 4, 0);
    reading.range.limit = lreading_count(L, 5, INT64_MAX);
    reading.range.has_content = lua_toboolean(L, 6);
    return lreading_run(L, &reading, push_page);
}

static int push_job_texts(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    const struct store_ops *ops = reading->store->ops;
    struct store_cursor *cursor;
    struct job_row job;
    lua_newtable(L);
    lua_newtable(L);
    reading->status = ops->list_jobs(reading->store, &reading->filter, &cursor);
    for (int i = 1; !reading->status; i++) {
        reading->status = ops->next_job(cursor, &job);
        if (reading->status)
            break;
        runner_refresh_job(reading->runner, &job);
        rows_add_job(&reading->text, &job);
        push_text(L, reading);
        lua_rawseti(L, -3, i);
        lua_pushstring(L, job.id);
        lua_rawseti(L, -2, i);
    }
    if (reading->status == STATUS_NOTHING)
        reading->status = STATUS_OK;
    return 2;
}

// jobs_json(caller, status, limit, before) → list of texts, list of ids
static int method_jobs_json(lua_State *L) {
    struct reading reading = {.runner = lrunner_check(L, 1)->runner};
    lreading_filter(L, &reading.filter);
    return lreading_run(L, &reading, push_job_texts);
}

static int push_marks(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    const struct store_ops *ops = reading->store->ops;
    int n_ids = (int)lua_rawlen(L, 2);
    lua_createtable(L, n_ids, 0);
    for (int i = 1; i <= n_ids; i++) {
        struct job_row job;
        lua_rawgeti(L, 2, i);
        int status = ops->read_job(reading->store, luaL_checkstring(L, -1), &job);
        if (status && status != STATUS_NOT_FOUND) {
            reading->status = status;
            return 0;
        }
        if (!status)
            runner_refresh_job(reading->runner, &job);
        lua_pop(L, 1);
        lua_pushinteger(L, status ? -1 : (lua_Integer)job_mark(&job));
        lua_rawseti(L, -2, i);
    }
    return 1;
}

// marks(ids) → list of marks, -1 for a job that is gone
static int method_marks(lua_State *L) {
    struct reading reading = {.runner = lrunner_check(L, 1)->runner, .argument = 2};
    luaL_checktype(L, 2, LUA_TTABLE);
    return lreading_run(L, &reading, push_marks);
}

const luaL_Reg lrunner_json_methods[] = {
    {"json", method_json},
    {"page_json", method_page_json},
    {"jobs_json", method_jobs_json},
    {"marks", method_marks},
    {NULL, NULL},
};
