// SPDX-License-Identifier: MIT
//
// The packed list of targets.

#include "targets.h"

#include "check.h"
#include "fault_point.h"
#include "status.h"

#include <stdio.h>

static void add(struct targets *targets, const char *url, size_t url_len, const char *options) {
    struct target target = {url, url_len, options, strlen(options)};
    targets_add(targets, &target);
}

static bool is_target(const struct target *target, const char *url, size_t url_len,
                      const char *options) {
    return target->url_len == url_len && memcmp(target->url, url, url_len) == 0 &&
           target->options_len == strlen(options) &&
           memcmp(target->options, options, target->options_len) == 0;
}

static void test_order(void) {
    struct targets targets;
    struct target target;
    size_t offset = 0;
    targets_init(&targets);
    add(&targets, "a", 1, "{}");
    add(&targets, "b\0c", 3, "{\"mode\":\"text\"}");
    CHECK("two are counted", targets.count == 2);
    CHECK("there is a first", targets_next(&targets, &offset, &target) == STATUS_OK);
    CHECK("the first is as added", is_target(&target, "a", 1, "{}"));
    CHECK("there is a second", targets_next(&targets, &offset, &target) == STATUS_OK);
    CHECK("NUL is kept", is_target(&target, "b\0c", 3, "{\"mode\":\"text\"}"));
    CHECK("then it ends", targets_next(&targets, &offset, &target) == STATUS_NOTHING);
    CHECK("and stays there", targets_next(&targets, &offset, &target) == STATUS_NOTHING);
    targets_fini(&targets);
    CHECK("after its end a list is empty", targets.count == 0);
}

static void test_memory_shortage(void) {
    struct targets targets;
    struct target target;
    size_t offset = 0;
    targets_init(&targets);
    CHECK("an empty list has no first", targets_next(&targets, &offset, &target) == STATUS_NOTHING);
    targets.packed.is_broken = true;
    add(&targets, "a", 1, "{}");
    CHECK("a broken list takes nothing more", targets.count == 0 && targets.packed.len == 0);
    targets_fini(&targets);
}

static void test_format(void) {
    struct targets targets;
    targets_init(&targets);
    add(&targets, "ab", 2, "{}");
    add(&targets, "c", 1, "{\"x\":1}");
    CHECK("lengths come first, and no options are no bytes",
          targets.packed.len == 14 &&
              memcmp(targets.packed.bytes, "\2\0ab\1\7c{\"x\":1}", 14) == 0);
    targets_fini(&targets);
    char url[300];
    memset(url, 'u', sizeof url);
    add(&targets, url, sizeof url, "{}");
    CHECK("a long length has its low bits first",
          targets.packed.len == 303 && memcmp(targets.packed.bytes, "\xac\2\0uuu", 6) == 0);
    struct target target;
    size_t offset = 0;
    CHECK("and is read back", targets_next(&targets, &offset, &target) == STATUS_OK);
    CHECK("whole", is_target(&target, url, sizeof url, "{}"));
    targets_fini(&targets);
}

static int read_piece(const char *piece, size_t len) {
    struct target target;
    size_t offset = 0;
    int status = targets_read(piece, len, &offset, &target);
    return status && offset ? STATUS_OK : status;
}

static void test_damage(void) {
    CHECK("a piece without a target has none", read_piece("", 0) == STATUS_NOTHING);
    CHECK("the shortest target is read", read_piece("\0\0", 2) == STATUS_OK);
    CHECK("half of the lengths is none", read_piece("\1", 1) == STATUS_INVALID);
    CHECK("nor is a length that does not end", read_piece("\x80\x80", 2) == STATUS_INVALID);
    CHECK("a URL that is cut off is none", read_piece("\3\0ab", 4) == STATUS_INVALID);
    CHECK("nor are options that are cut off", read_piece("\1\3ab", 4) == STATUS_INVALID);
    CHECK("a length above 2^32 is none", read_piece("\xff\xff\xff\xff\x7f\0", 6) == STATUS_INVALID);
    CHECK("nor is one of six bytes", read_piece("\x80\x80\x80\x80\x80\0\0", 7) == STATUS_INVALID);
    CHECK("two that are below and wrap together are none",
          read_piece("\xff\xff\xff\xff\x0f\xff\xff\xff\xff\x0f"
                     "ab",
                     12) == STATUS_INVALID);
}

