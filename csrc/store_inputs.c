// SPDX-License-Identifier: MIT
//
// The inputs of jobs in SQLite: the packed list of a job, cut into chunks. A chunk is a row under
// the job and the idx of its first target, so that an input is found by one step down one tree, and
// a job of many millions is read a window at a time.

#include "store_sqlite.h"

#include <string.h>

enum {
    // A row that fits into a page of 4 KiB beside its header. A larger target is alone in its
    // chunk.
    CHUNK_BYTES = 4000,
    // Inputs are as large as users make them; a window of them need not be.
    WINDOW_BYTES = 65536,
    MAX_IDX = (1 << STORE_IDX_BITS) - 1,
};

static int64_t key_of(int64_t job_key, int64_t idx) {
    return job_key << STORE_IDX_BITS | idx;
}

// --- writing ---

static int insert_chunk(struct sqlite *sqlite, int64_t job_key, int64_t first,
                        struct bytes packed) {
    if (first > MAX_IDX)
        return fault_set(&sqlite->store.fault, STATUS_STORE,
                         "cannot store the targets: more than %d", MAX_IDX + 1);
    return sqlite_write(sqlite, SQL_INSERT_INPUTS, "ib", key_of(job_key, first), packed);
}

int sqlite_insert_inputs(struct sqlite *sqlite, int64_t job_key, int64_t first,
                         const struct targets *targets) {
    struct bytes packed;
    size_t offset = 0, count = 0;
    int status;
    while (!(status =
                 targets_run(targets, &offset, CHUNK_BYTES, &packed.start, &packed.len, &count))) {
        status = insert_chunk(sqlite, job_key, first, packed);
        if (status)
            return status;
        first += (int64_t)count;
    }
    if (status == STATUS_NOTHING)
        return STATUS_OK;
    return fault_set(&sqlite->store.fault, status, "cannot store the targets: %s",
                     status == STATUS_STORE ? "their temporary file cannot be read"
                                            : status_message(status));
}

// --- reading ---

// Copies the chunk, unless it is a large one, or memory is short.
static bool keep_chunk(struct inputs *inputs) {
    struct bytes *chunk = &inputs->chunk;
    inputs->copy.len = 0;
    if (chunk->len > CHUNK_BYTES || !buffer_reserve(&inputs->copy, chunk->len)) {
        buffer_fini(&inputs->copy);
        return false;
    }
    buffer_add(&inputs->copy, chunk->start, chunk->len);
    chunk->start = inputs->copy.bytes;
    return true;
}

// Gets the chunk that begins nearest before idx. STATUS_NOTHING when there is none.
static int fetch_chunk(struct sqlite *sqlite, struct inputs *inputs, int64_t job_key, int64_t idx) {
    inputs->job_key = 0;
    sqlite_reset(sqlite, inputs->sql);
    int status = sqlite_run(sqlite, inputs->sql, "i", key_of(job_key, idx));
    if (status)
        return status;
    sqlite3_stmt *row = sqlite->statements[inputs->sql];
    int64_t key = sqlite3_column_int64(row, 0);
    if (key >> STORE_IDX_BITS != job_key)
        return STATUS_NOTHING;
    inputs->next_idx = key & MAX_IDX;
    inputs->offset = 0;
    inputs->chunk = sqlite_column(row, 1);
    if (!inputs->has_copy || keep_chunk(inputs))
        inputs->job_key = job_key;
    return STATUS_OK;
}

// Goes on in the chunk at hand up to idx. STATUS_NOTHING when it ends before.
static int seek_in_chunk(struct sqlite *sqlite, struct inputs *inputs, int64_t idx,
                         struct target *out_target) {
    int status = STATUS_OK;
    for (; !status && inputs->next_idx <= idx; inputs->next_idx++)
        status = targets_read(inputs->chunk.start, inputs->chunk.len, &inputs->offset, out_target);
    if (!status)
        return STATUS_OK;
    inputs->next_idx--;
    if (status == STATUS_NOTHING)
        return status;
    return fault_set(&sqlite->store.fault, STATUS_STORE,
                     "cannot read the targets: those of job %lld from idx %lld on are damaged",
                     (long long)inputs->job_key, (long long)inputs->next_idx);
}

