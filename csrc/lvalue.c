// SPDX-License-Identifier: MIT
//
// Each reader prepares Lua's stack, the one step that may raise, before it takes memory, reads with
// calls that cannot, and leaves the stack as it was.

#include "lvalue.h"

#include "json.h"
#include "ljson.h"
#include "lplace.h"

#include <string.h>

static const char targets_rule[] = "targets must be a non-empty list";
static const char url_rule[] = "url must be a non-empty string";

// The list that is being read.
struct reader {
    lua_State *L;
    struct lplace_subject subject;
    struct json json;  // of the options of one target
    int (*take)(void *context, const struct target *target);
    void *context;
};

// Refuses the target, or the whole list.
static int refuse(const struct reader *reader, const char *rule, enum lplace_got got) {
    return lplace_refuse(&reader->subject, NULL, rule, got);
}

static int refuse_memory(struct fault *fault) {
    return fault_set(fault, STATUS_NO_MEMORY, "%s", status_message(STATUS_NO_MEMORY));
}

// Moves the fields of the target at the index into the two slots behind it: options, then url.
static int read_fields(const struct reader *reader, int index) {
    lua_State *L = reader->L;
    lua_settop(L, index + 3);  // the slots, and nil before the first key
    while (lua_next(L, index)) {
        size_t len = 0;
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tolstring(L, -2, &len) : NULL;
        if (len == 3 && memcmp(key, "url", len) == 0)
            lua_replace(L, index + 2);
        else if (len == 7 && memcmp(key, "options", len) == 0)
            lua_replace(L, index + 1);
        else
            return refuse(reader, "must have no fields but url and options", LPLACE_GOT_KEY);
    }
    return STATUS_OK;
}

// Reads the URL at the top.
static int read_url(const struct reader *reader, struct target *target) {
    lua_State *L = reader->L;
    if (lua_type(L, -1) != LUA_TSTRING)
        return refuse(reader, url_rule, lua_isnil(L, -1) ? LPLACE_GOT_NOTHING : LPLACE_GOT_VALUE);
    target->url = lua_tolstring(L, -1, &target->url_len);
    if (target->url_len == 0)
        return refuse(reader, url_rule, LPLACE_GOT_NOTHING);
    if (target->url_len > LJSON_MAX_BYTES)
        return refuse(reader, "url must be at most 256 MiB long", LPLACE_GOT_VALUE);
    if (!json_is_utf8(target->url, target->url_len))
        return refuse(reader, "url must be UTF-8", LPLACE_GOT_VALUE);
    return STATUS_OK;
}

// Reads the options at the top. They are the writer's until the next target.
static int read_options(struct reader *reader, struct target *target) {
    struct buffer *out = reader->json.out;
    int type = lua_type(reader->L, -1);
    int status = STATUS_OK;
    out->len = 0;
    if (type == LUA_TNIL || (type == LUA_TLIGHTUSERDATA && lplace_is_null(reader->L, -1)))
        buffer_add(out, "{}", 2);
    else
        status = ljson_write(&reader->subject, LJSON_OPTIONS, &reader->json);
    target->options = out->bytes;
    target->options_len = out->len;
    return out->is_broken ? STATUS_NO_MEMORY : status;
}

// Hands on the target at the top.
static int read_target(struct reader *reader) {
    int index = lua_gettop(reader->L);
    struct target target;
    if (!lua_istable(reader->L, index))
        return refuse(reader, "must be a table with a url", LPLACE_GOT_VALUE);
    int status = read_fields(reader, index);
    if (status != STATUS_OK)
        return status;
    status = read_url(reader, &target);
    lua_pop(reader->L, 1);
    if (status == STATUS_OK)
        status = read_options(reader, &target);
    if (status == STATUS_OK && reader->take)
        status = reader->take(reader->context, &target);
    return status;
}

// Hands on the targets of the list at the top.
static int read_targets(struct reader *reader) {
    lua_State *L = reader->L;
    int index = lua_gettop(L);
    int64_t n_items;
    int status = STATUS_OK;
    if (!lua_istable(L, index) || lplace_is_empty(L, index))
        return refuse(reader, targets_rule, LPLACE_GOT_VALUE);
    if (!ljson_count_items(L, &n_items))
        return refuse(reader, targets_rule, LPLACE_GOT_KEY);
    for (int64_t i = 0; i < n_items && status == STATUS_OK; i++) {
        reader->subject.idx = i;
        lua_settop(L, index);
        lua_rawgeti(L, index, i + 1);
        status = read_target(reader);
    }
    return status;
}

