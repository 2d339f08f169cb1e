// SPDX-License-Identifier: MIT
//
// A slot is a userdata, so that it comes back whatever becomes of the fetch that took it: given
// back, raised through, stopped by its time-out, or collected with its state.
//
//   http.enter(key, url, {limit =, delay =, lasts =, who =}) -> slot
//     or false and the seconds after which to come back
//     or nil, message, hint, kind for what is no URL
//   slot:run(f, ...) -> what f returns, with the slot given back whatever happens
//   slot:leave(), also __gc and __close
//   http.address(url) -> the URL as it would be requested, without its fragment, and its host
//     with the port; or nil, message, hint, kind

#include "lhosts.h"

#include "hosts.h"

#include <math.h>
#include <string.h>

#define SLOT "batch.http.slot"
#define ADDRESS "batch.http.address"

static const double MAX_SECONDS = 1e9;

int lhosts_refuse(lua_State *L, const struct http_fault *fault) {
    lua_pushnil(L);
    lua_pushstring(L, fault->fault.text);
    lua_pushstring(L, fault->hint);  // nil for NULL
    lua_pushstring(L, http_kind_word(fault->kind));
    return 4;
}

static int free_address(lua_State *L) {
    http_address_fini(luaL_checkudata(L, 1, ADDRESS));
    return 0;
}

// Pushes a userdata that owns what it reads, so that an error of Lua's loses nothing.
static struct http_address *push_address(lua_State *L, int index, struct http_fault *out_fault) {
    size_t len;
    luaL_checktype(L, index, LUA_TSTRING);
    const char *url = lua_tolstring(L, index, &len);
    struct http_address *address = lua_newuserdata(L, sizeof *address);
    memset(address, 0, sizeof *address);
    luaL_setmetatable(L, ADDRESS);
    return http_address_read(url, len, address, out_fault) == STATUS_OK ? address : NULL;
}

static int function_address(lua_State *L) {
    struct http_fault fault;
    struct http_address *address = push_address(L, 1, &fault);
    if (!address)
        return lhosts_refuse(L, &fault);
    lua_pushstring(L, address->url);
    lua_pushstring(L, address->host);
    http_address_fini(address);
    return 2;
}

static double read_field(lua_State *L, int index, const char *name, double least, double fallback) {
    lua_getfield(L, index, name);
    double value = lua_isnil(L, -1) ? fallback : luaL_checknumber(L, -1);
    if (!(value >= least))
        luaL_error(L, "%s must be a number from %d", name, (int)least);
    lua_pop(L, 1);
    return fmin(value, MAX_SECONDS);
}

// What points to strings on the stack, or in the table at index 3, stays valid while they do.
static void read_wish(lua_State *L, const char *url, struct hosts_wish *out_wish) {
    out_wish->limit = (unsigned)read_field(L, 3, "limit", 1, 1);
    out_wish->delay_us = (int64_t)(read_field(L, 3, "delay", 0, 0) * 1e6);
    out_wish->lasts_us = (int64_t)(read_field(L, 3, "lasts", 0, 3600) * 1e6);
    out_wish->who = url;
    out_wish->who_len = strlen(url);
    lua_getfield(L, 3, "who");
    if (!lua_isnil(L, -1)) {
        luaL_checktype(L, -1, LUA_TSTRING);
        out_wish->who = lua_tolstring(L, -1, &out_wish->who_len);
    }
}

static struct hosts_slot *push_slot(lua_State *L) {
    struct hosts_slot *slot = lua_newuserdata(L, sizeof *slot);
    memset(slot, 0, sizeof *slot);
    luaL_setmetatable(L, SLOT);
    return slot;
}

static int function_enter(lua_State *L) {
    struct hosts_wish wish;
    struct http_fault fault;
    int64_t wait_us;
    luaL_checktype(L, 1, LUA_TSTRING);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 3);
    struct http_address *address = push_address(L, 2, &fault);
    if (!address)
        return lhosts_refuse(L, &fault);
    read_wish(L, address->url, &wish);
    lua_pushvalue(L, 1);
    lua_pushlstring(L, "\0", 1);
    lua_pushstring(L, address->host);
    lua_concat(L, 3);
    wish.name = lua_tolstring(L, -1, &wish.name_len);
    struct hosts_slot *slot = push_slot(L);
    int status = hosts_enter(hosts_shared(), &wish, slot, &wait_us);
    if (status == STATUS_OK)
        return 1;
    if (status != STATUS_BUSY)
        return luaL_error(L, "%s", status_message(status));
    lua_pushboolean(L, false);
    lua_pushnumber(L, (lua_Number)wait_us / 1e6);
    return 2;
}

static int leave(lua_State *L) {
    hosts_leave(luaL_checkudata(L, 1, SLOT));
    return 0;
}

#if LUA_VERSION_NUM >= 504

static int run(lua_State *L) {
    luaL_checkudata(L, 1, SLOT);
    luaL_checkany(L, 2);
    int n_arguments = lua_gettop(L) - 2;
    lua_toclose(L, 1);
    lua_call(L, n_arguments, LUA_MULTRET);
    return lua_gettop(L) - 1;
}

#else

static int run(lua_State *L) {
    struct hosts_slot *slot = luaL_checkudata(L, 1, SLOT);
    luaL_checkany(L, 2);
    int failed = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    hosts_leave(slot);
    return failed ? lua_error(L) : lua_gettop(L) - 1;
}

#endif

static const luaL_Reg methods[] = {{"run", run}, {"leave", leave}, {NULL, NULL}};
static const luaL_Reg functions[] = {
    {"enter", function_enter},
    {"address", function_address},
    {NULL, NULL},
};

void lhosts_add(lua_State *L) {
    if (luaL_newmetatable(L, SLOT)) {
        lua_pushcfunction(L, leave);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, "__gc");
        lua_setfield(L, -2, "__close");
        luaL_newlib(L, methods);
        lua_setfield(L, -2, "__index");
        lua_pushliteral(L, SLOT);
        lua_setfield(L, -2, "__name");
    }
    if (luaL_newmetatable(L, ADDRESS)) {
        lua_pushcfunction(L, free_address);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 2);
    luaL_setfuncs(L, functions, 0);
}