int sqlite_find_input(struct sqlite *sqlite, struct inputs *inputs, int64_t job_key, int64_t idx,
                      struct target *out_target) {
    if (inputs->job_key == job_key && inputs->next_idx <= idx) {
        int status = seek_in_chunk(sqlite, inputs, idx, out_target);
        if (status != STATUS_NOTHING)
            return status;
    }
    int status = idx > MAX_IDX ? STATUS_NOTHING : fetch_chunk(sqlite, inputs, job_key, idx);
    return status ? status : seek_in_chunk(sqlite, inputs, idx, out_target);
}

int sqlite_find_recent(struct sqlite *sqlite, int64_t job_key, int64_t idx,
                       struct target *out_target) {
    struct inputs *inputs = &sqlite->recent[job_key % N_RECENT_INPUTS];
    inputs->sql = SQL_FIND_INPUT;
    inputs->has_copy = true;
    return sqlite_find_input(sqlite, inputs, job_key, idx, out_target);
}

void sqlite_forget_recent(struct sqlite *sqlite) {
    for (int i = 0; i < N_RECENT_INPUTS; i++)
        buffer_fini(&sqlite->recent[i].copy);
    memset(sqlite->recent, 0, sizeof sqlite->recent);
}

int sqlite_read_inputs(struct store *store, int64_t key, int64_t from, int64_t limit,
                       struct targets *out_targets) {
    struct sqlite *sqlite = (struct sqlite *)store;
    struct inputs inputs = {.sql = SQL_READ_INPUTS};
    struct target target;
    int status = STATUS_OK;
    for (int64_t n = 0; n < limit && out_targets->packed.len < WINDOW_BYTES; n++) {
        status = sqlite_find_input(sqlite, &inputs, key, from + n, &target);
        if (status)
            break;
        targets_add(out_targets, &target);
    }
    sqlite_reset(sqlite, inputs.sql);
    if (out_targets->packed.is_broken)
        status =
            fault_set(&store->fault, STATUS_NO_MEMORY, "cannot read the targets: out of memory");
    return status == STATUS_NOTHING ? STATUS_OK : status;
}

// --- a store of version 1, which had a row for each target ---

struct packing {
    struct sqlite *sqlite;
    struct targets targets;  // the next of the job that are not stored yet
    int64_t job_key;
    int64_t first;
};

static int flush(struct packing *packing) {
    struct targets *targets = &packing->targets;
    if (targets->packed.is_broken)
        return fault_set(&packing->sqlite->store.fault, STATUS_NO_MEMORY,
                         "cannot pack the targets: out of memory");
    int status = sqlite_insert_inputs(packing->sqlite, packing->job_key, packing->first, targets);
    targets->packed.len = 0;
    targets->count = 0;
    return status;
}

static int pack_row(struct packing *packing, sqlite3_stmt *row) {
    int64_t job_key = sqlite3_column_int64(row, 0), idx = sqlite3_column_int64(row, 1);
    struct bytes url = sqlite_column(row, 2), options = sqlite_column(row, 3);
    struct targets *targets = &packing->targets;
    int status = STATUS_OK;
    // Where an idx is missing, which check() tells, the chunk ends: no later target takes its
    // place.
    if (job_key != packing->job_key || idx != packing->first + (int64_t)targets->count ||
        targets->packed.len >= WINDOW_BYTES) {
        status = flush(packing);
        packing->job_key = job_key;
        packing->first = idx;
    }
    if (!options.start)
        options = (struct bytes){"{}", 2};
    targets_add(targets, &(struct target){url.start, url.len, options.start, options.len});
    return status;
}

int sqlite_pack_inputs(struct sqlite *sqlite) {
    struct packing packing = {.sqlite = sqlite};
    sqlite3_stmt *rows = NULL;
    int status = STATUS_OK;
    int code = sqlite3_prepare_v2(
        sqlite->db, "select job, idx, url, options from target order by job, idx", -1, &rows, NULL);
    if (code)
        return sqlite_fail(sqlite, code, "pack the targets");
    targets_init(&packing.targets);
    while (!status && (code = sqlite3_step(rows)) == SQLITE_ROW)
        status = pack_row(&packing, rows);
    if (!status)
        status =
            code == SQLITE_DONE ? flush(&packing) : sqlite_fail(sqlite, code, "pack the targets");
    sqlite3_finalize(rows);
    targets_fini(&packing.targets);
    if (status)
        return status;
    code = sqlite3_exec(sqlite->db, "drop table target", NULL, NULL, NULL);
    return code ? sqlite_fail(sqlite, code, "pack the targets") : STATUS_OK;
}
