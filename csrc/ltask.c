// SPDX-License-Identifier: MIT
//
// The manual executor's half of the Lua face: tasks in the program's own hands, and draining in its
// own state. The same core calls as the workers'.

#include "lcall.h"
#include "largs.h"
#include "lrows.h"
#include "lrunner.h"

#include <math.h>
#include <stdlib.h>

static void unlink_task(struct ltask *handle) {
    if (handle->prev)
        handle->prev->next = handle->next;
    else
        handle->owner->tasks = handle->next;
    if (handle->next)
        handle->next->prev = handle->prev;
    handle->task = NULL;
    handle->next = handle->prev = NULL;
}

// In a fork's child the task is its parent's: it is only forgotten.
static void give_back(struct ltask *handle) {
    struct task *task = handle->task;
    struct runner *runner = handle->owner->runner;
    unlink_task(handle);
    if (runner_foreign_pid(runner))
        return;
    task->verdict = VERDICT_NONE;
    runner_finish(runner, task);
}

void ltask_give_back_all(struct lrunner *owner) {
    while (owner->tasks)
        give_back(owner->tasks);
}

static int handle_gc(lua_State *L) {
    struct ltask *handle = luaL_checkudata(L, 1, LTASK_TYPE);
    if (handle->task)
        give_back(handle);
    return 0;
}

// Pushes the table that users see; its field _handle is what it stands for.
static void push_task(lua_State *L, const struct task *task) {
    lua_createtable(L, 0, 9);
    lrows_set_text(L, "url", (struct bytes){task->target.url, task->target.url_len});
    lcall_push_json(L, (struct bytes){task->target.options, task->target.options_len});
    lua_setfield(L, -2, "options");
    lua_pushstring(L, task->job_id);
    lua_setfield(L, -2, "job");
    lrows_set_integer(L, "idx", task->idx);
    lrows_set_text(L, "caller", task->caller);
    lrows_set_text(L, "class", task->class_name);
    lrows_set_integer(L, "attempt", task->attempt);
    lrows_set_moment(L, "deadline", task->deadline_ms);
}

// take() → task, or nil, seconds
static int method_take(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct ltask *handle = lua_newuserdata(L, sizeof *handle);
    *handle = (struct ltask){.owner = box};
    luaL_getmetatable(L, LTASK_TYPE);
    lua_setmetatable(L, -2);
    struct task *task;
    int64_t wait_us;
    if (runner_take(box->runner, NULL, &task, &wait_us)) {
        lua_pushnil(L);
        lua_pushnumber(L, (double)wait_us / 1e6);
        return 2;
    }
    handle->task = task;
    handle->next = box->tasks;
    if (box->tasks)
        box->tasks->prev = handle;
    box->tasks = handle;
    push_task(L, task);
    lua_insert(L, -2);
    lua_setfield(L, -2, "_handle");
    return 1;
}

static struct ltask *check_task(lua_State *L, struct lrunner *box) {
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_getfield(L, 2, "_handle");
    struct ltask *handle = luaL_testudata(L, -1, LTASK_TYPE);
    luaL_argcheck(L, handle && handle->owner == box, 2, "a task of this runner expected");
    luaL_argcheck(L, handle->task != NULL, 2, "the task is finished already");
    lua_pop(L, 1);
    return handle;
}

static int finish(lua_State *L, struct lrunner *box, struct ltask *handle) {
    struct task *task = handle->task;
    unlink_task(handle);
    runner_finish(box->runner, task);
    lua_pushboolean(L, true);
    return 1;
}

// finish(task, …): the values that a fetch would have returned
static int method_finish(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct ltask *handle = check_task(L, box);
    lcall_verdict(L, 3, handle->task);
    return finish(L, box, handle);
}

static int method_fail(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct ltask *handle = check_task(L, box);
    struct bytes message, hint;
    message.start = luaL_checklstring(L, 3, &message.len);
    hint.start = luaL_optlstring(L, 4, NULL, &hint.len);
    task_fail(handle->task, message, hint);
    return finish(L, box, handle);
}

static int method_later(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    struct ltask *handle = check_task(L, box);
    struct bytes message;
    message.start = luaL_checklstring(L, 3, &message.len);
    double seconds = luaL_optnumber(L, 4, -1);
    luaL_argcheck(L, lua_isnoneornil(L, 4) || seconds >= 0, 4, "seconds must not be negative");
    int64_t wait_ms = seconds < 0 ? -1 : (int64_t)fmin(ceil(seconds * 1e3), 1e15);
    task_postpone(handle->task, message, wait_ms, false);
    return finish(L, box, handle);
}

// give_back(task): as if it had not been taken
static int method_give_back(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    give_back(check_task(L, box));
    lua_pushboolean(L, true);
    return 1;
}

// is_cancelled(task) → whether its result is not wanted any more
static int method_is_cancelled(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    lua_pushboolean(L, runner_is_cancelled(box->runner, check_task(L, box)->task));
    return 1;
}

// drain_one(fetch) → whether a target was fetched, whether it got its outcome
static int method_drain_one(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    const struct runner_config *config = runner_config(box->runner);
    struct lcall call = {
        .L = L, .hand = &box->hand, .clock = config->clock, .n_cached = LCALL_MAX_CACHED};
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_argcheck(L, !box->is_draining, 1, "drain called by the fetch of drain");
    luaL_checkstack(L, 20, NULL);
    lua_settop(L, 2);
    struct lcall *outer = lcall_attach(L, &call);
    hand_reset(&box->hand);
    struct task *task;
    int64_t wait_us;
    bool has_outcome = false;
    bool is_taken = runner_take(box->runner, &box->hand, &task, &wait_us) == STATUS_OK;
    if (is_taken) {
        lua_Hook hook = lua_gethook(L);
        int mask = lua_gethookmask(L), count = lua_gethookcount(L);
        box->is_draining = true;
        lcall_run(&call, task);
        lua_sethook(L, hook, mask, count);
        box->is_draining = false;
        has_outcome = runner_finish(box->runner, task);
    }
    lcall_attach(L, outer);
    lua_pushboolean(L, is_taken);
    lua_pushboolean(L, has_outcome);
    return 2;
}

// wait_for_work(seconds) → whether there is a live job to go on with, seconds until the first of
// them may go on if all of them wait
static int method_wait_for_work(lua_State *L) {
    struct lrunner *box = lrunner_check(L, 1);
    int64_t timeout_us = (int64_t)(luaL_checknumber(L, 2) * 1e6);
    lua_pushboolean(L, runner_wait_for_work(box->runner, timeout_us));
    int64_t idle_us = runner_idle_us(box->runner);
    if (idle_us < 0)
        return 1;
    lua_pushnumber(L, (double)idle_us / 1e6);
    return 2;
}

const luaL_Reg ltask_methods[] = {
    {"take", method_take},
    {"finish", method_finish},
    {"fail", method_fail},
    {"later", method_later},
    {"give_back", method_give_back},
    {"is_cancelled", method_is_cancelled},
    {"drain_one", method_drain_one},
    {"wait_for_work", method_wait_for_work},
    {NULL, NULL},
};

void ltask_register(lua_State *L) {
    luaL_newmetatable(L, LTASK_TYPE);
    lua_pushcfunction(L, handle_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}
