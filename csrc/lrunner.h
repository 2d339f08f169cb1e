// SPDX-License-Identifier: MIT
//
// The Lua face of a runner: a userdata with the calls that batch.lua builds its methods on.

#ifndef BATCH_LRUNNER_H
#define BATCH_LRUNNER_H

#include "compat.h"
#include "lworker.h"
#include "runner.h"

struct lrunner;

// A task in the program's hands. Its runner keeps a list of them, so that a close or a collected
// handle gives the target back, whichever comes first.
struct ltask {
    struct task *task;  // NULL: finished, or its runner is closed
    struct lrunner *owner;
    struct ltask *next;
    struct ltask *prev;
};

struct lrunner {
    struct runner *runner;  // NULL: closed
    struct lworker_source *source;
    struct ltask *tasks;
    struct hand hand;  // of drain
    bool is_draining;  // the fetch of drain runs
    bool has_ended;    // runner_close has returned 0
};

#define LRUNNER_TYPE "batch.runner"
#define LTASK_TYPE "batch.task"

// core.open(settings) → runner, or nil, message, code.
int lrunner_open(lua_State *L);

// Raises for what is no runner, is closed, or was opened before a fork.
struct lrunner *lrunner_check(lua_State *L, int index);

// The argument as an id; text with a NUL in it, which is none, becomes "".
const char *lrunner_check_id(lua_State *L, int index);

// Pushes the next event as a table, or nothing when there is none. Returns the number of values.
int lrunner_push_event(lua_State *L, struct runner *runner);

// Makes the metatables, with the methods of all files of lrunner and of ltask.c.
void lrunner_register(lua_State *L);

// Puts the tasks that the program still holds back, so that none of them knows its runner any more.
void ltask_give_back_all(struct lrunner *owner);

// What hooks are called by, in the order of enum event_kind.
extern const char *const lrunner_event_names[EVENT_N_KINDS];

extern const luaL_Reg lrunner_read_methods[];
extern const luaL_Reg lrunner_json_methods[];
extern const luaL_Reg lrunner_report_methods[];
extern const luaL_Reg ltask_methods[];
void ltask_register(lua_State *L);

#endif
