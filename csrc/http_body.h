// SPDX-License-Identifier: MIT
//
// The body of one answer on its way in: its content codings are undone, its limit is kept, and
// whether it is whole is told.

#ifndef BATCH_HTTP_BODY_H
#define BATCH_HTTP_BODY_H

#include "buffer.h"
#include "coding.h"
#include "http_fault.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

// The first three are the caller's to set, the others begin as zero.
struct http_body {
    CURL *easy;
    struct buffer *bytes;
    size_t max_len;         // after decompression
    bool has_begun;         // a byte came
    struct coding *coding;  // NULL: its bytes are as they are
    int status;             // of the last take
    struct fault fault;
};

// libcurl's write function; data is the body.
size_t http_body_take(char *bytes, size_t size, size_t count, void *data);

// Why http_body_take refused bytes. Returns 0 when it did not, or the fault's status.
int http_body_say(const struct http_body *body, struct http_fault *out_fault);

// After a transfer that went well. Returns 0, or a negative status when bytes are missing.
int http_body_end(struct http_body *body, struct http_fault *out_fault);

// Leaves the bytes, which are the caller's.
void http_body_fini(struct http_body *body);

#endif
