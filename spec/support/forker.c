// SPDX-License-Identifier: MIT
//
// fork for specs that are written in Lua.

#include <lauxlib.h>
#include <lua.h>

#include <sys/wait.h>
#include <unistd.h>

// fork() → 0 in the child, the child's number in the parent
static int function_fork(lua_State *L) {
    lua_pushinteger(L, fork());
    return 1;
}

// wait(pid) → its exit status
static int function_wait(lua_State *L) {
    int status = 0;
    waitpid((pid_t)luaL_checkinteger(L, 1), &status, 0);
    lua_pushinteger(L, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 1;
}

// alarm(seconds): ends this process if it is still there then
static int function_alarm(lua_State *L) {
    alarm((unsigned)luaL_checkinteger(L, 1));
    return 0;
}

// leave(status): ends this process and nothing else
static int function_leave(lua_State *L) {
    _exit((int)luaL_checkinteger(L, 1));
}

__attribute__((visibility("default"))) int luaopen_forker(lua_State *L);

int luaopen_forker(lua_State *L) {
    lua_newtable(L);
    lua_pushcfunction(L, function_fork);
    lua_setfield(L, -2, "fork");
    lua_pushcfunction(L, function_wait);
    lua_setfield(L, -2, "wait");
    lua_pushcfunction(L, function_alarm);
    lua_setfield(L, -2, "alarm");
    lua_pushcfunction(L, function_leave);
    lua_setfield(L, -2, "leave");
    return 1;
}
