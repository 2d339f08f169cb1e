// SPDX-License-Identifier: MIT
//
// Getting a URL over libcurl, or posting to one: one request at a time, with connections and names
// kept for the next one. Redirects are followed here, hop by hop, so that guard, rules of URLs and
// limits hold at each. Knows nothing of Lua, of retries and of what a body means. A struct http
// belongs to one thread at a time; two of them share nothing.

#ifndef BATCH_HTTP_H
#define BATCH_HTTP_H

#include "buffer.h"
#include "guard.h"
#include "http_address.h"
#include "http_fault.h"
#include "http_header.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;

struct http_request {
    const char *url;  // terminated; url_len tells of a NUL within
    size_t url_len;
    const struct http_header *headers;
    size_t n_headers;
    const char *user_agent;
    int64_t timeout_ms;  // for all hops together
    int64_t connect_timeout_ms;
    size_t max_body;  // bytes after decompression
    unsigned max_redirects;
    int cancel_fd;  // when it becomes readable, the request ends at once; never read. -1: none
    bool is_post;
    const char *body;  // of a POST
    size_t body_len;
    bool is_exempt;  // the operator's own request: the guard is not asked if the URL is exempt
};

struct http_answer {
    long status;
    struct buffer body;
    char *url;              // after redirects
    char *content_type;     // NULL: the server named none
    int64_t retry_after_s;  // -1: the server named none
    int64_t bytes;          // of the body as received, before decompression
    double seconds;
};

// The guard must outlive the client. Returns 0, or STATUS_NO_MEMORY with *out_http NULL.
int http_open(const struct guard *guard, struct http **out_http);

// Adds a URL to those of the operator's own, whatever their address: an exempt request passes the
// guard if its URL is that one, or lies below it. Its redirects do not. Returns 0, or a negative
// status with the reason in *out_fault.
int http_exempt(struct http *http, const char *url, size_t len, struct http_fault *out_fault);

// Closes the connections too. NULL is harmless. Does not block.
void http_close(struct http *http);

// Blocks until the answer is there, whatever its status, or until it cannot come. Returns 0 with
// an answer to be released by http_answer_fini, or a negative status with an empty answer and the
// reason in *out_fault. Raises no signal.
int http_run(struct http *http, const struct http_request *request, struct http_answer *out_answer,
             struct http_fault *out_fault);

void http_answer_fini(struct http_answer *answer);

#endif
