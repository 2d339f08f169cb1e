// SPDX-License-Identifier: MIT
//
// A store for upkeep and inspection: one connection, used in its Lua state's thread. Moments are
// seconds since the epoch, as everywhere in Lua.

#include "lstore.h"

#include "largs.h"
#include "lvalue.h"
#include "owner.h"
#include "store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LSTORE_TYPE "batch.store"

enum {
    PATIENCE_MS = 10000,
    JOBS_AT_ONCE = 100,    // dropped in one transaction
    ROWS_AT_ONCE = 10000,  // cleared in one transaction
};

struct lstore {
    struct place place;
    struct owners *owners;
    struct store *store;  // NULL: closed
    int64_t pid;          // who opened it
    unsigned generation;
};

static bool is_foreign(const struct lstore *box) {
    return box->generation != owners_fork_generation();
}

static struct lstore *check_store(lua_State *L) {
    struct lstore *box = luaL_checkudata(L, 1, LSTORE_TYPE);
    if (!box->store)
        luaL_error(L, "attempt to use a closed store");
    largs_check_process(L, is_foreign(box) ? box->pid : 0);
    return box;
}

const struct place *lstore_place(lua_State *L, int index) {
    struct lstore *box = luaL_testudata(L, index, LSTORE_TYPE);
    if (box && !box->store)
        luaL_error(L, "attempt to use a closed store");
    return box ? &box->place : NULL;
}

static int close_box(lua_State *L) {
    struct lstore *box = luaL_checkudata(L, 1, LSTORE_TYPE);
    // In a fork's child the connection is its parent's: forget it.
    if (box->store && !is_foreign(box))
        box->store->ops->close(box->store);
    owners_close(box->owners);
    place_close(&box->place);
    box->store = NULL;
    box->owners = NULL;
    return 0;
}

static int method_close(lua_State *L) {
    close_box(L);
    lua_pushboolean(L, true);
    return 1;
}

// A path as the system sees it: NULL when a NUL would cut it off, or when there is none.
static const char *path_arg(lua_State *L, int index) {
    size_t len;
    const char *path = luaL_checklstring(L, index, &len);
    return len > 0 && strlen(path) == len ? path : NULL;
}

int lstore_open(lua_State *L) {
    const char *path = path_arg(L, 1);
    struct fault fault;
    if (!path)
        return largs_refuse(L, STATUS_STORE,
                            "cannot open the store: the path is empty or has a NUL");
    struct lstore *box = lua_newuserdata(L, sizeof *box);
    memset(box, 0, sizeof *box);
    box->place.memory_fd = -1;
    box->pid = getpid();
    box->generation = owners_fork_generation();
    luaL_getmetatable(L, LSTORE_TYPE);
    lua_setmetatable(L, -2);
    int status = place_open(path, &box->place, &fault);
    if (!status)
        status = owners_open(&box->place, &box->owners, &fault);
    if (!status)
        status = owners_begin_setup(box->owners, PATIENCE_MS, &fault);
    if (!status) {
        status = store_open(&box->place, DURABILITY_FULL, true, &box->store, &fault);
        owners_end_setup(box->owners);
    }
    return status ? largs_refuse(L, status, fault.text) : 1;
}

static int refuse(lua_State *L, struct lstore *box, int status) {
    return largs_refuse(L, status, box->store->fault.text);
}

static int64_t moment_arg(lua_State *L, int index) {
    return largs_check_whole(L, index, 1e3);
}

