// SPDX-License-Identifier: MIT
//
// The canonical form and its hash, from lists made by hand.

#include "canonical.h"

#include "check.h"
#include "status.h"

#include <stdint.h>

static void add(struct targets *targets, const char *url, const char *options) {
    struct target target = {url, strlen(url), options, strlen(options)};
    targets_add(targets, &target);
}

static void test_ranks(void) {
    static const char *const in_order[] = {
        "mode", "question", "pages", "grep", "jq", "context", "recover", "anything", "mod", "modes",
    };
    for (int i = 0; i < 10; i++) {
        int expected = i < CANONICAL_FURTHER ? i : CANONICAL_FURTHER;
        CHECK(in_order[i], expected == (int)canonical_rank(in_order[i], strlen(in_order[i])));
    }
    CHECK("a mode is a text", CANONICAL_TEXT == canonical_kind(CANONICAL_MODE));
    CHECK("a jq filter is a text", CANONICAL_TEXT == canonical_kind(CANONICAL_JQ));
    CHECK("context is a flag", CANONICAL_FLAG == canonical_kind(CANONICAL_CONTEXT));
    CHECK("recover is a flag", CANONICAL_FLAG == canonical_kind(CANONICAL_RECOVER));
    CHECK("a further option is anything", CANONICAL_ANY == canonical_kind(CANONICAL_FURTHER));
}

static void test_form(void) {
    struct targets targets;
    struct buffer out;
    targets_init(&targets);
    buffer_init(&out);
    add(&targets, "https://example.com/?a=1&b", "{\"mode\":\"text\"}");
    add(&targets, "b", "{}");
    canonical_write(&targets, &out);
    buffer_add_byte(&out, '\0');
    CHECK_TEXT("[{\"url\":\"https://example.com/?a=1\\u0026b\",\"options\":{\"mode\":\"text\"}},"
               "{\"url\":\"b\",\"options\":{}}]",
               out.bytes);
    buffer_fini(&out);
    targets_fini(&targets);
}

static void check_key(const char *expected, const char *caller, const struct targets *targets) {
    unsigned char key[CANONICAL_KEY_BYTES];
    char hex[CANONICAL_KEY_HEX];
    CHECK("a key is made", STATUS_OK == canonical_key(caller, strlen(caller), targets, key));
    canonical_key_hex(key, hex);
    CHECK_TEXT(expected, hex);
}

static void test_known_keys(void) {
    struct targets targets;
    targets_init(&targets);
    add(&targets, "a", "{}");
    check_key("e3d4a7e4e8fe4e27b4345df84976d2e31c32c8b0ea2418c41e7e4d36ab456a41", "", &targets);
    add(&targets, "a", "{}");
    check_key("6f0f1a38651fc4d9b771cfe19db1ab850a08844302da9abbfc52486de656d1af", "grace",
              &targets);
    targets_fini(&targets);
}

// So many targets that the hash is fed in pieces, which must not show.
static void test_key_of_a_long_list(void) {
    struct targets targets;
    targets_init(&targets);
    for (int i = 0; i < 4321; i++)
        add(&targets, "https://example.com/", "{}");
    check_key("48bc83346494bc874792847b9c1cd90f050480713fede43d7fae776570d050b4", "alice",
              &targets);
    targets_fini(&targets);
}

int main(void) {
    test_ranks();
    test_form();
    test_known_keys();
    test_key_of_a_long_list();
    return check_report();
}
