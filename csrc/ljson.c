// SPDX-License-Identifier: MIT
//
// A walk down the table that writes as it goes. All of it keeps to calls that cannot raise: tables
// are read raw, text is only asked of strings, and the stack is the caller's to prepare.

#include "ljson.h"

#include "canonical.h"

#include <math.h>

static const char object_rule[] = "must be a table with string keys";
static const char table_rule[] = "must be a table with string keys or a list without holes";
static const char size_rule[] = "must be at most 256 MiB long";

// A value on the way down and, while it is a table, how far it was walked.
struct step {
    struct lplace place;
    const struct step *outer;  // NULL: the root
    int depth;                 // 1: the root
    int type;                  // lua_type
    bool is_absent;            // a member that is not written
    const void *identity;      // of a table
    bool is_list;
    int64_t n_items;  // of a list
    int64_t n_begun;
    size_t mark;    // of an object
    bool is_ahead;  // its next pair lies on the stack already
};

struct walk {
    lua_State *L;
    const struct lplace_subject *subject;
    struct json *json;
    size_t max_len;  // of the output
    bool is_options;
};

static int refuse(const struct walk *walk, const struct step *step, const char *rule,
                  enum lplace_got got) {
    return lplace_refuse(walk->subject, &step->place, rule, got);
}

static int add_string(struct walk *walk, const struct step *step) {
    size_t len;
    const char *text = lua_tolstring(walk->L, -1, &len);
    if (len > LJSON_MAX_BYTES)
        return refuse(walk, step, size_rule, LPLACE_GOT_VALUE);
    if (!json_is_utf8(text, len))
        return refuse(walk, step, "must be UTF-8", LPLACE_GOT_VALUE);
    json_string(walk->json->out, text, len);
    return STATUS_OK;
}

static int add_number(struct walk *walk, const struct step *step) {
    double number = lua_tonumber(walk->L, -1);
    int64_t integer;
    bool is_integral = compat_tointegral(walk->L, -1, &integer);
    if (is_integral && integer >= -JSON_MAX_INTEGER && integer <= JSON_MAX_INTEGER) {
        json_integer(walk->json->out, integer);
        return STATUS_OK;
    }
    if (!isfinite(number))
        return refuse(walk, step, "must be a finite number", LPLACE_GOT_VALUE);
    // Doubles of such a size have no fraction.
    if (is_integral || fabs(number) > (double)JSON_MAX_INTEGER)
        return refuse(walk, step, "must be a number from -2^53 to 2^53", LPLACE_GOT_VALUE);
    json_number(walk->json->out, number);
    return STATUS_OK;
}

static int add_scalar(struct walk *walk, const struct step *step) {
    switch (step->type) {
    case LUA_TSTRING:
        return add_string(walk, step);
    case LUA_TNUMBER:
        return add_number(walk, step);
    case LUA_TBOOLEAN:
        json_bool(walk->json->out, lua_toboolean(walk->L, -1));
        return STATUS_OK;
    case LUA_TNIL:
        return refuse(walk, step, "must not be a hole in a list", LPLACE_GOT_VALUE);
    default:
        if (!lplace_is_null(walk->L, -1))
            return refuse(walk, step, "must be a value that JSON holds", LPLACE_GOT_VALUE);
        json_null(walk->json->out);
        return STATUS_OK;
    }
}

static bool is_inside_itself(const struct step *step) {
    for (const struct step *outer = step->outer; outer; outer = outer->outer)
        if (outer->identity == step->identity)
            return true;
    return false;
}

static int open_list(struct walk *walk, struct step *step) {
    if (!step->outer)
        return refuse(walk, step, object_rule, LPLACE_GOT_KEY);
    lua_pop(walk->L, 2);
    if (!ljson_count_items(walk->L, &step->n_items))
        return refuse(walk, step, table_rule, LPLACE_GOT_KEY);
    buffer_add_byte(walk->json->out, '[');
    return STATUS_OK;
}

// Begins the table at the top: a list when its first key is no string. Returns STATUS_NOTHING when
// it is empty. Above a list it leaves nothing; above an object its first pair.
static int open_table(struct walk *walk, struct step *step) {
    lua_State *L = walk->L;
    step->identity = lua_topointer(L, -1);
    if (is_inside_itself(step))
        return refuse(walk, step, "must not be a table that it lies in", LPLACE_GOT_NOTHING);
    if (step->depth > LJSON_MAX_DEPTH)
        return refuse(walk, step, "must be at most 100 tables deep", LPLACE_GOT_NOTHING);
    lua_pushnil(L);
    step->is_ahead = lua_next(L, -2);
    step->is_list = step->is_ahead && lua_type(L, -2) != LUA_TSTRING;
    if (step->is_list)
        return open_list(walk, step);
    step->mark = json_begin_object(walk->json);
    return step->is_ahead ? STATUS_OK : STATUS_NOTHING;
}

static void close_table(struct walk *walk, const struct step *step) {
    if (step->is_list)
        buffer_add_byte(walk->json->out, ']');
    else
        json_end_object(walk->json, step->mark);
}

