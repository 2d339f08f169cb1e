// SPDX-License-Identifier: MIT
//
// Field by field, under the names that SQL, HTTP and the command line use too.

#include "lrows.h"

#include "lcall.h"

#include <string.h>

void lrows_set_text(lua_State *L, const char *name, struct bytes text) {
    if (!text.start)
        return;
    lua_pushlstring(L, text.start, text.len);
    lua_setfield(L, -2, name);
}

void lrows_set_word(lua_State *L, const char *name, const char *word) {
    if (word)
        lrows_set_text(L, name, (struct bytes){word, strlen(word)});
}

void lrows_set_moment(lua_State *L, const char *name, int64_t ms) {
    if (!ms)
        return;
    lua_pushnumber(L, (double)ms / 1e3);
    lua_setfield(L, -2, name);
}

void lrows_set_integer(lua_State *L, const char *name, int64_t value) {
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

void lrows_push_job(lua_State *L, const struct job_row *job) {
    lua_createtable(L, 0, 14);
    lrows_set_word(L, "id", job->id);
    lrows_set_word(L, "status", job_status_name(job->status));
    lrows_set_word(L, "error", job->error);
    lrows_set_text(L, "caller", job->caller);
    lrows_set_text(L, "class", job->class_name);
    lrows_set_integer(L, "targets_total", job->targets_total);
    lrows_set_integer(L, "targets_done", job->targets_done);
    lrows_set_integer(L, "targets_failed", job->targets_failed);
    lrows_set_integer(L, "bytes", job->bytes);
    lrows_set_moment(L, "created_at", job->created_at);
    lrows_set_moment(L, "started_at", job->started_at);
    lrows_set_moment(L, "finished_at", job->finished_at);
    lrows_set_moment(L, "expires_at", job->expires_at);
}

static void set_result(lua_State *L, const struct outcome *outcome) {
    lua_createtable(L, 0, 2);
    lrows_set_text(L, "content", outcome->content);
    if (outcome->meta.start) {
        lcall_push_json(L, outcome->meta);
        lua_setfield(L, -2, "meta");
    }
    lua_setfield(L, -2, "result");
}

static void set_outcome(lua_State *L, const struct target_row *target, bool has_content) {
    const struct outcome *outcome = &target->outcome;
    bool is_done = !outcome->error.start;
    lrows_set_word(L, "status", is_done ? "done" : "failed");
    if (is_done && has_content)
        set_result(L, outcome);
    lrows_set_text(L, "error", outcome->error);
    lrows_set_text(L, "hint", outcome->hint);
    lrows_set_moment(L, "started_at", outcome->started_at);
    lrows_set_moment(L, "finished_at", outcome->finished_at);
}

void lrows_push_target(lua_State *L, const struct target_row *target, bool has_content) {
    lua_createtable(L, 0, 11);
    lrows_set_integer(L, "idx", target->idx);
    lua_pushlstring(L, target->input.url, target->input.url_len);
    lua_setfield(L, -2, "url");
    lcall_push_json(L, (struct bytes){target->input.options, target->input.options_len});
    lua_setfield(L, -2, "options");
    lrows_set_integer(L, "attempts", target->outcome.attempts);
    if (target->seq)
        set_outcome(L, target, has_content);
    else
        lrows_set_word(L, "status", "pending");
    if (target->job_id[0]) {
        lrows_set_word(L, "job", target->job_id);
        lrows_set_integer(L, "seq", target->seq);
    }
}
