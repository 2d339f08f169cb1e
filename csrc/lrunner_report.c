// SPDX-License-Identifier: MIT
//
// The calls of a runner that tell what it looks like and what has happened.

#include "lrunner.h"

#include "largs.h"
#include "lrows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

// stats(of_all) → gauges and figures, the figures of all runners on the store if that is wanted
static int method_stats(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct runner_stats stats;
    // A store that cannot be read leaves its gauges at 0 and says "not healthy".
    runner_stats(box->runner, &stats, NULL);
    if (lua_toboolean(L, 2) && runner_figures_of_all(box->runner, &stats.figures))
        stats.has_store = stats.is_healthy = false;
    int64_t oldest = stats.gauges.oldest_created_at;
    int64_t age_ms = oldest ? clock_wall_ms(runner_config(box->runner)->clock) - oldest : 0;
    lua_createtable(L, 0, 16);
    lrows_set_integer(L, "live_jobs", stats.gauges.live_jobs);
    lrows_set_integer(L, "inflight_targets", stats.inflight_targets);
    lrows_set_integer(L, "waiting_targets", stats.waiting_targets);
    lua_pushnumber(L, age_ms > 0 ? (double)age_ms / 1e3 : 0);
    lua_setfield(L, -2, "oldest_pending_seconds");
    lrows_set_integer(L, "store_bytes", stats.gauges.stored_bytes);
    lua_pushboolean(L, stats.has_store);
    lua_setfield(L, -2, "store_healthy");
    lua_pushboolean(L, stats.is_healthy);
    lua_setfield(L, -2, "healthy");
    set_counters(L, &stats.figures);
    set_counter(L, "events_dropped", stats.events_dropped);
    return 1;
}

// --- events ---

const char *const lrunner_event_names[EVENT_N_KINDS] = {
    "depth", "inflight", "target", "job", "job_seconds", "log", "change", "answer", "turn"};

static int push_answer(lua_State *L, const struct event *event) {
    lua_createtable(L, 0, 8);
    lrows_set_word(L, "kind", lrunner_event_names[event->kind]);
    lrows_set_integer(L, "ticket", event->number);
    if (event->status) {
        lrows_set_word(L, "code", status_code(event->status));
        lrows_set_word(L, "message", event->text);
    } else if (event->job_id[0]) {
        lrows_set_word(L, "id", event->job_id);
        lrows_set_word(L, "status", job_status_name(event->job_status));
        lua_pushboolean(L, event->is_reused);
        lua_setfield(L, -2, "is_reused");
        lrows_set_moment(L, "expires_at", event->expires_at);
    }
    return 1;
}

static int push_event(lua_State *L) {
    const struct event *event = lua_touserdata(L, 1);
    if (event->kind == EVENT_ANSWER)
        return push_answer(L, event);
    bool is_log = event->kind == EVENT_LOG, is_target = event->kind == EVENT_TARGET;
    bool is_job = event->kind == EVENT_JOB || event->kind == EVENT_JOB_SECONDS;
    lua_createtable(L, 0, 10);
    lrows_set_word(L, "kind", lrunner_event_names[event->kind]);
    lrows_set_integer(L, "number", event->number);
    lua_pushnumber(L, event->seconds);
    lua_setfield(L, -2, "seconds");
    lrows_set_integer(L, "bytes", event->bytes);
    lrows_set_word(L, "text", event->text);
    lrows_set_word(L, "detail", event->detail);
    if (is_log)
        lrows_set_word(L, "level", runner_log_level_name((int)event->number));
    if (is_job)
        lrows_set_word(L, "status", job_status_name(event->job_status));
    lua_createtable(L, 0, 5);
    if (event->job_id[0])
        lrows_set_word(L, "job", event->job_id);
    if (is_target || (is_log && event->job_id[0]))
        lrows_set_integer(L, "idx", is_log ? event->bytes : event->number);
    if (is_target)
        lrows_set_integer(L, "attempts", event->attempts);
    if (is_job)
        lrows_set_integer(L, "targets_total", event->number);
    if (is_job)
        lrows_set_word(L, "error", event->text);
    lrows_set_word(L, "caller", event->caller);
    lrows_set_word(L, "class", event->class_name);
    lua_setfield(L, -2, "info");
    return 1;
}

int lrunner_push_event(lua_State *L, struct runner *runner) {
    luaL_checkstack(L, 4, NULL);
    lua_pushcfunction(L, push_event);
    struct event *event = events_take(runner_events(runner));
    if (!event) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pushlightuserdata(L, event);
    int failed = lua_pcall(L, 1, 1, 0);
    free(event);
    return failed ? lua_error(L) : 1;
}

// next_event() → a table, or nothing
static int method_next_event(lua_State *L) {
    return lrunner_push_event(L, lrunner_check(L, 1)->runner);
}

// watch(): from now on changes of the store are events
static int method_watch(lua_State *L) {
    events_want(runner_events(lrunner_check(L, 1)->runner), EVENT_CHANGE);
    return 0;
}

// watch_turns(): from now on it is an event when targets may be taken
static int method_watch_turns(lua_State *L) {
    runner_watch_turns(lrunner_check(L, 1)->runner);
    return 0;
}

// open_bell() → path of a socket to connect to
static int method_open_bell(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    char path[EVENTS_PATH_SIZE];
    struct fault fault;
    int status = events_open_bell(runner_events(box->runner), path, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    lua_pushstring(L, path);
    return 1;
}

// answer_bell() → true, once somebody has connected
static int method_answer_bell(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct fault fault;
    int status = events_answer_bell(runner_events(box->runner), &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    lua_pushboolean(L, true);
    return 1;
}

static int method_ring(lua_State *L) {
    events_ring(runner_events(lrunner_check(L, 1)->runner));
    return 0;
}

static int method_fd(lua_State *L) {
    lua_pushinteger(L, events_fd(runner_events(lrunner_check(L, 1)->runner)));
    return 1;
}

const luaL_Reg lrunner_report_methods[] = {
    {"stats", method_stats},
    {"next_event", method_next_event},
    {"watch", method_watch},
    {"watch_turns", method_watch_turns},
    {"open_bell", method_open_bell},
    {"answer_bell", method_answer_bell},
    {"ring", method_ring},
    {"fd", method_fd},
    {NULL, NULL},
};