// Checks the type of an option, whose value is at the top, and finds the values that say nothing.
static int check_option(const struct walk *walk, struct step *option, enum canonical_rank rank) {
    switch (canonical_kind(rank)) {
    case CANONICAL_TEXT:
        if (option->type != LUA_TSTRING)
            return refuse(walk, option, "must be a string", LPLACE_GOT_VALUE);
        option->is_absent = lua_rawlen(walk->L, -1) == 0;
        break;
    case CANONICAL_FLAG:
        if (option->type != LUA_TBOOLEAN)
            return refuse(walk, option, "must be a boolean", LPLACE_GOT_VALUE);
        option->is_absent = !lua_toboolean(walk->L, -1);
        break;
    case CANONICAL_ANY:
        break;
    }
    return STATUS_OK;
}

// Reads the key of the member whose value is at the top.
static int read_key(const struct walk *walk, const struct step *object, struct step *member) {
    struct lplace *place = &member->place;
    if (lua_type(walk->L, -2) != LUA_TSTRING)
        return refuse(walk, object, object->outer ? table_rule : object_rule, LPLACE_GOT_KEY);
    place->key = lua_tolstring(walk->L, -2, &place->key_len);
    if (place->key_len > LJSON_MAX_BYTES)
        return refuse(walk, object, size_rule, LPLACE_GOT_KEY);
    if (!json_is_utf8(place->key, place->key_len))
        return refuse(walk, object, "must have keys in UTF-8", LPLACE_GOT_KEY);
    return STATUS_OK;
}

// Writes the key of the member whose value is at the top, unless it is absent.
static int begin_member(struct walk *walk, const struct step *object, struct step *member) {
    enum canonical_rank rank = CANONICAL_FURTHER;
    int status = read_key(walk, object, member);
    member->type = lua_type(walk->L, -1);
    member->is_absent = member->type == LUA_TLIGHTUSERDATA && lplace_is_null(walk->L, -1);
    if (status == STATUS_OK && !member->is_absent && walk->is_options && !object->outer) {
        rank = canonical_rank(member->place.key, member->place.key_len);
        status = check_option(walk, member, rank);
    }
    if (status == STATUS_OK && !member->is_absent)
        json_key(walk->json, (int)rank, member->place.key, member->place.key_len);
    return status;
}

static int next_member(struct walk *walk, struct step *object, struct step *member) {
    if (!object->is_ahead && !lua_next(walk->L, -2))
        return STATUS_NOTHING;
    object->is_ahead = false;
    return begin_member(walk, object, member);
}

static int next_item(struct walk *walk, struct step *list, struct step *item) {
    if (list->n_begun == list->n_items)
        return STATUS_NOTHING;
    item->place.item = ++list->n_begun;
    lua_rawgeti(walk->L, -1, item->place.item);
    item->type = lua_type(walk->L, -1);
    json_comma(walk->json->out);
    return STATUS_OK;
}

// Pushes the next value inside of the table, or returns STATUS_NOTHING.
static int next_child(struct walk *walk, struct step *step, struct step *out_child) {
    if (walk->json->out->is_broken)
        return STATUS_NO_MEMORY;
    if (walk->json->out->len > walk->max_len)
        return refuse(walk, step, size_rule, LPLACE_GOT_NOTHING);
    *out_child =
        (struct step){.place.outer = &step->place, .outer = step, .depth = step->depth + 1};
    return step->is_list ? next_item(walk, step, out_child) : next_member(walk, step, out_child);
}

// Writes the value at the top. What it pushes, it pops.
static int walk_value(struct walk *walk, struct step *step) {
    if (step->is_absent)
        return STATUS_OK;
    if (step->type != LUA_TTABLE)
        return add_scalar(walk, step);
    struct step child;
    int status = open_table(walk, step);
    while (status == STATUS_OK) {
        status = next_child(walk, step, &child);
        if (status == STATUS_OK)
            status = walk_value(walk, &child);
        if (status == STATUS_OK)
            lua_pop(walk->L, 1);
    }
    if (status != STATUS_NOTHING)
        return status;
    close_table(walk, step);
    return STATUS_OK;
}

int ljson_write(const struct lplace_subject *subject, enum ljson_kind kind, struct json *json) {
    struct walk walk = {
        .L = subject->L,
        .subject = subject,
        .json = json,
        .max_len = json->out->len + LJSON_MAX_BYTES,
        .is_options = kind == LJSON_OPTIONS,
    };
    struct step root = {.depth = 1, .type = lua_type(walk.L, -1)};
    if (root.type != LUA_TTABLE)
        return refuse(&walk, &root, object_rule, LPLACE_GOT_VALUE);
    int status = walk_value(&walk, &root);
    return json->out->is_broken ? STATUS_NO_MEMORY : status;
}

bool ljson_count_items(lua_State *L, int64_t *out_n_items) {
    int64_t n_items = 0;
    int64_t key;
    lua_pushnil(L);
    for (; lua_next(L, -2); n_items++) {
        if (!compat_tointegral(L, -2, &key) || key < 1)
            return false;
        lua_pop(L, 1);
    }
    *out_n_items = n_items;
    return true;
}