// Has a reader read the value at the index.
static int run_reader(struct reader *reader, int index, int (*read)(struct reader *reader)) {
    lua_State *L = reader->L;
    struct buffer options;
    int top = lua_gettop(L);
    if (!lua_checkstack(L, LJSON_STACK_SLOTS))
        return refuse_memory(reader->subject.fault);
    lua_pushvalue(L, index);
    buffer_init(&options);
    json_init(&reader->json, &options);
    int status = read(reader);
    json_fini(&reader->json);
    buffer_fini(&options);
    lua_settop(L, top);
    return status == STATUS_NO_MEMORY ? refuse_memory(reader->subject.fault) : status;
}

int lvalue_each_target(lua_State *L, int index,
                       int (*take)(void *context, const struct target *target), void *context,
                       struct fault *fault) {
    struct reader reader = {
        .L = L,
        .subject = {L, fault, -1, "options", "option"},
        .take = take,
        .context = context,
    };
    return run_reader(&reader, index, read_targets);
}

static int append(void *context, const struct target *target) {
    struct targets *targets = context;
    targets_add(targets, target);
    return targets->packed.is_broken ? STATUS_NO_MEMORY : STATUS_OK;
}

int lvalue_targets(lua_State *L, int index, struct targets *targets, struct fault *fault) {
    int status = lvalue_each_target(L, index, append, targets, fault);
    if (status != STATUS_OK)
        targets_fini(targets);
    return status;
}

int lvalue_target(lua_State *L, int index, struct targets *targets, struct fault *fault) {
    struct reader reader = {
        .L = L,
        .subject = {L, fault, (int64_t)targets->count, "options", "option"},
        .take = append,
        .context = targets,
    };
    return run_reader(&reader, index, read_target);
}

int lvalue_json(lua_State *L, int index, struct buffer *out, struct fault *fault) {
    struct lplace_subject subject = {L, fault, -1, "meta", "meta field"};
    size_t before = out->len;
    struct json json;
    int top = lua_gettop(L);
    if (!lua_checkstack(L, LJSON_STACK_SLOTS))
        return refuse_memory(fault);
    lua_pushvalue(L, index);
    json_init(&json, out);
    int status = ljson_write(&subject, LJSON_ANY, &json);
    json_fini(&json);
    lua_settop(L, top);
    if (status != STATUS_OK)
        out->len = before;
    return status == STATUS_NO_MEMORY ? refuse_memory(fault) : status;
}

int lvalue_text(lua_State *L, int index, const char *name, const char **out_text, size_t *out_len,
                struct fault *fault) {
    struct lplace_subject subject = {L, fault, -1, name, NULL};
    struct lplace root = {.outer = NULL};
    int status = STATUS_OK;
    size_t len = 0;
    *out_text = NULL;
    *out_len = 0;
    lua_pushvalue(L, index);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
    if (!text)
        status = lplace_refuse(&subject, &root, "must be a string", LPLACE_GOT_VALUE);
    else if (!json_is_utf8(text, len))
        status = lplace_refuse(&subject, &root, "must be UTF-8", LPLACE_GOT_VALUE);
    lua_pop(L, 1);
    if (status != STATUS_OK)
        return status;
    *out_text = text;
    *out_len = len;
    return STATUS_OK;
}

#if LUA_VERSION_NUM >= 503

// Makes the value at the top, behind its key and its table, an integer there.
static void set_integer(lua_State *L) {
    int64_t integer;
    if (lua_isinteger(L, -1) || !compat_tointegral(L, -1, &integer) ||
        integer < -JSON_MAX_INTEGER || integer > JSON_MAX_INTEGER)
        return;
    lua_pushvalue(L, -2);
    lua_pushinteger(L, integer);
    lua_rawset(L, -5);
}

void lvalue_integers(lua_State *L, int index) {
    int top = lua_gettop(L);
    luaL_checkstack(L, LUA_MINSTACK, NULL);
    lua_pushvalue(L, index);
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    lua_pushnil(L);
    // At the top lies a table and, above it, the key that it was walked to; below, the same of each
    // table that it lies in.
    while (lua_gettop(L) > top) {
        if (!lua_next(L, -2)) {
            lua_pop(L, 1);
        } else if (lua_istable(L, -1)) {
            luaL_checkstack(L, LUA_MINSTACK, NULL);
            lua_pushnil(L);
        } else {
            set_integer(L);
            lua_pop(L, 1);
        }
    }
}

#else

void lvalue_integers(lua_State *L, int index) {
    (void)L;
    (void)index;
}

#endif
