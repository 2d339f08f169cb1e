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

int main(void) {
    test_order();
    test_memory_shortage();
    return check_report();
}
