// SPDX-License-Identifier: MIT
//
// A document as Lua renders it fastest: lists side by side, one entry for each node. The parsed
// document lies in a userdata while they are made, so that an error of Lua's, memory shortage above
// all, leaves nothing behind.
//
//   html.parse(text [, {max_bytes =, max_nodes =, max_seconds =, cancel_fd =, has_hidden =}])
//     -> {names =, texts =, ends =, lens =, link_lens =, title =, og_title =, base =},
//        or nil, message, code
//
//   html.trim(text) -> the text without white space at its ends; whether there was any at the
//     beginning; whether there was any at the end
//   html.has_any(text, signs) -> whether one of these bytes is in the text
//
// names[i] is the element's, or "" for a text; texts[i] the text, or the element's table of
// attributes, or false for one without; ends[i] the index of the last node inside, i if there is
// none; lens[i] the bytes of text inside, link_lens[i] of these what is inside links. Of a text
// link_lens[i] is 0 if it has none of the signs that mean something in Markdown.

#include "lhtml.h"

#include "html.h"
#include "largs.h"

#define DOCUMENT "batch.html"

static int free_document(lua_State *L) {
    struct html **document = luaL_checkudata(L, 1, DOCUMENT);
    html_free(*document);
    *document = NULL;
    return 0;
}

static double number_field(lua_State *L, int index, const char *name, double fallback) {
    lua_getfield(L, index, name);
    double value = lua_isnil(L, -1) ? fallback : luaL_checknumber(L, -1);
    lua_pop(L, 1);
    return value > 0 ? value : 0;
}

static void read_limits(lua_State *L, int index, struct html_limits *limits) {
    luaL_checktype(L, index, LUA_TTABLE);
    limits->max_bytes = (size_t)number_field(L, index, "max_bytes", (double)limits->max_bytes);
    limits->max_nodes = (size_t)number_field(L, index, "max_nodes", (double)limits->max_nodes);
    double seconds = number_field(L, index, "max_seconds", (double)limits->max_cpu_us / 1e6);
    limits->max_cpu_us = (int64_t)(seconds * 1e6);
    lua_getfield(L, index, "cancel_fd");
    if (!lua_isnil(L, -1))
        limits->cancel_fd = (int)luaL_checkinteger(L, -1);
    lua_getfield(L, index, "has_hidden");
    limits->has_hidden = lua_toboolean(L, -1);
    lua_pop(L, 2);
}

static void push_attributes(lua_State *L, const struct html *html, const struct html_node *node) {
    if (node->n_attributes == 0) {
        lua_pushboolean(L, false);
        return;
    }
    lua_createtable(L, 0, (int)node->n_attributes);
    for (uint32_t i = 0; i < node->n_attributes; i++) {
        const struct html_attribute *attribute = &html->attributes[node->first_attribute + i];
        lua_pushstring(L, attribute->value);
        lua_setfield(L, -2, attribute->name);
    }
}

// Fills the lists at 1 to 5 of the five that lie on the stack from lists on.
static void fill_lists(lua_State *L, int lists, const struct html *html) {
    for (size_t i = 0; i < html->n_nodes; i++) {
        const struct html_node *node = &html->nodes[i];
        int at = (int)i + 1;
        lua_pushstring(L, node->name ? node->name : "");
        lua_rawseti(L, lists, at);
        if (node->name)
            push_attributes(L, html, node);
        else
            lua_pushlstring(L, node->text, node->len);
        lua_rawseti(L, lists + 1, at);
        lua_pushinteger(L, (lua_Integer)node->end);
        lua_rawseti(L, lists + 2, at);
        lua_pushinteger(L, (lua_Integer)node->len);
        lua_rawseti(L, lists + 3, at);
        lua_pushinteger(L, (lua_Integer)(node->name ? node->link_len : node->has_signs));
        lua_rawseti(L, lists + 4, at);
    }
}

static int push_document(lua_State *L, const struct html *html) {
    static const char *const names[] = {"names", "texts", "ends", "lens", "link_lens"};
    enum { N_LISTS = sizeof names / sizeof *names };
    luaL_checkstack(L, N_LISTS + 4, "a document");
    lua_createtable(L, 0, N_LISTS + 3);
    int document = lua_gettop(L);
    for (int i = 0; i < N_LISTS; i++)
        lua_createtable(L, (int)html->n_nodes, 0);
    fill_lists(L, document + 1, html);
    for (int i = N_LISTS - 1; i >= 0; i--)
        lua_setfield(L, document, names[i]);
    lua_pushstring(L, html->title);
    lua_setfield(L, document, "title");
    lua_pushstring(L, html->og_title);
    lua_setfield(L, document, "og_title");
    lua_pushstring(L, html->base);
    lua_setfield(L, document, "base");
    return 1;
}

static int parse(lua_State *L) {
    struct html_limits limits = {
        .max_bytes = (size_t)512 << 20,
        .max_nodes = 2000000,
        .max_cpu_us = 10000000,
        .cancel_fd = -1,
    };
    struct fault fault;
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    if (!lua_isnoneornil(L, 2))
        read_limits(L, 2, &limits);
    struct html **document = lua_newuserdata(L, sizeof(struct html *));
    *document = NULL;
    luaL_setmetatable(L, DOCUMENT);
    int status = html_parse(text, len, &limits, document, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    push_document(L, *document);
    html_free(*document);
    *document = NULL;
    return 1;
}

// What Lua's patterns could do too, but they take ten times as long for each byte that they look
// at.

static bool is_space(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static int trim(lua_State *L) {
    size_t len, first = 0;
    const char *text = luaL_checklstring(L, 1, &len);
    size_t last = len;
    while (last > 0 && is_space(text[last - 1]))
        last--;
    while (first < last && is_space(text[first]))
        first++;
    if (last - first == len)
        lua_pushvalue(L, 1);
    else
        lua_pushlstring(L, text + first, last - first);
    lua_pushboolean(L, len > 0 && is_space(text[0]));
    lua_pushboolean(L, last < len);
    return 3;
}

static int has_any(lua_State *L) {
    size_t len, n_signs;
    const char *text = luaL_checklstring(L, 1, &len);
    const char *signs = luaL_checklstring(L, 2, &n_signs);
    bool is_sign[256] = {false}, is_found = false;
    for (size_t i = 0; i < n_signs; i++)
        is_sign[(unsigned char)signs[i]] = true;
    for (size_t i = 0; i < len && !is_found; i++)
        is_found = is_sign[(unsigned char)text[i]];
    lua_pushboolean(L, is_found);
    return 1;
}

static const luaL_Reg functions[] = {
    {"parse", parse},
    {"trim", trim},
    {"has_any", has_any},
    {NULL, NULL},
};

void lhtml_open(lua_State *L) {
    if (luaL_newmetatable(L, DOCUMENT)) {
        lua_pushcfunction(L, free_document);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 1);
    luaL_newlib(L, functions);
}
