// SPDX-License-Identifier: MIT
//
// The check of JSON and of UTF-8 on any bytes: within bounds, with a fault that points into the
// text, and so that what is written as JSON passes it.

#include "host/fuzz.h"
#include "json.h"

enum { MAX_DEPTH = 100 };

static void check_written(const struct buffer *text,
                          void (*write)(struct buffer *out, const char *bytes, size_t len)) {
    struct buffer out;
    struct json_fault fault;
    buffer_init(&out);
    write(&out, text->bytes, text->len);
    FUZZ_CHECK("a text that was written is JSON",
               json_check(out.bytes, out.len, MAX_DEPTH, &fault));
    FUZZ_CHECK("a text that was written is UTF-8", json_is_utf8(out.bytes, out.len));
    buffer_fini(&out);
}

void fuzz_one(const char *bytes, size_t len) {
    struct json_fault fault = {len + 1, NULL};
    bool is_json = json_check(bytes, len, MAX_DEPTH, &fault);
    FUZZ_CHECK("a fault lies in the text", is_json || (fault.at <= len && fault.what));
    bool is_utf8 = json_is_utf8(bytes, len);
    FUZZ_CHECK("JSON is UTF-8", !is_json || is_utf8);

    struct buffer clean, cut;
    buffer_init(&clean);
    buffer_init(&cut);
    bool is_whole = json_clean_utf8(&clean, bytes, len, 3 * len);
    FUZZ_CHECK("three bytes for each are enough", is_whole);
    FUZZ_CHECK("what was cleaned is UTF-8", json_is_utf8(clean.bytes, clean.len));
    FUZZ_CHECK("what is clean stays as it is", !is_utf8 || clean.len == len);
    json_clean_utf8(&cut, bytes, len, len / 2);
    FUZZ_CHECK("a limit is kept", cut.len <= len / 2);
    FUZZ_CHECK("what was cut is UTF-8", json_is_utf8(cut.bytes, cut.len));
    check_written(&clean, json_string);
    check_written(&clean, json_text);
    buffer_fini(&clean);
    buffer_fini(&cut);
}
