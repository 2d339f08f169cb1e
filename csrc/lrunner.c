// SPDX-License-Identifier: MIT
//
// Opening and closing from Lua, and the calls that write.

#include "lrunner.h"

#include "largs.h"
#include "lprocess.h"
#include "lstore.h"
#include "ltargets.h"
#include "lvalue.h"

#include <math.h>
#include <string.h>

// A state that is collected waits so long for fetches that do not end when they are told to.
enum { GC_PATIENCE_MS = 10000 };

// Of a list whose submit is waited for, so much is held in memory; a longer one waits in a file. An
// event loop, which begins a submit, must not wait for a disk.
enum { HELD_BYTES = 256 * 1024 };

struct lrunner *lrunner_check(lua_State *L, int index) {
    struct lrunner *box = luaL_checkudata(L, index, LRUNNER_TYPE);
    if (!box->runner)
        luaL_error(L, "attempt to use a closed runner");
    largs_check_process(L, runner_foreign_pid(box->runner));
    return box;
}

const char *lrunner_check_id(lua_State *L, int index) {
    size_t len;
    const char *id = luaL_checklstring(L, index, &len);
    return strlen(id) == len ? id : "";
}

// --- settings: checked by batch.fields before they come here ---

static int64_t integer_field(lua_State *L, const char *name) {
    lua_getfield(L, 1, name);
    int64_t value = (int64_t)lua_tonumber(L, -1);
    lua_pop(L, 1);
    return value;
}

static int64_t ms_field(lua_State *L, const char *name) {
    lua_getfield(L, 1, name);
    double ms = ceil(lua_tonumber(L, -1) * 1e3);
    lua_pop(L, 1);
    return (int64_t)fmin(ms, 1e15);
}

