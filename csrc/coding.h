// SPDX-License-Identifier: MIT
//
// The content codings of HTTP, as a stream: packed bytes in, unpacked bytes out, in pieces. Tells a
// body that was cut off, or damaged, from a whole one, which libcurl's own decoding does not. Knows
// nothing of libcurl.

#ifndef BATCH_CODING_H
#define BATCH_CODING_H

#include "status.h"

#include <stddef.h>

struct coding;

// What takes the unpacked bytes: returns 0 to go on, or a status that ends it all.
struct coding_sink {
    int (*take)(void *context, const char *bytes, size_t len);
    void *context;
};

// What to offer as Accept-Encoding.
extern const char coding_names[];

// For the value of Content-Encoding: names with commas between, the first applied first. max_len is
// the limit for the output of each of several codings; the sink has to see to its own. Returns 0,
// with *out_coding NULL when the bytes are as they are; STATUS_INVALID for what is not known, or
// STATUS_NO_MEMORY.
int coding_new(const char *names, size_t max_len, const struct coding_sink *sink,
               struct coding **out_coding, struct fault *fault);
void coding_free(struct coding *coding);

// Returns 0; STATUS_INVALID for damaged bytes; STATUS_NOTHING beyond max_len; STATUS_NO_MEMORY; or
// what the sink returned.
int coding_add(struct coding *coding, const char *bytes, size_t len, struct fault *fault);

// After the last byte. Returns 0, or STATUS_INVALID when bytes are missing. Nothing at all is
// whole.
int coding_end(struct coding *coding, struct fault *fault);

#endif