// --- lists that do not fit into what they may hold ---

enum { MANY = 5000, LONG_BYTES = 200000 };

// The URL of the target at idx: its number, and now and then longer than any window.
static size_t url_of(int idx, char url[LONG_BYTES]) {
    memset(url, '.', LONG_BYTES);
    url[snprintf(url, LONG_BYTES, "%d", idx)] = '.';
    return idx % 1000 == 7 ? LONG_BYTES : (size_t)(20 + idx % 50);
}

static void add_many(struct targets *targets, size_t max_held) {
    static char url[LONG_BYTES];
    targets_init(targets);
    targets->max_held = max_held;
    for (int idx = 0; idx < MANY; idx++)
        add(targets, url, url_of(idx, url), idx % 2 ? "{\"mode\":\"text\"}" : "{}");
}

// Whether all of the list can be read, in order.
static bool has_many(const struct targets *targets) {
    static char url[LONG_BYTES];
    struct target target;
    size_t offset = 0;
    bool is_right = true;
    for (int idx = 0; is_right && idx < MANY; idx++)
        is_right =
            targets_next(targets, &offset, &target) == STATUS_OK &&
            is_target(&target, url, url_of(idx, url), idx % 2 ? "{\"mode\":\"text\"}" : "{}");
    return is_right && targets_next(targets, &offset, &target) == STATUS_NOTHING;
}

// Whether the runs of the list, put together, are the whole of it as it lies in memory.
static bool has_same_runs(const struct targets *targets, const struct targets *whole) {
    const char *packed;
    size_t offset = 0, len, count, n_bytes = 0, n_targets = 0;
    bool is_right = true;
    while (is_right && !targets_run(targets, &offset, 4000, &packed, &len, &count)) {
        is_right = (len <= 4000 || count == 1) && n_bytes + len <= whole->packed.len &&
                   memcmp(packed, whole->packed.bytes + n_bytes, len) == 0;
        n_bytes += len;
        n_targets += count;
    }
    return is_right && n_bytes == whole->packed.len && n_targets == MANY;
}

static void test_file(void) {
    struct targets whole, targets;
    add_many(&whole, 0);
    CHECK("a list without a limit lies in memory", !whole.file && has_many(&whole));
    CHECK("and comes in runs", has_same_runs(&whole, &whole));
    for (size_t max_held = 1; max_held < 1000000; max_held *= 50) {
        add_many(&targets, max_held);
        CHECK("all are counted", targets.count == MANY);
        CHECK("what is above the limit is in a file", targets.file != NULL);
        CHECK("and the rest is not", targets.packed.len <= max_held);
        CHECK("it is read from there", has_many(&targets));
        CHECK("and once more", has_many(&targets));
        CHECK("and in runs", has_same_runs(&targets, &whole));
        targets_fini(&targets);
        CHECK("the file goes with the list", targets.file == NULL && targets.count == 0);
    }
    targets_fini(&whole);
}

static void test_sick_disk(void) {
    struct targets targets;
    fault_point_begin();
    fault_point_set(FAULT_AT_WRITE, &(struct fault_plan){FAULT_FULL, 3, 1, 0});
    add_many(&targets, 10000);
    CHECK("what the file does not take stays in memory",
          targets.file && targets.packed.len > 10000 && has_many(&targets));
    fault_point_set(FAULT_AT_READ, &(struct fault_plan){FAULT_IOERR, 1, 1, 0});
    struct target target;
    size_t offset = 0;
    CHECK("what cannot be read back is told, not left out",
          targets_next(&targets, &offset, &target) == STATUS_STORE && offset == 0);
    CHECK("and is there when the disk is well again", has_many(&targets));
    targets_fini(&targets);
    fault_point_clear(FAULT_AT_WRITE);
    fault_point_clear(FAULT_AT_READ);
}

int main(void) {
    test_file();
    test_sick_disk();
    test_order();
    test_memory_shortage();
    test_format();
    test_damage();
    return check_report();
}
