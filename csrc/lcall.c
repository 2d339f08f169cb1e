// SPDX-License-Identifier: MIT
//
// Target and ctx in, verdict out. The time-out is a count hook: it runs in the state's own thread,
// reads the clock, and once the time is up raises at every instruction, so that no pcall swallows
// it.

#include "lcall.h"

#include "lvalue.h"

#include <math.h>
#include <poll.h>
#include <string.h>

enum { HOOK_EVERY = 1000 };  // instructions; a look at the clock costs as much as ten of them

static const char call_key, decode_key, context_key, calling_key, traceback_key;

static struct lcall *call_of(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &call_key);
    struct lcall *call = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return call;
}

void lcall_use_decode(lua_State *L) {
    lua_rawsetp(L, LUA_REGISTRYINDEX, &decode_key);
}

void lcall_push_json(lua_State *L, struct bytes json) {
    if (!json.start || json.len <= 2) {
        lua_newtable(L);
        return;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &decode_key);
    lua_pushlstring(L, json.start, json.len);
    lua_call(L, 1, 1);
    lvalue_integers(L, -1);
}

// --- time ---

static void raise_timed_out(lua_State *L, struct lcall *call) {
    call->is_timed_out = true;
    luaL_error(L, "timed out");
}

static void on_count(lua_State *L, lua_Debug *record) {
    (void)record;
    struct lcall *call = call_of(L);
    if (!call || call->deadline_us == INT64_MAX)
        return;
    if (!call->is_timed_out && clock_mono_us(call->clock) <= call->deadline_us)
        return;
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    raise_timed_out(L, call);
}

void lcall_limit(struct lcall *call, int64_t deadline_us) {
    call->deadline_us = deadline_us;
    call->is_timed_out = false;
    lua_sethook(call->L, on_count, LUA_MASKCOUNT, HOOK_EVERY);
}

int lcall_is_timed_out(lua_State *L) {
    struct lcall *call = call_of(L);
    lua_pushboolean(L, call && call->is_timed_out);
    return 1;
}

// --- ctx ---

static int context_cancelled(lua_State *L) {
    struct lcall *call = call_of(L);
    lua_pushboolean(L, call && call->hand && atomic_load(&call->hand->is_cancelled));
    return 1;
}

// Sleeps until due_us of the clock; false when it was cancelled before.
static bool sleep_until(struct lcall *call, int64_t due_us) {
    struct pollfd wake = {.fd = call->hand->wake_fd, .events = POLLIN};
    for (;;) {
        int64_t left_us = due_us - clock_mono_us(call->clock);
        if (atomic_load(&call->hand->is_cancelled))
            return false;
        if (left_us <= 0)
            return true;
        int64_t nap_us = clock_nap_us(call->clock, left_us);
        struct timespec nap = {nap_us / 1000000, (long)(nap_us % 1000000) * 1000};
        ppoll(&wake, 1, &nap, NULL);
    }
}

static int context_sleep(lua_State *L) {
    struct lcall *call = call_of(L);
    double seconds = luaL_checknumber(L, 2);
    luaL_argcheck(L, seconds >= 0, 2, "seconds must not be negative");
    if (!call || !call->task)
        return luaL_error(L, "ctx:sleep works only while its fetch runs");
    int64_t now_us = clock_mono_us(call->clock), deadline_us = call->deadline_us;
    bool is_too_long = seconds * 1e6 > (double)(deadline_us - now_us);
    int64_t due_us = is_too_long ? deadline_us : now_us + (int64_t)(seconds * 1e6);
    bool is_whole = sleep_until(call, due_us);
    if (is_whole && is_too_long)
        raise_timed_out(L, call);
    lua_pushboolean(L, is_whole);
    return 1;
}

// left() → seconds until the deadline, below 0 behind it, by the clock that never jumps
static int context_left(lua_State *L) {
    struct lcall *call = call_of(L);
    bool is_limited = call && call->task && call->deadline_us != INT64_MAX;
    int64_t left_us = is_limited ? call->deadline_us - clock_mono_us(call->clock) : 0;
    lua_pushnumber(L, (double)left_us / 1e6);
    return 1;
}

static const luaL_Reg context_methods[] = {
    {"cancelled", context_cancelled},
    {"left", context_left},
    {"sleep", context_sleep},
    {NULL, NULL},
};

static void set_bytes(lua_State *L, const char *name, struct bytes bytes) {
    lua_pushlstring(L, bytes.start, bytes.len);
    lua_setfield(L, -2, name);
}

