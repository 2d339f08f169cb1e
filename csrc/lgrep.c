// SPDX-License-Identifier: MIT
//
// What C needs while it works lies in a userdata, so that an error of Lua's, memory shortage above
// all, leaves nothing behind.
//
//   grep.lines(text, pattern, n_context, cpu_seconds [, cancel_fd])
//     -> text, n_matches, or nil, code, message, line: the code is "invalid" for a pattern, without
//        line, or what cannot be matched; "timeout" for a pattern that takes too long; "closed" for
//        a cancelled search
//   grep.check(pattern) -> true, or nil, code, message

#include "lgrep.h"

#include "compat.h"
#include "grep.h"

#include <string.h>

#define SEARCH "batch.grep.search"

struct search {
    struct pattern *pattern;
    struct grep_found found;
};

static int free_search(lua_State *L) {
    struct search *search = luaL_checkudata(L, 1, SEARCH);
    pattern_close(search->pattern);
    search->pattern = NULL;
    buffer_fini(&search->found.text);
    return 0;
}

static struct search *push_search(lua_State *L) {
    struct search *search = lua_newuserdata(L, sizeof *search);
    memset(search, 0, sizeof *search);
    luaL_getmetatable(L, SEARCH);
    lua_setmetatable(L, -2);
    return search;
}

static int refuse(lua_State *L, int status, const struct fault *fault) {
    if (status == STATUS_NO_MEMORY)
        return luaL_error(L, "%s", status_message(status));
    lua_pushnil(L);
    lua_pushstring(L, status_code(status));
    lua_pushstring(L, fault->text);
    return 3;
}

static int lines(lua_State *L) {
    size_t len, pattern_len;
    const char *text = luaL_checklstring(L, 1, &len);
    const char *pattern = luaL_checklstring(L, 2, &pattern_len);
    size_t n_context = (size_t)luaL_checkinteger(L, 3);
    int64_t span_us = (int64_t)(luaL_checknumber(L, 4) * 1e6);
    int cancel_fd = (int)luaL_optinteger(L, 5, -1);
    struct fault fault = {""};
    struct search *search = push_search(L);
    int status = pattern_open(pattern, pattern_len, &search->pattern, &fault);
    if (status != STATUS_OK)
        return refuse(L, status, &fault);
    pattern_allow(search->pattern, span_us, cancel_fd);
    status = grep_lines(search->pattern, text, len, n_context, &search->found, &fault);
    if (status != STATUS_OK) {
        int n_results = refuse(L, status, &fault);
        lua_pushinteger(L, (lua_Integer)search->found.n_lines);
        return n_results + 1;
    }
    lua_pushlstring(L, search->found.text.len ? search->found.text.bytes : "",
                    search->found.text.len);
    lua_pushinteger(L, (lua_Integer)search->found.n_matches);
    // Now, for a collection may be long in coming and the text large.
    pattern_close(search->pattern);
    search->pattern = NULL;
    buffer_fini(&search->found.text);
    return 2;
}

static int check(lua_State *L) {
    size_t len;
    const char *pattern = luaL_checklstring(L, 1, &len);
    struct fault fault;
    int status = pattern_check(pattern, len, &fault);
    if (status != STATUS_OK)
        return refuse(L, status, &fault);
    lua_pushboolean(L, true);
    return 1;
}

static const luaL_Reg functions[] = {{"lines", lines}, {"check", check}, {NULL, NULL}};

int lgrep_open(lua_State *L) {
    if (luaL_newmetatable(L, SEARCH)) {
        lua_pushcfunction(L, free_search);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
