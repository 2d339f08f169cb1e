// SPDX-License-Identifier: MIT
//
// Nothing here holds on to anything: what is lent is given back before it returns or raises.

#include "lreading.h"

#include "largs.h"
#include "lrunner.h"

int lreading_run(lua_State *L, struct reading *reading, lua_CFunction push) {
    struct fault fault;
    int base = lua_gettop(L), n_arguments = reading->argument ? 2 : 1;
    lua_pushcfunction(L, push);  // may raise in LuaJIT: before the connection is lent
    lua_pushlightuserdata(L, reading);
    if (reading->argument)
        lua_pushvalue(L, reading->argument);
    int status = runner_begin_read(reading->runner, &reading->store, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    int failed = lua_pcall(L, n_arguments, LUA_MULTRET, 0);
    bool has_sentence = reading->status != STATUS_NOT_FOUND && reading->status != STATUS_EXPIRED;
    if (reading->status)
        fault_set(&fault, reading->status, "%s",
                  has_sentence ? reading->store->fault.text : status_message(reading->status));
    runner_end_read(reading->runner, reading->store);
    buffer_fini(&reading->text);
    if (failed)
        return lua_error(L);
    if (reading->status)
        return largs_refuse(L, reading->status, fault.text);
    return lua_gettop(L) - base;
}

int64_t lreading_count(lua_State *L, int index, int64_t if_absent) {
    if (lua_isnoneornil(L, index))
        return if_absent;
    return largs_check_whole(L, index, 1);
}

void lreading_filter(lua_State *L, struct job_filter *filter) {
    filter->caller.start = luaL_optlstring(L, 2, NULL, &filter->caller.len);
    const char *status = luaL_optstring(L, 3, NULL);
    filter->status = status ? job_status_parse(status) : -1;
    filter->limit = lreading_count(L, 4, 100);
    filter->before = lua_isnoneornil(L, 5) ? NULL : lrunner_check_id(L, 5);
}
