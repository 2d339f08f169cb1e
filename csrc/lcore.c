// SPDX-License-Identifier: MIT
//
// The table batch.core, and the pure functions in it.

#include "lcore.h"

#include "canonical.h"
#include "caps.h"
#include "json.h"
#include "largs.h"
#include "lcall.h"
#include "lchild.h"
#include "lfault.h"
#include "lgrep.h"
#include "lhtml.h"
#include "lhttp.h"
#include "lprocess.h"
#include "lrunner.h"
#include "lstore.h"
#include "ltargets.h"
#include "lvalue.h"

#include <math.h>

// use_json(decode): what turns stored JSON into tables
static int function_use_json(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lcall_use_decode(L);
    return 0;
}

static int push_buffer(lua_State *L) {
    const struct buffer *buffer = lua_touserdata(L, 1);
    lua_pushlstring(L, buffer->bytes, buffer->len);
    return 1;
}

// canonical(targets) → text
static int function_canonical(lua_State *L) {
    struct targets targets;
    struct buffer text;
    struct fault fault;
    lua_settop(L, 1);
    lua_pushcfunction(L, push_buffer);  // may raise in LuaJIT: before there are targets to lose
    lua_pushlightuserdata(L, &text);
    targets_init(&targets);
    int status = lvalue_targets(L, 1, &targets, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    buffer_init(&text);
    canonical_write(&targets, &text);
    targets_fini(&targets);
    int failed = text.is_broken ? LUA_ERRMEM : lua_pcall(L, 1, 1, 0);
    bool is_broken = text.is_broken;
    buffer_fini(&text);
    if (is_broken)
        return largs_refuse(L, STATUS_NO_MEMORY, "out of memory");
    return failed ? lua_error(L) : 1;
}

// check_targets(targets) → true: their form, which the user's own check may rely on
static int function_check_targets(lua_State *L) {
    struct fault fault;
    int status = lvalue_each_target(L, 1, NULL, NULL, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    lua_pushboolean(L, true);
    return 1;
}

static int hash_target(void *hash, const struct target *target) {
    canonical_hash_add(hash, target);
    return STATUS_OK;
}

// The key of the list at index 2. Raises nothing, for there is memory to lose.
static int read_key(lua_State *L, unsigned char out_key[CANONICAL_KEY_BYTES], struct fault *fault) {
    const char *caller;
    size_t caller_len;
    int status = lvalue_text(L, 1, "caller", &caller, &caller_len, fault);
    if (status)
        return status;
    struct canonical_hash *hash = canonical_hash_new(caller, caller_len);
    if (!hash)
        return fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    status = lvalue_each_target(L, 2, hash_target, hash, fault);
    if (!status && canonical_hash_end(hash, out_key))
        status = fault_set(fault, STATUS_NO_MEMORY, "out of memory");
    canonical_hash_free(hash);
    return status;
}

// idem_key(caller, targets) → hex
static int function_idem_key(lua_State *L) {
    struct fault fault;
    unsigned char key[CANONICAL_KEY_BYTES];
    char hex[CANONICAL_KEY_HEX];
    int status = read_key(L, key, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    canonical_key_hex(key, hex);
    lua_pushstring(L, hex);
    return 1;
}

// check_json(text, max_depth) → true, or nil, message: strict, where cjson is lenient
static int function_check_json(lua_State *L) {
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    struct json_fault fault;
    if (json_check(text, len, (int)luaL_checkinteger(L, 2), &fault)) {
        lua_pushboolean(L, true);
        return 1;
    }
    lua_pushnil(L);
    lua_pushfstring(L, "%s, at byte %d", fault.what, (int)fault.at + 1);
    return 2;
}

static int64_t field(lua_State *L, int index, const char *name) {
    lua_getfield(L, index, name);
    if (lua_type(L, -1) != LUA_TNUMBER)
        luaL_error(L, "%s must be a number, got %s", name, luaL_typename(L, -1));
    double value = lua_tonumber(L, -1);
    if (isnan(value))
        luaL_error(L, "%s must be a number, got nan", name);
    lua_pop(L, 1);
    return largs_whole(value);
}

// caps(limits, load) → true, or nil, message, code
static int function_caps(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    struct caps caps = {.targets_per_job = field(L, 1, "targets_per_job"),
                        .jobs_per_caller = field(L, 1, "jobs_per_caller"),
                        .jobs_total = field(L, 1, "jobs_total")};
    struct load load = {.targets = field(L, 2, "targets"),
                        .caller_jobs = field(L, 2, "caller_jobs"),
                        .total_jobs = field(L, 2, "total_jobs")};
    int status = caps_admit(&caps, &load);
    if (status)
        return largs_refuse(L, status, status_message(status));
    lua_pushboolean(L, true);
    return 1;
}

static const luaL_Reg functions[] = {
    {"open", lrunner_open},
    {"store_open", lstore_open},
    {"use_json", function_use_json},
    {"canonical", function_canonical},
    {"check_targets", function_check_targets},
    {"idem_key", function_idem_key},
    {"targets", ltargets_new},
    {"check_json", function_check_json},
    {"caps", function_caps},
    {"child", lchild_run},
    {"is_child_filtered", lchild_is_filtered},
    {NULL, NULL},
};

int luaopen_batch_core(lua_State *L) {
    canonical_init();
    lrunner_register(L);
    lstore_register(L);
    ltargets_register(L);
    lprocess_register(L);
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
    luaL_setfuncs(L, lprocess_functions, 0);
    lchild_register(L);
    lfault_open(L);
    lua_setfield(L, -2, "fault_points");
    lhttp_open(L);
    lua_setfield(L, -2, "http");
    lgrep_open(L);
    lua_setfield(L, -2, "grep");
    lhtml_open(L);
    lua_setfield(L, -2, "html");
    return 1;
}
