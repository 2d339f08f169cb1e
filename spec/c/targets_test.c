// SPDX-License-Identifier: MIT
//
// The packed list of targets.

#include "targets.h"

#include "check.h"
#include "status.h"

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

int main(void) {
    test_order();
    test_memory_shortage();
    test_format();
    test_damage();
    return check_report();
}
