// SPDX-License-Identifier: MIT
//
// The calls of a runner that read. Rows become tables inside a protected call: an error of Lua
// there, such as running out of memory, must not lose the connection that was lent.

#include "lrunner.h"

#include "largs.h"
#include "lrows.h"

#include <math.h>
#include <string.h>
#include <stdlib.h>

enum { PAGE_BYTES = 4 * 1024 * 1024 };  // of contents in one page of results

struct reading {
    struct runner *runner;
    struct store *store;
    int status;  // of the store
    const char *id;
    struct job_filter filter;
    struct target_range range;
    int64_t next_idx;       // of the job's target that is pending and may have come back busy
    int64_t next_attempts;  // so often
    int64_t after_seq;
    bool is_page;  // may end early
};

// Calls push(reading) in protected mode with a connection. Returns the number of values it left on
// the stack, or pushes the refusal.
static int read_protected(lua_State *L, struct reading *reading, lua_CFunction push) {
    struct fault fault;
    int base = lua_gettop(L);
    lua_pushcfunction(L, push);  // may raise in LuaJIT: before the connection is lent
    lua_pushlightuserdata(L, reading);
    int status = runner_begin_read(reading->runner, &reading->store, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    int failed = lua_pcall(L, 1, LUA_MULTRET, 0);
    bool has_sentence = reading->status != STATUS_NOT_FOUND && reading->status != STATUS_EXPIRED;
    fault_set(&fault, reading->status, "%s",
              has_sentence ? reading->store->fault.text : status_message(reading->status));
    runner_end_read(reading->runner, reading->store);
    if (failed)
        return lua_error(L);
    if (reading->status)
        return largs_refuse(L, reading->status, fault.text);
    return lua_gettop(L) - base;
}

// Pushes a list of what the cursor gives. Closing it is left to the end of the read, so that an
// error on the way loses nothing.
static void push_targets(lua_State *L, struct reading *reading, struct store_cursor *cursor) {
    const struct store_ops *ops = reading->store->ops;
    struct target_row row;
    size_t n_bytes = 0;
    lua_newtable(L);
    int status = STATUS_OK;
    for (int i = 1; !(reading->is_page && n_bytes > PAGE_BYTES); i++) {
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
    reading->status = runner_read_job(reading->runner, reading->store, reading->id, &job);
    if (reading->status)
        return 0;
    lrows_push_job(L, &job);
    reading->range.job_key = job.key;
    reading->next_idx = job.targets_done;
    reading->next_attempts = job.attempts;
    reading->status = reading->store->ops->list_targets(reading->store, &reading->range, &cursor);
    if (!reading->status)
        push_targets(L, reading, cursor);
    return reading->status ? 0 : 2;
}

static int64_t count_arg(lua_State *L, int index, int64_t if_absent) {
    if (lua_isnoneornil(L, index))
        return if_absent;
    return largs_check_whole(L, index, 1);
}

// status(id, from, limit, has_content, has_outcomes_only, is_page) → job, targets
static int method_status(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct reading reading = {.runner = box->runner, .id = lrunner_check_id(L, 2)};
    reading.range.from = count_arg(L, 3, 0);
    reading.range.limit = count_arg(L, 4, INT64_MAX);
    reading.range.has_content = lua_toboolean(L, 5);
    reading.range.has_outcomes = lua_toboolean(L, 6);
    reading.is_page = lua_toboolean(L, 7);
    return read_protected(L, &reading, push_status);
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
    struct lrunner *box = lrunner_check(L, 1);
    struct reading reading = {.runner = box->runner};
    reading.filter.caller.start = luaL_optlstring(L, 2, NULL, &reading.filter.caller.len);
    const char *status = luaL_optstring(L, 3, NULL);
    reading.filter.status = status ? job_status_parse(status) : -1;
    reading.filter.limit = count_arg(L, 4, 100);
    reading.filter.before = lua_isnoneornil(L, 5) ? NULL : lrunner_check_id(L, 5);
    return read_protected(L, &reading, push_jobs);
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
    reading.after_seq = count_arg(L, 2, 0);
    reading.range.limit = count_arg(L, 3, 100);
    reading.range.has_content = true;
    return read_protected(L, &reading, push_changes);
}

static int push_job(lua_State *L) {
    struct reading *reading = lua_touserdata(L, 1);
    struct job_row job;
    reading->status = runner_read_job(reading->runner, reading->store, reading->id, &job);
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
    return read_protected(L, &reading, push_job);
}

// --- stats ---

static void set_counter(lua_State *L, const char *name, uint64_t value) {
    lrows_set_integer(L, name, (int64_t)value);
}

static void push_bucket(lua_State *L, double at_most, uint64_t count) {
    lua_createtable(L, 0, 2);
    lua_pushnumber(L, at_most);
    lua_setfield(L, -2, "le");
    set_counter(L, "count", count);
}

// Buckets are cumulated, as Prometheus counts them.
static void set_histogram(lua_State *L, const char *name, const struct histogram *histogram) {
    const struct histogram_bounds *bounds = histogram->bounds;
    uint64_t count = 0;
    lua_createtable(L, 0, 3);
    set_counter(L, "count", histogram->count);
    lua_pushnumber(L, histogram->sum);
    lua_setfield(L, -2, "sum");
    lua_createtable(L, (int)bounds->count + 1, 0);
    for (size_t i = 0; i <= bounds->count; i++) {
        count += histogram->buckets[i];
        push_bucket(L, i < bounds->count ? bounds->at_most[i] : HUGE_VAL, count);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "buckets");
    lua_setfield(L, -2, name);
}

static void set_counters(lua_State *L, const struct figures *figures) {
    lua_createtable(L, 0, 5);
    set_counter(L, "done", figures->jobs_done);
    set_counter(L, "partial", figures->jobs_partial);
    set_counter(L, "failed", figures->jobs_failed);
    set_counter(L, "cancelled", figures->jobs_cancelled);
    set_counter(L, "restart", figures->jobs_restart);
    lua_setfield(L, -2, "jobs");
    lua_createtable(L, 0, 2);
    set_counter(L, "done", figures->targets_done);
    set_counter(L, "failed", figures->targets_failed);
    lua_setfield(L, -2, "targets");
    set_counter(L, "retries", figures->retries);
    set_counter(L, "evicted_jobs", figures->evicted_jobs);
    set_counter(L, "abandoned_threads", figures->abandoned_threads);
    set_histogram(L, "job_seconds", &figures->job_seconds);
    set_histogram(L, "target_seconds", &figures->target_seconds);
    set_histogram(L, "result_bytes", &figures->result_bytes);
    set_histogram(L, "commit_seconds", &figures->commit_seconds);
    set_histogram(L, "commit_targets", &figures->commit_targets);
}

static int method_stats(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct runner_stats stats;
    // A store that cannot be read leaves its gauges at 0 and says "not healthy".
    runner_stats(box->runner, &stats, NULL);
    int64_t oldest = stats.gauges.oldest_created_at;
    int64_t age_ms = oldest ? clock_wall_ms(runner_config(box->runner)->clock) - oldest : 0;
    lua_createtable(L, 0, 16);
    lrows_set_integer(L, "live_jobs", stats.gauges.live_jobs);
    lrows_set_integer(L, "inflight_targets", stats.inflight_targets);
    lrows_set_integer(L, "waiting_targets", stats.waiting_targets);
    lua_pushnumber(L, age_ms > 0 ? (double)age_ms / 1e3 : 0);
    lua_setfield(L, -2, "oldest_pending_seconds");
    lrows_set_integer(L, "store_bytes", stats.gauges.stored_bytes);
    lua_pushboolean(L, stats.is_healthy);
    lua_setfield(L, -2, "healthy");
    set_counters(L, &stats.figures);
    set_counter(L, "events_dropped", stats.events_dropped);
    return 1;
}

// --- events ---

const char *const lrunner_event_names[EVENT_N_KINDS] = {"depth", "inflight",    "target",
                                                        "job",   "job_seconds", "log"};

static struct bytes of_text(const char *text) {
    return (struct bytes){text, text ? strlen(text) : 0};
}

static int push_event(lua_State *L) {
    const struct event *event = lua_touserdata(L, 1);
    bool is_log = event->kind == EVENT_LOG, is_target = event->kind == EVENT_TARGET;
    bool is_job = event->kind == EVENT_JOB || event->kind == EVENT_JOB_SECONDS;
    lua_createtable(L, 0, 10);
    lrows_set_text(L, "kind", of_text(lrunner_event_names[event->kind]));
    lrows_set_integer(L, "number", event->number);
    lua_pushnumber(L, event->seconds);
    lua_setfield(L, -2, "seconds");
    lrows_set_integer(L, "bytes", event->bytes);
    lrows_set_text(L, "text", of_text(event->text));
    lrows_set_text(L, "detail", of_text(event->detail));
    if (is_log)
        lrows_set_text(L, "level", of_text(runner_log_level_name((int)event->number)));
    if (is_job)
        lrows_set_text(L, "status", of_text(job_status_name(event->job_status)));
    lua_createtable(L, 0, 5);
    if (event->job_id[0])
        lrows_set_text(L, "job", of_text(event->job_id));
    if (is_target || (is_log && event->job_id[0]))
        lrows_set_integer(L, "idx", is_log ? event->bytes : event->number);
    if (is_target)
        lrows_set_integer(L, "attempts", event->attempts);
    if (is_job)
        lrows_set_integer(L, "targets_total", event->number);
    if (is_job)
        lrows_set_text(L, "error", of_text(event->text));
    lrows_set_text(L, "caller", of_text(event->caller));
    lrows_set_text(L, "class", of_text(event->class_name));
    lua_setfield(L, -2, "info");
    return 1;
}

// next_event() → a table, or nil
static int method_next_event(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    lua_settop(L, 1);
    lua_pushcfunction(L, push_event);
    struct event *event = events_take(runner_events(box->runner));
    if (!event)
        return 0;
    lua_pushlightuserdata(L, event);
    int failed = lua_pcall(L, 1, 1, 0);
    free(event);
    return failed ? lua_error(L) : 1;
}

static int method_fd(lua_State *L) {
    lua_pushinteger(L, events_fd(runner_events(lrunner_check(L, 1)->runner)));
    return 1;
}

const luaL_Reg lrunner_read_methods[] = {
    {"status", method_status}, {"jobs", method_jobs},
    {"wait", method_wait},     {"changes", method_changes},
    {"stats", method_stats},   {"next_event", method_next_event},
    {"fd", method_fd},         {NULL, NULL},
};
