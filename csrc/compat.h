// SPDX-License-Identifier: MIT
//
// One Lua API for Lua 5.4, 5.3 and LuaJIT (luajit2 2.1: the API of 5.1 and a part of 5.2's). Every
// file that knows Lua includes this instead of lua.h and writes as for 5.3, but takes no type from
// lua_rawget, lua_getfield and the like, which give none in LuaJIT.

#ifndef BATCH_COMPAT_H
#define BATCH_COMPAT_H

#include <lauxlib.h>
#include <lua.h>

#include <stdbool.h>
#include <stdint.h>

#ifndef LUA_OK
#define LUA_OK 0
#endif

#if LUA_VERSION_NUM == 501

#define lua_rawlen lua_objlen

static inline int lua_absindex(lua_State *L, int index) {
    bool is_relative = index < 0 && index > LUA_REGISTRYINDEX;
    return is_relative ? lua_gettop(L) + index + 1 : index;
}

static inline void lua_rawgetp(lua_State *L, int index, const void *key) {
    index = lua_absindex(L, index);
    lua_pushlightuserdata(L, (void *)key);
    lua_rawget(L, index);
}

// Sets the field to the value at the top and pops it.
static inline void lua_rawsetp(lua_State *L, int index, const void *key) {
    index = lua_absindex(L, index);
    lua_pushlightuserdata(L, (void *)key);
    lua_insert(L, -2);
    lua_rawset(L, index);
}

// Pushes what tostring(value) gives.
static inline const char *luaL_tolstring(lua_State *L, int index, size_t *out_len) {
    index = lua_absindex(L, index);
    int type = lua_type(L, index);
    if (luaL_callmeta(L, index, "__tostring")) {
        if (!lua_isstring(L, -1))
            luaL_error(L, "'__tostring' must return a string");
    } else if (type == LUA_TSTRING || type == LUA_TNUMBER) {
        lua_pushvalue(L, index);
    } else if (type == LUA_TNIL) {
        lua_pushliteral(L, "nil");
    } else if (type == LUA_TBOOLEAN) {
        lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
    } else {
        lua_pushfstring(L, "%s: %p", luaL_typename(L, index), lua_topointer(L, index));
    }
    return lua_tolstring(L, -1, out_len);
}

// Calls a function with a light userdata, protected even where memory for the call itself runs out:
// LuaJIT has to make an object of a C function before it can be pushed. Drops what it returns.
static inline int compat_cpcall(lua_State *L, lua_CFunction function, void *argument) {
    return lua_cpcall(L, function, argument);
}

#else

static inline int compat_cpcall(lua_State *L, lua_CFunction function, void *argument) {
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    return lua_pcall(L, 1, 0, 0);
}

#endif

// Whether there is a number (no text that looks like one) without a fraction that an int64_t holds.
static inline bool compat_tointegral(lua_State *L, int index, int64_t *out_value) {
    if (lua_type(L, index) != LUA_TNUMBER)
        return false;
#if LUA_VERSION_NUM >= 503
    int is_integral;
    *out_value = lua_tointegerx(L, index, &is_integral);
    return is_integral;
#else
    double value = lua_tonumber(L, index);
    // cppcheck-suppress incorrectLogicOperator ; it does not read hexadecimal floats
    if (!(value >= -0x1p63 && value < 0x1p63) || value != (double)(int64_t)value)
        return false;
    *out_value = (int64_t)value;
    return true;
#endif
}

#endif
