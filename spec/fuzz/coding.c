// SPDX-License-Identifier: MIT
//
// Packed bodies: whatever the bytes are, unpacking them ends, keeps its limits, and gives the same
// in pieces as at once. The first byte chooses the codings, the second the size of a piece.

#include "buffer.h"
#include "coding.h"
#include "host/fuzz.h"

#include <string.h>

enum { MAX_BYTES = 1 << 18 };

static const char *const names[] = {
    "gzip", "deflate", "br", "zstd", "gzip, br", "deflate, gzip", "zstd, deflate", "x-gzip",
};

static int take(void *context, const char *bytes, size_t len) {
    struct buffer *text = context;
    if (text->len + len > MAX_BYTES)
        return STATUS_CLOSED;
    buffer_add(text, bytes, len);
    return STATUS_OK;
}

static int unpack(const char *name, const char *bytes, size_t len, size_t piece,
                  struct buffer *text) {
    const struct coding_sink sink = {take, text};
    struct coding *coding;
    struct fault fault;
    int status = coding_new(name, MAX_BYTES, &sink, &coding, &fault);
    FUZZ_CHECK("the coding is known", status == STATUS_OK && coding);
    for (size_t at = 0; status == STATUS_OK && at < len; at += piece)
        status = coding_add(coding, bytes + at, len - at < piece ? len - at : piece, &fault);
    if (status == STATUS_OK)
        status = coding_end(coding, &fault);
    coding_free(coding);
    return status;
}

void fuzz_one(const char *bytes, size_t len) {
    struct buffer whole, pieced;
    const char *name = names[fuzz_take(&bytes, &len) % (sizeof names / sizeof *names)];
    size_t piece = 1 + fuzz_take(&bytes, &len);
    buffer_init(&whole);
    buffer_init(&pieced);
    int status = unpack(name, bytes, len, len ? len : 1, &whole);
    // What is damaged may be found to be so before or after its limit is reached.
    FUZZ_CHECK("pieces end as the whole does",
               (unpack(name, bytes, len, piece, &pieced) == STATUS_OK) == (status == STATUS_OK));
    FUZZ_CHECK("the limit is kept", whole.len <= MAX_BYTES && pieced.len <= MAX_BYTES);
    if (status == STATUS_OK)
        FUZZ_CHECK("pieces give what the whole gives",
                   whole.len == pieced.len &&
                       (whole.len == 0 || memcmp(whole.bytes, pieced.bytes, whole.len) == 0));
    buffer_fini(&whole);
    buffer_fini(&pieced);
}