static void push_target(lua_State *L, const struct task *task) {
    lua_createtable(L, 0, 2);
    set_bytes(L, "url", (struct bytes){task->target.url, task->target.url_len});
    lcall_push_json(L, (struct bytes){task->target.options, task->target.options_len});
    lua_setfield(L, -2, "options");
}

// Pushes the metatable of the job's contexts: what stays the same over its targets, and the
// methods.
static void make_metatable(lua_State *L, const struct task *task, const struct lcall *call) {
    lua_newtable(L);
    luaL_newlib(L, context_methods);
    set_bytes(L, "caller", task->caller);
    set_bytes(L, "class", task->class_name);
    set_bytes(L, "job", (struct bytes){task->job_id, JOB_ID_SIZE - 1});
    lua_pushinteger(L, call->hand->wake_fd);
    lua_setfield(L, -2, "cancel_fd");
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "batch.context");
    lua_setfield(L, -2, "__name");
}

static void push_new_cache(lua_State *L) {
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &context_key);
}

// The same, out of the state's cache: making one costs as much as the rest of a call.
static void push_metatable(lua_State *L, const struct task *task, struct lcall *call) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &context_key);
    if (lua_isnil(L, -1) || call->n_cached >= LCALL_MAX_CACHED) {
        lua_pop(L, 1);
        push_new_cache(L);
        call->n_cached = 0;
    }
    lua_pushnumber(L, (lua_Number)task->job_key);
    lua_rawget(L, -2);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        make_metatable(L, task, call);
        lua_pushnumber(L, (lua_Number)task->job_key);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
        call->n_cached++;
    }
    lua_remove(L, -2);
}

static void push_context(lua_State *L, const struct task *task, struct lcall *call) {
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, (lua_Integer)task->idx);
    lua_setfield(L, -2, "idx");
    lua_pushinteger(L, (lua_Integer)task->attempt);
    lua_setfield(L, -2, "attempt");
    lua_pushnumber(L, (double)task->deadline_ms / 1e3);
    lua_setfield(L, -2, "deadline");
    push_metatable(L, task, call);
    lua_setmetatable(L, -2);
}

// --- verdict ---

static bool field_bytes(lua_State *L, int index, const char *name, struct bytes *out_bytes) {
    lua_pushstring(L, name);
    lua_rawget(L, index);
    bool is_text = lua_type(L, -1) == LUA_TSTRING;
    *out_bytes = (struct bytes){NULL, 0};
    if (is_text)
        out_bytes->start = lua_tolstring(L, -1, &out_bytes->len);
    lua_pop(L, 1);  // the table keeps it alive
    return is_text;
}

static bool fail_nonsense(struct task *task, const char *what) {
    task_fail_with(task, "internal error", NULL);
    buffer_add(&task->trace, what, strlen(what) + 1);
    return false;
}

static bool accept_table(lua_State *L, int index, struct task *task) {
    struct bytes content, meta = {NULL, 0};
    struct buffer json;
    struct fault fault;
    if (!field_bytes(L, index, "content", &content))
        return fail_nonsense(task, "a result's content must be a string");
    lua_pushliteral(L, "meta");
    lua_rawget(L, index);
    buffer_init(&json);
    int status = lua_isnil(L, -1) ? STATUS_OK : lvalue_json(L, -1, &json, &fault);
    lua_pop(L, 1);
    if (!status && json.len)
        meta = (struct bytes){json.bytes, json.len};
    if (!status)
        task_succeed(task, content, meta);
    buffer_fini(&json);
    if (status == STATUS_NO_MEMORY)
        task_fail_with(task, fault.text, NULL);
    return !status || status == STATUS_NO_MEMORY || fail_nonsense(task, fault.text);
}

static bool is_retry(lua_State *L, int index) {
    if (!lua_getmetatable(L, index))
        return false;
    lua_pushliteral(L, "__name");
    lua_rawget(L, -2);
    const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    bool is_ours = strcmp(name, "batch.retry") == 0;
    lua_pop(L, 2);
    return is_ours;
}

static int64_t wait_ms_of(lua_State *L, int index) {
    lua_pushliteral(L, "seconds");
    lua_rawget(L, index);
    double seconds = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
    lua_pop(L, 1);
    return seconds < 0 ? -1 : (int64_t)fmin(ceil(seconds * 1e3), 1e15);
}