static bool read_hex(const char *hex, unsigned char out_key[CANONICAL_KEY_BYTES]) {
    if (strlen(hex) != 2 * CANONICAL_KEY_BYTES || strspn(hex, "0123456789abcdef") != strlen(hex))
        return false;
    for (int i = 0; i < CANONICAL_KEY_BYTES; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        out_key[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return true;
}

// --- questions: each inside a read, which waits for a store in memory that others write to ---

// job_by_idem(caller, key, now) → id or nil
static int method_job_by_idem(lua_State *L) {
    struct lstore *box = check_store(L);
    struct bytes caller;
    unsigned char key[CANONICAL_KEY_BYTES];
    struct job_row job;
    caller.start = luaL_checklstring(L, 2, &caller.len);
    if (!read_hex(luaL_checkstring(L, 3), key))
        return 0;
    int64_t now = moment_arg(L, 4);
    int status = box->store->ops->begin_read(box->store);
    if (!status)
        status = box->store->ops->find_job(box->store, caller, key, now, &job);
    box->store->ops->end_read(box->store);
    if (status == STATUS_NOT_FOUND)
        return 0;
    if (status)
        return refuse(L, box, status);
    lua_pushstring(L, job.id);
    return 1;
}

static int push_count(lua_State *L, struct lstore *box, int status, int64_t count) {
    if (status)
        return refuse(L, box, status);
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

static int method_live_jobs(lua_State *L) {
    struct lstore *box = check_store(L);
    struct bytes caller;
    int64_t count = 0;
    caller.start = luaL_checklstring(L, 2, &caller.len);
    int status = box->store->ops->begin_read(box->store);
    if (!status)
        status = box->store->ops->count_live_of(box->store, caller, &count);
    box->store->ops->end_read(box->store);
    return push_count(L, box, status, count);
}

static int method_live_jobs_total(lua_State *L) {
    struct lstore *box = check_store(L);
    int64_t count = 0;
    int status = box->store->ops->begin_read(box->store);
    if (!status)
        status = box->store->ops->count_live(box->store, &count);
    box->store->ops->end_read(box->store);
    return push_count(L, box, status, count);
}

// --- upkeep ---

static int end_write(struct lstore *box, int status) {
    if (!status)
        status = box->store->ops->commit(box->store);
    if (status)
        box->store->ops->rollback(box->store);
    return status;
}

static int clear_some(struct store *store) {
    return store->ops->clear_dropped(store, ROWS_AT_ONCE);
}

// Calls step, in a transaction for each call, until there is nothing left for it to do.
static int repeat(struct lstore *box, int (*step)(struct store *store)) {
    struct store *store = box->store;
    int done = STATUS_OK;
    while (done != STATUS_NOTHING) {
        int status = store->ops->begin(store, PATIENCE_MS);
        if (!status)
            done = step(store);
        if (!status && done != STATUS_NOTHING)
            status = done;
        status = end_write(box, status);
        if (status)
            return status;
    }
    return STATUS_OK;
}

// Removes the rows of dropped jobs and gives the space back.
static int clear_dropped(struct lstore *box) {
    int status = repeat(box, clear_some);
    return status ? status : repeat(box, box->store->ops->shrink);
}

static int fail_dead(struct lstore *box, const char *reason, int64_t now, int64_t *out_count) {
    struct store *store = box->store;
    struct owner_row owner = {0};
    struct mass_failure failure = {.reason = reason, .now = now, .limit = -1};
    int64_t count;
    int status = store->ops->fail_jobs(store, &failure, out_count);
    while (!status) {
        status = store->ops->next_owner(store, owner.id, &owner);
        if (status)
            break;
        if (owners_is_alive(box->owners, owner.id))
            continue;
        failure.owner = owner.id;
        status = store->ops->fail_jobs(store, &failure, &count);
        *out_count += count;
    }
    return status == STATUS_NOTHING ? STATUS_OK : status;
}

// mark_in_flight_failed(reason, now) → number of jobs; those of living processes are left alone
static int method_mark_in_flight_failed(lua_State *L) {
    struct lstore *box = check_store(L);
    const char *reason;
    size_t len;
    struct fault fault;
    int64_t now = moment_arg(L, 3), count = 0;
    luaL_checktype(L, 2, LUA_TSTRING);
    int status = lvalue_text(L, 2, "reason", &reason, &len, &fault);
    if (status)
        return largs_refuse(L, status, fault.text);
    status = box->store->ops->begin(box->store, PATIENCE_MS);
    if (!status)
        status = fail_dead(box, reason, now, &count);
    return push_count(L, box, end_write(box, status), count);
}

// evict_oldest(max_bytes) → number of jobs
static int method_evict_oldest(lua_State *L) {
    struct lstore *box = check_store(L);
    int64_t max_bytes = largs_check_whole(L, 2, 1), count = 0;
    struct store *store = box->store;
    int dropped = STATUS_OK, status = STATUS_OK;
    while (!status && dropped != STATUS_NOTHING) {
        status = store->ops->begin(store, PATIENCE_MS);
        for (int i = 0; !status && i < JOBS_AT_ONCE && dropped != STATUS_NOTHING; i++) {
            dropped = store->ops->drop_oldest(store, max_bytes);
            count += dropped == STATUS_OK;
            status = dropped == STATUS_NOTHING ? STATUS_OK : dropped;
        }
        status = end_write(box, status);
    }
    return push_count(L, box, status ? status : clear_dropped(box), count);
}

// purge_expired(now) → number of jobs
static int method_purge_expired(lua_State *L) {
    struct lstore *box = check_store(L);
    int64_t now = moment_arg(L, 2), n_dropped = JOBS_AT_ONCE, count = 0;
    struct store *store = box->store;
    int status = STATUS_OK;
    while (!status && n_dropped == JOBS_AT_ONCE) {
        status = store->ops->begin(store, PATIENCE_MS);
        if (!status)
            status = store->ops->drop_expired(store, now, JOBS_AT_ONCE, &n_dropped);
        status = end_write(box, status);
        count += status ? 0 : n_dropped;
    }
    return push_count(L, box, status ? status : clear_dropped(box), count);
}

// --- check, repair and backup ---

// Sentences, each with its NUL.
static void add_text(struct buffer *texts, const char *text) {
    buffer_add(texts, text, strlen(text) + 1);
}

static int push_texts(lua_State *L) {
    const struct buffer *texts = lua_touserdata(L, 1);
    lua_newtable(L);
    if (texts->len == 0)
        return 1;
    const char *text = texts->bytes, *end = text + texts->len;
    for (int i = 1; text < end; text += strlen(text) + 1, i++) {
        lua_pushstring(L, text);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

// The texts as a list, or true when there are none. Returns LUA_OK, or what pcall returns: then the
// error lies on the stack. Room for three values was made before.
static int push_list(lua_State *L, struct buffer *texts, bool is_always_list) {
    if (texts->len == 0 && !is_always_list) {
        lua_pushboolean(L, true);
        return LUA_OK;
    }
    lua_pushcfunction(L, push_texts);
    lua_pushlightuserdata(L, texts);
    return lua_pcall(L, 1, 1, 0);
}

static void add_fault(void *context, const char *text) {
    add_text(context, text);
}

// check() → true, or a list of faults
static int method_check(lua_State *L) {
    struct lstore *box = check_store(L);
    struct buffer faults;
    buffer_init(&faults);
    int status = box->store->ops->check(box->store, add_fault, &faults);
    if (!status && faults.is_broken)
        status = fault_set(&box->store->fault, STATUS_NO_MEMORY, "out of memory");
    int failed = status ? LUA_OK : push_list(L, &faults, false);
    buffer_fini(&faults);
    if (status)
        return refuse(L, box, status);
    return failed ? lua_error(L) : 1;
}

struct repairing {
    struct lstore *box;
    struct buffer mended;
    struct buffer left;
};

static bool is_alive(void *context, int64_t owner) {
    struct repairing *repairing = context;
    return owners_is_alive(repairing->box->owners, owner);
}

static void add_mended(void *context, const char *text) {
    struct repairing *repairing = context;
    add_text(&repairing->mended, text);
}

static void add_left(void *context, const char *text) {
    struct repairing *repairing = context;
    add_text(&repairing->left, text);
}

static int mend(struct lstore *box, struct repairing *repairing) {
    struct repair repair = {is_alive, add_mended, add_left, repairing};
    int status = box->store->ops->begin(box->store, PATIENCE_MS);
    if (!status)
        status = box->store->ops->repair(box->store, &repair);
    if (!status && (repairing->mended.is_broken || repairing->left.is_broken))
        status = fault_set(&box->store->fault, STATUS_NO_MEMORY, "out of memory");
    if (status || repairing->mended.len > 0)
        return end_write(box, status);
    // A file that is broken may refuse even to commit nothing.
    box->store->ops->rollback(box->store);
    return STATUS_OK;
}

// repair() → a list of what was mended; then true, or a list of the faults that are left
static int method_repair(lua_State *L) {
    struct lstore *box = check_store(L);
    struct repairing repairing = {.box = box};
    buffer_init(&repairing.mended);
    buffer_init(&repairing.left);
    int status = mend(box, &repairing);
    int failed = status ? LUA_OK : push_list(L, &repairing.mended, true);
    if (!status && !failed)
        failed = push_list(L, &repairing.left, false);
    buffer_fini(&repairing.mended);
    buffer_fini(&repairing.left);
    if (status)
        return refuse(L, box, status);
    return failed ? lua_error(L) : 2;
}

static int method_backup(lua_State *L) {
    struct lstore *box = check_store(L);
    const char *path = path_arg(L, 2);
    if (!path)
        return largs_refuse(L, STATUS_STORE, "cannot back up: the path is empty or has a NUL");
    int status = box->store->ops->backup(box->store, path);
    if (status)
        return refuse(L, box, status);
    lua_pushboolean(L, true);
    return 1;
}

static const luaL_Reg methods[] = {
    {"job_by_idem", method_job_by_idem},
    {"live_jobs", method_live_jobs},
    {"live_jobs_total", method_live_jobs_total},
    {"mark_in_flight_failed", method_mark_in_flight_failed},
    {"evict_oldest", method_evict_oldest},
    {"purge_expired", method_purge_expired},
    {"check", method_check},
    {"repair", method_repair},
    {"backup", method_backup},
    {"close", method_close},
    {NULL, NULL},
};

static const luaL_Reg metamethods[] = {
    {"__gc", close_box},
    {"__close", close_box},
    {NULL, NULL},
};

void lstore_register(lua_State *L) {
    luaL_newmetatable(L, LSTORE_TYPE);
    luaL_setfuncs(L, metamethods, 0);
    lua_pushliteral(L, LSTORE_TYPE);
    lua_setfield(L, -2, "__name");
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