static bool bool_field(lua_State *L, const char *name) {
    lua_getfield(L, 1, name);
    bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

// The text stays in the settings table, which the stack holds.
static const char *text_field(lua_State *L, const char *name, size_t *out_len) {
    lua_getfield(L, 1, name);
    const char *text = lua_tolstring(L, -1, out_len);
    lua_pop(L, 1);
    return text ? text : "";
}

static enum executor executor_field(lua_State *L) {
    const char *name = text_field(L, "executor", NULL);
    if (strcmp(name, "threads") == 0)
        return EXECUTOR_THREADS;
    return strcmp(name, "manual") == 0 ? EXECUTOR_MANUAL : EXECUTOR_NONE;
}

// The events that somebody will read: those with a hook, and the log's.
static unsigned wanted_events(lua_State *L) {
    unsigned wanted = bool_field(L, "has_log") ? 1u << EVENT_LOG : 0;
    lua_getfield(L, 1, "hooks");
    for (int kind = 0; kind < EVENT_N_KINDS; kind++) {
        lua_getfield(L, -1, lrunner_event_names[kind]);
        wanted |= lua_isnil(L, -1) ? 0 : 1u << kind;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return wanted;
}

static void read_config(lua_State *L, struct runner_config *config) {
    lua_getfield(L, 1, "clock");
    config->clock = lua_isnil(L, -1) ? NULL : lprocess_check_clock(L, -1);
    lua_pop(L, 1);
    config->executor = executor_field(L);
    config->workers = (int)integer_field(L, "workers");
    config->caps.targets_per_job = integer_field(L, "targets_per_job");
    config->caps.jobs_per_caller = integer_field(L, "jobs_per_caller");
    config->caps.jobs_total = integer_field(L, "jobs_total");
    config->ttl_ms = ms_field(L, "ttl");
    config->max_bytes = integer_field(L, "max_bytes");
    config->max_result_bytes = integer_field(L, "max_result_bytes");
    config->retry_wait_ms = ms_field(L, "retry_wait");
    config->retry_for_ms = ms_field(L, "retry_for");
    config->target_timeout_ms = ms_field(L, "target_timeout");
    config->crash_limit = integer_field(L, "crash_limit");
    config->patience_ms = ms_field(L, "patience");
    config->stuck_after_ms = ms_field(L, "stuck_after");
    config->durability = strcmp(text_field(L, "durability", NULL), "full") == 0 ? DURABILITY_FULL
                                                                                : DURABILITY_NORMAL;
    config->resumes = strcmp(text_field(L, "on_restart", NULL), "resume") == 0;
    config->logs_to_stderr = !bool_field(L, "has_log");
    config->wanted = wanted_events(L);
}

static struct lworker_source *read_source(lua_State *L, struct clock *clock) {
    struct lworker_settings settings = {.clock = clock};
    settings.path = text_field(L, "path", NULL);
    settings.cpath = text_field(L, "cpath", NULL);
    settings.kind = text_field(L, "fetch_kind", NULL);
    settings.fetch = text_field(L, "fetch", &settings.fetch_len);
    return lworker_source_new(&settings);
}

// Opens the runner in the place of the store that the settings name. Holds nothing that an error of
// Lua could lose: the box is collected.
static int open_in(lua_State *L, struct lrunner *box, const struct runner_config *config) {
    struct runner_config placed = *config;
    struct fault fault;
    struct place place;
    int status;
    lua_getfield(L, 1, "store");
    const struct place *given = lstore_place(L, -1);
    if (given)
        status = place_copy(given, &place, &fault);
    else
        status = place_open(luaL_checkstring(L, -1), &place, &fault);
    lua_pop(L, 1);
    if (!status) {
        placed.place = &place;
        status = runner_open(&placed, &box->runner, &fault);
        place_close(&place);
    }
    return status ? largs_refuse(L, status, fault.text) : 0;
}

int lrunner_open(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    struct runner_config config = {0};
    read_config(L, &config);
    struct lrunner *box = lua_newuserdata(L, sizeof *box);
    memset(box, 0, sizeof *box);
    box->hand.wake_fd = -1;
    luaL_getmetatable(L, LRUNNER_TYPE);
    lua_setmetatable(L, -2);
    if (config.executor == EXECUTOR_THREADS) {
        box->source = read_source(L, config.clock);
        if (!box->source)
            return largs_refuse(L, STATUS_NO_MEMORY, "out of memory");
        config.fetcher = lworker_fetcher(box->source);
    }
    if (config.executor == EXECUTOR_MANUAL && hand_init(&box->hand))
        return largs_refuse(L, STATUS_NO_MEMORY, "no descriptor for cancelling");
    int n_refused = open_in(L, box, &config);
    return n_refused ? n_refused : 1;
}

// --- closing ---

// After a fork the threads are not here, and the locks are not ours: such a runner is forgotten.
static bool is_own(const struct lrunner *box) {
    return box->runner && !runner_foreign_pid(box->runner);
}

static int end_box(struct lrunner *box, int64_t timeout_ms) {
    ltask_give_back_all(box);
    if (!is_own(box) || box->has_ended)
        return STATUS_OK;
    if (box->is_draining) {  // called by a fetch, for whose end nobody can wait here
        runner_begin_close(box->runner);
        return STATUS_TIMEOUT;
    }
    int status = runner_close(box->runner, timeout_ms);
    box->has_ended = status == STATUS_OK;
    return status;
}

static void free_box(struct lrunner *box) {
    if (is_own(box))
        runner_free(box->runner);
    box->runner = NULL;
    lworker_source_free(box->source);
    box->source = NULL;
    hand_fini(&box->hand);
}

// Pushes a list of the events that nobody has polled: calls may have their answer among them.
static void push_last_events(lua_State *L, struct lrunner *box) {
    lua_newtable(L);
    for (int i = 1; is_own(box) && lrunner_push_event(L, box->runner); i++)
        lua_rawseti(L, -2, i);
}

// close(seconds) → true and the list of the events that are left, or nil, message, "timeout"
static int method_close(lua_State *L) {
    struct lrunner *box = luaL_checkudata(L, 1, LRUNNER_TYPE);
    int status = end_box(box, largs_opt_span_ms(L, 2));
    if (status)
        return largs_refuse(L, status, "timeout: fetches still run");
    lua_pushboolean(L, true);
    push_last_events(L, box);
    free_box(box);
    return 2;
}

// begin_close(): no submit, no further target, contexts are cancelled; reads go on until close
static int method_begin_close(lua_State *L) {
    runner_begin_close(lrunner_check(L, 1)->runner);
    return 0;
}

// begin_handover(): no further target, its jobs are everybody's as soon as they are not in flight
static int method_begin_handover(lua_State *L) {
    runner_begin_handover(lrunner_check(L, 1)->runner);
    return 0;
}

// unsettled() → number of targets that a close waits for
static int method_unsettled(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)runner_n_unsettled(lrunner_check(L, 1)->runner));
    return 1;
}

// check_process(): raises in a fork's child; close does not, for collectors call it too
static int method_check_process(lua_State *L) {
    struct lrunner *box = luaL_checkudata(L, 1, LRUNNER_TYPE);
    if (box->runner)
        largs_check_process(L, runner_foreign_pid(box->runner));
    return 0;
}

static int method_gc(lua_State *L) {
    struct lrunner *box = luaL_checkudata(L, 1, LRUNNER_TYPE);
    if (!end_box(box, GC_PATIENCE_MS))
        free_box(box);
    return 0;
}

// --- writing ---