static bool refuse_table(lua_State *L, int index, struct task *task) {
    struct bytes message, hint;
    if (is_retry(L, index)) {
        field_bytes(L, index, "message", &message);
        lua_pushliteral(L, "patient");
        lua_rawget(L, index);
        bool is_patient = lua_toboolean(L, -1);
        lua_pop(L, 1);
        if (!message.start)
            message = (struct bytes){"busy", 4};
        task_postpone(task, message, wait_ms_of(L, index), is_patient);
        return true;
    }
    if (!field_bytes(L, index, "msg", &message))
        return fail_nonsense(task, "fetch returned nil and a table without a msg");
    field_bytes(L, index, "hint", &hint);
    task_fail(task, message, hint);
    return true;
}

static struct bytes text_at(lua_State *L, int index) {
    struct bytes text = {NULL, 0};
    if (lua_type(L, index) == LUA_TSTRING)
        text.start = lua_tolstring(L, index, &text.len);
    return text;
}

bool lcall_verdict(lua_State *L, int first, struct task *task) {
    lua_settop(L, first + 2);  // more mean nothing, and may have left no room on the stack
    int type = lua_type(L, first), second = lua_type(L, first + 1);
    if (type == LUA_TSTRING) {
        task_succeed(task, text_at(L, first), (struct bytes){NULL, 0});
        return true;
    }
    if (type == LUA_TTABLE)
        return accept_table(L, first, task);
    if (type == LUA_TNIL && second == LUA_TTABLE)
        return refuse_table(L, first + 1, task);
    if (type == LUA_TNIL && second == LUA_TSTRING) {
        task_fail(task, text_at(L, first + 1), text_at(L, first + 2));
        return true;
    }
    lua_pushfstring(L, "fetch returned nonsense: %s, %s", lua_typename(L, type),
                    lua_typename(L, second));
    return fail_nonsense(task, lua_tostring(L, -1));
}

// --- the call ---

// The function stands below the call.
static int call_fetch(lua_State *L) {
    struct lcall *call = lua_touserdata(L, 2);
    lua_settop(L, 1);
    push_target(L, call->task);
    push_context(L, call->task, call);
    lua_call(L, 2, LUA_MULTRET);
    lcall_verdict(L, 1, call->task);
    return 0;
}

static int add_traceback(lua_State *L) {
    const char *message = luaL_tolstring(L, 1, NULL);
    // What the library's buffers raise when they cannot grow is no memory error to lua_pcall.
    if (strncmp(message, "not enough memory", strlen("not enough memory")) == 0)
        call_of(L)->is_out_of_memory = true;
    luaL_traceback(L, L, message, 1);
    return 1;
}

// LuaJIT makes an object of each C function that is pushed, for which memory may be short: the two
// that a call needs are kept from the first attachment on.
static void keep_functions(lua_State *L) {
    lua_pushcfunction(L, add_traceback);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &traceback_key);
    lua_pushcfunction(L, call_fetch);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &calling_key);
}

struct lcall *lcall_attach(lua_State *L, struct lcall *call) {
    struct lcall *before = call_of(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &calling_key);
    if (lua_isnil(L, -1))
        keep_functions(L);
    lua_pop(L, 1);
    lua_pushlightuserdata(L, call);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &call_key);
    return before;
}

static void fail_raised(struct lcall *call) {
    size_t len = 0;
    const char *trace = lua_tolstring(call->L, -1, &len);
    struct task *task = call->task;
    if (call->is_timed_out) {
        task_fail_with(task, "timed out", NULL);
        return;
    }
    task_fail_with(task, "internal error", NULL);
    buffer_add(&task->trace, trace ? trace : "no message", trace ? len : strlen("no message"));
    buffer_add_byte(&task->trace, '\0');
}

void lcall_run(struct lcall *call, struct task *task) {
    lua_State *L = call->L;
    int base = lua_gettop(L);
    call->task = task;
    call->is_out_of_memory = false;
    lcall_limit(call, task->deadline_us);
    // What runs out of memory here ends in the pcall: before it nothing allocates.
    lua_rawgetp(L, LUA_REGISTRYINDEX, &traceback_key);
    lua_insert(L, base);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &calling_key);
    lua_insert(L, base + 1);
    lua_pushlightuserdata(L, call);
    int status = lua_pcall(L, 2, 0, base);
    call->is_out_of_memory |= status == LUA_ERRMEM;
    if (status)
        fail_raised(call);
    lcall_limit(call, INT64_MAX);
    call->task = NULL;
    lua_settop(L, base - 1);
}
