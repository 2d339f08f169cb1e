// SPDX-License-Identifier: MIT
//
// The inputs of jobs in a store: written in chunks, and read back by windows, lists and the feed of
// changes, which must not show where a chunk ends.

#include "fresh_store.h"

#include "canonical.h"

#include <stdio.h>

enum { MANY = 1000, LONG_BYTES = 9000 };

// The URL of a target of a job of many: its idx and the job's letter, and now and then very long.
static size_t url_of(int64_t idx, char letter, char url[LONG_BYTES]) {
    int len = snprintf(url, LONG_BYTES, "%c%lld", letter, (long long)idx);
    if (idx % 300 != 7)
        return (size_t)len;
    memset(url + len, '.', (size_t)(LONG_BYTES - len));
    return LONG_BYTES;
}

static int64_t insert_many(char letter) {
    static char url[LONG_BYTES];
    struct targets targets;
    struct new_job job = {.caller = text("ann"),
                          .class_name = text(""),
                          .now = NOW,
                          .expires_at = LEASE,
                          .targets = &targets};
    int64_t key;
    targets_init(&targets);
    for (int64_t idx = 0; idx < MANY; idx++) {
        struct target target = {url, url_of(idx, letter, url), "{\"mode\":\"text\"}",
                                idx % 2 ? 15 : 2};
        target.options = idx % 2 ? target.options : "{}";
        targets_add(&targets, &target);
    }
    CHECK("its key is made", !canonical_key("ann", 3, &targets, job.idem_key));
    job_id_make(NOW, job.id);
    begin();
    CHECK("a job of many is inserted", ops->insert_job(store, &job, &key) == STATUS_OK);
    commit();
    targets_fini(&targets);
    return key;
}

static bool is_input(const struct target *target, int64_t idx, char letter) {
    static char url[LONG_BYTES];
    size_t len = url_of(idx, letter, url);
    return target->url_len == len && memcmp(target->url, url, len) == 0 &&
           target->options_len == (idx % 2 ? 15 : 2);
}

static void test_windows(void) {
    open_store();
    insert_many('a');
    int64_t key = insert_many('b');
    insert_many('c');
    bool is_right = true;
    int64_t idx = 0;
    while (idx < MANY) {
        struct targets window;
        struct target target;
        size_t offset = 0;
        targets_init(&window);
        CHECK("a window is read", ops->read_inputs(store, key, idx, 37, &window) == STATUS_OK);
        is_right = is_right && window.count > 0 && window.count <= 37;
        while (targets_next(&window, &offset, &target) == STATUS_OK)
            is_right = is_right && is_input(&target, idx++, 'b');
        targets_fini(&window);
        if (!is_right)
            break;
    }
    CHECK("windows give all inputs in their order", is_right && idx == MANY);
    struct targets none;
    targets_init(&none);
    CHECK("behind the last is nothing",
          ops->read_inputs(store, key, MANY, 9, &none) == STATUS_OK && none.count == 0);
    CHECK("nor is there of a job that is unknown",
          ops->read_inputs(store, key + 7, 0, 9, &none) == STATUS_OK && none.count == 0);
    targets_fini(&none);
    close_store();
}

// Counts what the range gives, from its first idx on; -1 when something is wrong.
static int64_t count_right(const struct target_range *range, char letter) {
    struct store_cursor *cursor;
    struct target_row row;
    int64_t n = 0;
    bool is_right = ops->list_targets(store, range, &cursor) == STATUS_OK;
    while (is_right && ops->next_target(cursor, &row) == STATUS_OK) {
        is_right = row.idx == range->from + n && row.job_key == range->job_key &&
                   is_input(&row.input, row.idx, letter);
        n++;
    }
    ops->cursor_close(cursor);
    return is_right ? n : -1;
}

static void test_lists(void) {
    int status;
    open_store();
    int64_t key = insert_many('a');
    insert_many('b');
    for (int idx = 0; idx < 9; idx++)
        put(key, idx, idx == 4 ? NULL : "x", false, &status);
    struct target_range range = {key, 0, INT64_MAX, false, true, MANY};
    CHECK("all targets are listed", count_right(&range, 'a') == MANY);
    range.from = 6;
    CHECK("from one on", count_right(&range, 'a') == MANY - 6);
    range.limit = 5;
    CHECK("and so many", count_right(&range, 'a') == 5);
    range.has_outcomes = true;
    CHECK("or those with an outcome", count_right(&range, 'a') == 3);
    range.from = MANY;
    CHECK("behind the last is none", count_right(&range, 'a') == 0);
    range.has_outcomes = false;
    CHECK("pending or not", count_right(&range, 'a') == 0);
    close_store();
}

static void test_changes(void) {
    enum { N_JOBS = 70 };  // more than a connection keeps chunks at hand
    struct store_cursor *cursor;
    struct target_row row;
    int64_t keys[N_JOBS];
    int status, n = 0;
    open_store();
    for (int i = 0; i < N_JOBS; i++)
        keys[i] = insert_many((char)('0' + i));
    for (int n_put = 0; n_put < 3 * N_JOBS; n_put++)
        put(keys[n_put % N_JOBS], n_put / N_JOBS, "x", false, &status);
    for (int round = 0; round < 2; round++) {
        bool is_right = ops->list_changes(store, 0, INT64_MAX, &cursor) == STATUS_OK;
        for (n = 0; ops->next_target(cursor, &row) == STATUS_OK; n++)
            is_right = is_right && row.job_key == keys[n % N_JOBS] && row.idx == n / N_JOBS &&
                       is_input(&row.input, row.idx, (char)('0' + n % N_JOBS));
        ops->cursor_close(cursor);
        CHECK("changes come with their inputs", is_right && n == 3 * N_JOBS);
    }
    close_store();
}

static void test_clearing(void) {
    int64_t count;
    int status, n_steps = 0;
    open_store();
    int64_t key = insert_many('a');
    for (int idx = 0; idx < MANY; idx++)
        put(key, idx, "x", idx == MANY - 1, &status);
    insert_many('b');
    begin();
    CHECK("a large job is dropped", ops->drop_expired(store, LEASE * 2, 9, &count) == STATUS_OK);
    while (ops->clear_dropped(store, 100) == STATUS_OK)
        n_steps++;
    commit();
    CHECK("its rows go some at a time", count == 1 && n_steps >= MANY / 100);
    struct target_range range = {key + 1, 0, INT64_MAX, false, true, MANY};
    CHECK("those of another stay", count_right(&range, 'b') == MANY);
    close_store();
}

int main(void) {
    test_windows();
    test_lists();
    test_changes();
    test_clearing();
    return check_report();
}
