// SPDX-License-Identifier: MIT
//
//   http.decode(bytes [, charset]) -> text, charset, or nil, message, "invalid"

#include "lcharset.h"

#include "charset.h"
#include "largs.h"

#define TEXT "batch.http.text"

static int free_text(lua_State *L) {
    buffer_fini(luaL_checkudata(L, 1, TEXT));
    return 0;
}

static struct buffer *push_text(lua_State *L) {
    struct buffer *text = lua_newuserdata(L, sizeof *text);
    buffer_init(text);
    luaL_setmetatable(L, TEXT);
    return text;
}

static int decode(lua_State *L) {
    size_t len;
    const char *bytes = luaL_checklstring(L, 1, &len);
    const char *label = luaL_optstring(L, 2, NULL);
    struct charset_guess guess;
    struct buffer *text = push_text(L);
    int status = charset_guess(label, bytes, len, &guess);
    if (status == STATUS_OK)
        status = charset_decode(&guess, bytes, len, text);
    if (status == STATUS_NO_MEMORY)
        return luaL_error(L, "%s", status_message(status));
    if (status != STATUS_OK)
        return largs_refuse(L, STATUS_INVALID,
                            lua_pushfstring(L, "unknown charset '%s'", guess.label));
    lua_pushlstring(L, text->len ? text->bytes : "", text->len);
    buffer_fini(text);
    lua_pushstring(L, guess.label);
    return 2;
}

void lcharset_add(lua_State *L) {
    if (luaL_newmetatable(L, TEXT)) {
        lua_pushcfunction(L, free_text);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 1);
    lua_pushcfunction(L, decode);
    lua_setfield(L, -2, "decode");
}