// Reads caller and class from the stack, the first of them at index, the other behind the targets.
// The texts stay there.
static int read_names(lua_State *L, int index, struct submit *out_submit, struct fault *fault) {
    struct bytes *caller = &out_submit->caller, *class_name = &out_submit->class_name;
    int status = lvalue_text(L, index, "caller", &caller->start, &caller->len, fault);
    if (!status)
        status = lvalue_text(L, index + 2, "class", &class_name->start, &class_name->len, fault);
    return status;
}

// The same with the targets between them, which are the caller's to free unless it fails.
static int read_submit(lua_State *L, int index, struct submit *out_submit, struct targets *targets,
                       struct fault *fault) {
    out_submit->targets = targets;
    int status = read_names(L, index, out_submit, fault);
    return status ? status : lvalue_targets(L, index + 1, targets, fault);
}

// submit(caller, targets, class) → id, is_reused; the targets are a table or a core.targets()
static int method_submit(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    const struct targets *list = ltargets_test(L, 3);
    struct submit submit = {.targets = list};
    struct targets targets;
    struct fault fault;
    char id[JOB_ID_SIZE];
    bool is_reused = false;
    targets_init(&targets);
    targets.max_held = HELD_BYTES;
    int status =
        list ? read_names(L, 2, &submit, &fault) : read_submit(L, 2, &submit, &targets, &fault);
    if (list && !list->count)
        status = fault_set(&fault, STATUS_INVALID, "targets must be a non-empty list");
    if (status)
        return largs_refuse(L, status, fault.text);
    status = runner_submit(box->runner, &submit, id, &is_reused, &fault);
    targets_fini(&targets);
    if (status)
        return largs_refuse(L, status, fault.text);
    lua_pushstring(L, id);
    lua_pushboolean(L, is_reused);
    return 2;
}

// begin_submit(ticket, caller, targets, class) → true; its end comes as an event
static int method_begin_submit(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    int64_t ticket = largs_check_whole(L, 2, 1);
    struct submit submit;
    struct targets targets;
    struct fault fault;
    targets_init(&targets);
    int status = read_submit(L, 3, &submit, &targets, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    status = runner_begin_submit(box->runner, &submit, &targets, ticket, &fault);
    targets_fini(&targets);
    if (status)
        return largs_refuse(L, status, fault.text);
    lua_pushboolean(L, true);
    return 1;
}

static int answer_begun(lua_State *L, int status) {
    if (status)
        return largs_refuse(L, status, status_message(status));
    lua_pushboolean(L, true);
    return 1;
}

// begin_cancel(ticket, id), begin_touch(ticket, id) → true; the end comes as an event
static int method_begin_cancel(lua_State *L) {
    struct runner *runner = lrunner_check(L, 1)->runner;
    int64_t ticket = largs_check_whole(L, 2, 1);
    return answer_begun(L, runner_begin_cancel(runner, lrunner_check_id(L, 3), ticket));
}

static int method_begin_touch(lua_State *L) {
    struct runner *runner = lrunner_check(L, 1)->runner;
    int64_t ticket = largs_check_whole(L, 2, 1);
    return answer_begun(L, runner_begin_touch(runner, lrunner_check_id(L, 3), ticket));
}

static int answer_whether(lua_State *L, int status, const struct fault *fault) {
    if (status && status != STATUS_NOT_FOUND)
        return largs_refuse(L, status, fault->text);
    lua_pushboolean(L, status == STATUS_OK);
    return 1;
}

static int method_cancel(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct fault fault;
    int status = runner_cancel(box->runner, lrunner_check_id(L, 2), &fault);
    return answer_whether(L, status, &fault);
}

static int method_touch(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct fault fault;
    int status = runner_touch(box->runner, lrunner_check_id(L, 2), &fault);
    return answer_whether(L, status, &fault);
}

static const luaL_Reg write_methods[] = {
    {"submit", method_submit},
    {"cancel", method_cancel},
    {"touch", method_touch},
    {"begin_submit", method_begin_submit},
    {"begin_cancel", method_begin_cancel},
    {"begin_touch", method_begin_touch},
    {"begin_close", method_begin_close},
    {"begin_handover", method_begin_handover},
    {"unsettled", method_unsettled},
    {"close", method_close},
    {"check_process", method_check_process},
    {NULL, NULL},
};

static const luaL_Reg metamethods[] = {
    {"__gc", method_gc},
    {"__close", method_gc},
    {NULL, NULL},
};

void lrunner_register(lua_State *L) {
    luaL_newmetatable(L, LRUNNER_TYPE);
    luaL_setfuncs(L, metamethods, 0);
    lua_newtable(L);
    luaL_setfuncs(L, write_methods, 0);
    luaL_setfuncs(L, lrunner_read_methods, 0);
    luaL_setfuncs(L, lrunner_json_methods, 0);
    luaL_setfuncs(L, lrunner_report_methods, 0);
    luaL_setfuncs(L, ltask_methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    ltask_register(L);
}
