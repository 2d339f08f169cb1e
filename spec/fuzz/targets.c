// SPDX-License-Identifier: MIT
//
// A job's inputs as a store holds them, which may be damaged: reading stays inside of the bytes and
// ends, and what was read packs to a list that reads the same.

#include "host/fuzz.h"
#include "status.h"
#include "targets.h"

#include <stdbool.h>
#include <string.h>

static bool is_same(const struct target *one, const struct target *other) {
    return one->url_len == other->url_len && one->options_len == other->options_len &&
           memcmp(one->url, other->url, one->url_len) == 0 &&
           memcmp(one->options, other->options, one->options_len) == 0;
}

// Two bytes that are no "{}", as only damage makes them, are packed as if they were.
static bool is_unlike_options(const struct target *target) {
    return target->options_len == 2 && memcmp(target->options, "{}", 2) != 0;
}

static void check_inside(const char *bytes, size_t len, const struct target *target) {
    FUZZ_CHECK("a URL lies in the list",
               target->url >= bytes && target->url + target->url_len <= bytes + len);
    for (size_t i = 0; i < target->options_len; i++)
        (void)*(volatile const char *)(target->options + i);
}

void fuzz_one(const char *bytes, size_t len) {
    struct targets again;
    struct target target, same;
    size_t at = 0, last = 0, place = 0;
    int status;
    targets_init(&again);
    while ((status = targets_read(bytes, len, &at, &target)) == STATUS_OK) {
        FUZZ_CHECK("reading goes on", at > last && at <= len);
        last = at;
        check_inside(bytes, len, &target);
        if (is_unlike_options(&target))
            continue;
        targets_add(&again, &target);
        FUZZ_CHECK("what was packed again reads the same",
                   targets_next(&again, &place, &same) == STATUS_OK && is_same(&target, &same));
    }
    FUZZ_CHECK("reading ends at the end, or where no target is",
               status == STATUS_NOTHING ? at == len : status == STATUS_INVALID && at == last);
    targets_fini(&again);
}
