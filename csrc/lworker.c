// SPDX-License-Identifier: MIT
//
// A state is made when its first target comes, and made anew after it ran out of memory: then
// nobody knows what in it is whole. The Lua half of its making is batch.worker.

#include "lworker.h"

#include "compat.h"
#include "lcall.h"
#include "lcore.h"

#include <lualib.h>
#if LUA_VERSION_NUM == 501
#include <luajit.h>
#endif

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TEARDOWN_PATIENCE_MS = 5000 };

struct lworker_source {
    _Atomic int n_holders;
    struct lworker_settings settings;
};

struct lworker {
    struct lcall call;
    struct lworker_source *source;
    int fetch;     // references in the registry
    int teardown;  // LUA_NOREF: none
};

static const char *put(char **place, const char *bytes, size_t len) {
    char *start = *place;
    memcpy(start, bytes, len);
    start[len] = '\0';
    *place += len + 1;
    return start;
}

struct lworker_source *lworker_source_new(const struct lworker_settings *settings) {
    size_t path = strlen(settings->path), cpath = strlen(settings->cpath);
    size_t kind = strlen(settings->kind);
    struct lworker_source *source =
        malloc(sizeof *source + path + cpath + kind + settings->fetch_len + 4);
    if (!source)
        return NULL;
    char *place = (char *)(source + 1);
    atomic_init(&source->n_holders, 1);
    source->settings = *settings;
    clock_hold(settings->clock);
    source->settings.path = put(&place, settings->path, path);
    source->settings.cpath = put(&place, settings->cpath, cpath);
    source->settings.kind = put(&place, settings->kind, kind);
    source->settings.fetch = put(&place, settings->fetch, settings->fetch_len);
    return source;
}

void lworker_source_free(struct lworker_source *source) {
    if (!source || atomic_fetch_sub(&source->n_holders, 1) > 1)
        return;
    clock_drop(source->settings.clock);
    free(source);
}

static void set_path(lua_State *L, const char *field, const char *value) {
    lua_getglobal(L, "package");
    lua_pushstring(L, value);
    lua_setfield(L, -2, field);
    lua_pop(L, 1);
}

#if LUA_VERSION_NUM == 501

// Compiled code ignores hooks: whoever switched the compiler on could not be stopped. Its library
// does so when it is opened.
static void forbid_compiling(lua_State *L) {
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    lua_getglobal(L, "jit");
    lua_getfield(L, -1, "off");
    lua_setfield(L, -2, "on");
    lua_pop(L, 1);
}

#else

static void forbid_compiling(lua_State *L) {
    (void)L;
}

#endif

// Runs protected: libraries, paths, and batch.worker, which gives fetch, teardown and decode.
static int make_state(lua_State *L) {
    struct lworker *worker = lua_touserdata(L, 1);
    const struct lworker_settings *settings = &worker->source->settings;
    luaL_openlibs(L);
    forbid_compiling(L);
    set_path(L, "path", settings->path);
    set_path(L, "cpath", settings->cpath);
    // The module is in this very file: what is loaded need not be found.
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, luaopen_batch_core);
    lua_setfield(L, -2, "batch.core");
    lcall_attach(L, &worker->call);
    lua_getglobal(L, "debug");
    lua_pushnil(L);
    lua_setfield(L, -2, "sethook");  // whoever took the hook away could not be stopped
    lua_getglobal(L, "require");
    lua_pushliteral(L, "batch.worker");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "open");
    lua_pushstring(L, settings->kind);
    lua_pushlstring(L, settings->fetch, settings->fetch_len);
    lua_pushcfunction(L, lcall_is_timed_out);
    lua_call(L, 3, 3);
    lcall_use_decode(L);
    worker->teardown =
        lua_isnil(L, -1) ? (lua_pop(L, 1), LUA_NOREF) : luaL_ref(L, LUA_REGISTRYINDEX);
    worker->fetch = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static void close_state(struct lworker *worker) {
    lua_State *L = worker->call.L;
    if (!L)
        return;
    if (worker->teardown != LUA_NOREF) {
        lcall_limit(&worker->call, clock_mono_us(worker->call.clock) + TEARDOWN_PATIENCE_MS * 1000);
        lua_rawgeti(L, LUA_REGISTRYINDEX, worker->teardown);
        lua_pcall(L, 0, 0, 0);
        lcall_limit(&worker->call, INT64_MAX);
    }
    lua_close(L);
    worker->call.L = NULL;
}

// Whatever is wrong is the world's fault or the module's, so the next target tries again.
static void fail_to_open(struct task *task, const char *message) {
    task_fail_with(task, "internal error", NULL);
    buffer_add(&task->trace, message, strlen(message) + 1);
}

// Returns whether there is a state to fetch in; if not, the task has failed.
static bool open_state(struct lworker *worker, struct task *task) {
    if (worker->call.L)
        return true;
    lua_State *L = luaL_newstate();
    worker->call.L = L;
    worker->teardown = LUA_NOREF;
    if (!L) {
        fail_to_open(task, "no memory for a worker's Lua state");
        return false;
    }
    lcall_limit(&worker->call, task->deadline_us);
    int status = compat_cpcall(L, make_state, worker);
    bool is_timed_out = worker->call.is_timed_out;
    lcall_limit(&worker->call, INT64_MAX);
    if (status == LUA_OK)
        return true;
    // A number's text would need memory that nothing guards.
    const char *message = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    if (is_timed_out)
        task_fail_with(task, "timed out", NULL);
    else
        fail_to_open(task, message ? message : "the worker's Lua state could not be made");
    close_state(worker);
    return false;
}

static void *begin(void *context, struct hand *hand) {
    struct lworker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return NULL;
    worker->source = context;
    atomic_fetch_add(&worker->source->n_holders, 1);
    worker->call.hand = hand;
    worker->call.clock = worker->source->settings.clock;
    return worker;
}

static void fetch(void *state, struct task *task) {
    struct lworker *worker = state;
    if (!worker) {
        fail_to_open(task, "no memory for a worker");
        return;
    }
    if (!open_state(worker, task))
        return;
    lua_rawgeti(worker->call.L, LUA_REGISTRYINDEX, worker->fetch);
    lcall_run(&worker->call, task);
    if (worker->call.is_out_of_memory)
        close_state(worker);
}

static void end(void *state) {
    struct lworker *worker = state;
    close_state(worker);
    lworker_source_free(worker->source);
    free(worker);
}

struct fetcher lworker_fetcher(struct lworker_source *source) {
    return (struct fetcher){.context = source, .begin = begin, .fetch = fetch, .end = end};
}
