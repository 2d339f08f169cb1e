// SPDX-License-Identifier: MIT
//
// One function over child_run. What it holds while the program runs, and after, lies on the Lua
// stack, so that an error of Lua's, memory shortage above all, leaves nothing behind.
//
//   child{program =, arguments =, input =, seconds =, cpu_seconds =, memory =, max_output =,
//         cancel_fd =, may_spawn =} -> {output =, errors =, why =, status =, signal =},
//                                      or nil, message, "not_found" | "invalid" | "system"

#include "lchild.h"

#include "child.h"
#include "compat.h"

#include <math.h>
#include <string.h>

#define RESULT "batch.child.result"

enum { MAX_LUA_ARGUMENTS = 64 };

// The fields that are numbers, and what they are when absent.
static const struct field {
    const char *name;
    double fallback;
    double min;
    double max;
} fields[] = {
    {"seconds", 60, 0, 86400},
    {"cpu_seconds", 60, 1, 86400},
    {"memory", 512.0 * 1024 * 1024, 1024 * 1024, 1e15},
    {"max_output", 64.0 * 1024 * 1024, 0, 1e15},
    {"cancel_fd", -1, -1, 1e9},
};

enum { SECONDS, CPU_SECONDS, MEMORY, MAX_OUTPUT, CANCEL_FD };

static double number_at(lua_State *L, const struct field *field) {
    lua_getfield(L, 1, field->name);
    if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TNUMBER)
        luaL_error(L, "%s must be a number, got a %s", field->name, luaL_typename(L, -1));
    double number = lua_isnil(L, -1) ? field->fallback : lua_tonumber(L, -1);
    lua_pop(L, 1);
    if (!(number >= field->min && number <= field->max))
        luaL_error(L, "%s must be from %f to %f, got %f", field->name, field->min, field->max,
                   number);
    return number;
}

// The text, which stays anchored in the table at index 1 or what lies in it.
static const char *text_at(lua_State *L, int index, const char *name, size_t *out_len) {
    if (lua_type(L, index) != LUA_TSTRING)
        luaL_error(L, "%s must be a string, got a %s", name, luaL_typename(L, index));
    const char *text = lua_tolstring(L, index, out_len);
    lua_pop(L, 1);
    return text;
}

// Returns false when one of them cannot be passed.
static bool read_arguments(lua_State *L, const char **out_arguments) {
    bool is_whole = true;
    lua_getfield(L, 1, "arguments");
    luaL_checktype(L, -1, LUA_TTABLE);
    size_t count = lua_rawlen(L, -1);
    luaL_argcheck(L, count <= MAX_LUA_ARGUMENTS, 1, "too many arguments");
    for (size_t i = 0; i < count; i++) {
        size_t len;
        lua_rawgeti(L, -1, (int)i + 1);
        out_arguments[i] = text_at(L, -1, "an argument", &len);
        is_whole &= strlen(out_arguments[i]) == len;
    }
    out_arguments[count] = NULL;
    lua_pop(L, 1);
    return is_whole;
}

static void read_plan(lua_State *L, struct child_plan *out_plan) {
    lua_getfield(L, 1, "program");
    out_plan->program = text_at(L, -1, "program", NULL);
    lua_getfield(L, 1, "input");
    if (lua_isnil(L, -1))
        lua_pop(L, 1);
    else
        out_plan->input = text_at(L, -1, "input", &out_plan->input_len);
    lua_getfield(L, 1, "may_spawn");
    out_plan->may_spawn = lua_toboolean(L, -1);
    lua_pop(L, 1);
    out_plan->timeout_ms = (int64_t)ceil(number_at(L, &fields[SECONDS]) * 1000);
    out_plan->cpu_s = (int64_t)ceil(number_at(L, &fields[CPU_SECONDS]));
    out_plan->memory = (uint64_t)number_at(L, &fields[MEMORY]);
    out_plan->max_output = (uint64_t)number_at(L, &fields[MAX_OUTPUT]);
    out_plan->cancel_fd = (int)number_at(L, &fields[CANCEL_FD]);
}

static int refuse(lua_State *L, int status, const char *message) {
    lua_pushnil(L);
    lua_pushstring(L, message);
    lua_pushstring(L, status == STATUS_NO_MEMORY ? "system" : status_code(status));
    return 3;
}

static void set_text(lua_State *L, const char *name, const struct buffer *text) {
    lua_pushlstring(L, text->len ? text->bytes : "", text->len);
    lua_setfield(L, -2, name);
}

static int push_result(lua_State *L, struct child_result *result) {
    lua_createtable(L, 0, 4);
    set_text(L, "output", &result->output);
    set_text(L, "errors", &result->errors);
    lua_pushstring(L, child_end_word(result->end));
    lua_setfield(L, -2, "why");
    lua_pushinteger(L, result->end == CHILD_EXIT ? result->code : result->signal);
    lua_setfield(L, -2, result->end == CHILD_EXIT ? "status" : "signal");
    child_result_fini(result);
    return 1;
}

static int free_result(lua_State *L) {
    child_result_fini(luaL_checkudata(L, 1, RESULT));
    return 0;
}

int lchild_run(lua_State *L) {
    const char *arguments[MAX_LUA_ARGUMENTS + 1];
    struct child_plan plan = {.arguments = arguments};
    struct fault fault;
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct child_result *result = lua_newuserdata(L, sizeof *result);
    memset(result, 0, sizeof *result);
    luaL_setmetatable(L, RESULT);
    read_plan(L, &plan);
    if (!read_arguments(L, arguments))
        return refuse(L, STATUS_INVALID, "an argument must not hold NUL");
    int status = child_run(&plan, result, &fault);
    if (status != STATUS_OK)
        return refuse(L, status, fault.text);
    return push_result(L, result);
}

int lchild_is_filtered(lua_State *L) {
    lua_pushboolean(L, child_is_filtered());
    return 1;
}

void lchild_register(lua_State *L) {
    if (luaL_newmetatable(L, RESULT)) {
        lua_pushcfunction(L, free_result);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 1);
}
