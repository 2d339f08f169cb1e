// SPDX-License-Identifier: MIT
//
// Sentences are put together in a buffer, whose memory is given back before the function returns.

#include "lplace.h"

#include "json.h"

#include <math.h>
#include <string.h>

// Enough to know a thing by, short enough that every sentence fits a struct fault.
enum { SHOWN_BYTES = 40, SHOWN_PATH_BYTES = 160 };

static void add_text(struct buffer *out, const char *text) {
    buffer_add(out, text, strlen(text));
}

static void describe_number(lua_State *L, int index, struct buffer *out) {
    int64_t integer;
    double number = lua_tonumber(L, index);
    if (compat_tointegral(L, index, &integer))
        json_integer(out, integer);
    else if (isfinite(number))
        json_number(out, number);
    else
        add_text(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
}

static void describe_text(lua_State *L, int index, struct buffer *out) {
    size_t len;
    const char *text = lua_tolstring(L, index, &len);
    buffer_add_byte(out, '"');
    bool is_whole = json_clean_utf8(out, text, len, SHOWN_BYTES);
    add_text(out, is_whole ? "\"" : "…\"");
}

static void describe_other(lua_State *L, int index, struct buffer *out) {
    if (lplace_is_null(L, index)) {
        json_null(out);
        return;
    }
    add_text(out, "a ");
    add_text(out, luaL_typename(L, index));
}

// Appends how a value is shown in a sentence: "many", 3.5, nil, an empty table. Long text is cut.
static void describe(lua_State *L, int index, struct buffer *out) {
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
        describe_text(L, index, out);
        break;
    case LUA_TNUMBER:
        describe_number(L, index, out);
        break;
    case LUA_TBOOLEAN:
        json_bool(out, lua_toboolean(L, index));
        break;
    case LUA_TNIL:
    case LUA_TNONE:
        add_text(out, "nil");
        break;
    case LUA_TTABLE:
        add_text(out, lplace_is_empty(L, index) ? "an empty table" : "a table");
        break;
    default:
        describe_other(L, index, out);
    }
}

static void add_path(struct buffer *out, const struct lplace *place) {
    if (!place->outer)
        return;
    add_path(out, place->outer);
    if (!place->key) {
        buffer_add_byte(out, '[');
        json_integer(out, place->item);
        buffer_add_byte(out, ']');
        return;
    }
    if (place->outer->outer)
        buffer_add_byte(out, '.');
    json_clean_utf8(out, place->key, place->key_len, SHOWN_BYTES);
}

static void add_inner(struct buffer *out, const char *inner, const struct lplace *place) {
    struct buffer path;
    buffer_init(&path);
    add_path(&path, place);
    add_text(out, inner);
    add_text(out, " '");
    bool is_whole = json_clean_utf8(out, path.bytes, path.len, SHOWN_PATH_BYTES);
    add_text(out, is_whole ? "': " : "…': ");
    buffer_fini(&path);
}

// "target 3: option 'a.b[2]': ", "target 3: options ", "target 3: ", "meta " or nothing.
static void add_place(const struct lplace_subject *subject, const struct lplace *place,
                      struct buffer *out) {
    if (subject->idx >= 0) {
        add_text(out, "target ");
        json_integer(out, subject->idx);
        add_text(out, ": ");
    }
    if (place && place->outer) {
        add_inner(out, subject->inner, place);
    } else if (place) {
        add_text(out, subject->name);
        buffer_add_byte(out, ' ');
    }
}

// Keeps the sentence in one line.
static void replace_controls(struct buffer *text) {
    for (size_t i = 0; i < text->len; i++)
        if ((unsigned char)text->bytes[i] < ' ' || text->bytes[i] == 0x7F)
            text->bytes[i] = '?';
}

static int set_fault(struct fault *fault, struct buffer *message) {
    int status = STATUS_INVALID;
    replace_controls(message);
    if (message->is_broken)
        status = fault_set(fault, STATUS_NO_MEMORY, "%s", status_message(STATUS_NO_MEMORY));
    else
        fault_set(fault, STATUS_INVALID, "%.*s", (int)message->len, message->bytes);
    buffer_fini(message);
    return status;
}

int lplace_refuse(const struct lplace_subject *subject, const struct lplace *place,
                  const char *rule, enum lplace_got got) {
    struct buffer message;
    buffer_init(&message);
    add_place(subject, place, &message);
    add_text(&message, rule);
    if (got != LPLACE_GOT_NOTHING) {
        add_text(&message, got == LPLACE_GOT_KEY ? ", got key " : ", got ");
        describe(subject->L, got, &message);
    }
    return set_fault(subject->fault, &message);
}

bool lplace_is_null(lua_State *L, int index) {
    return lua_type(L, index) == LUA_TLIGHTUSERDATA && !lua_touserdata(L, index);
}

bool lplace_is_empty(lua_State *L, int index) {
    lua_pushvalue(L, index);
    lua_pushnil(L);
    bool is_empty = !lua_next(L, -2);
    lua_pop(L, is_empty ? 1 : 3);
    return is_empty;
}
