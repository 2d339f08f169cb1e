// SPDX-License-Identifier: MIT
//
// Which request headers a user may add. Refused are those that would end the header or the request
// early, and those that belong to the connection, which is ours. Knows nothing of libcurl.

#ifndef BATCH_HTTP_HEADER_H
#define BATCH_HTTP_HEADER_H

#include "http_fault.h"

#include <stdbool.h>
#include <stddef.h>

struct http_header {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};

// Returns 0, or STATUS_INVALID with a sentence that names the header.
int http_header_check(const struct http_header *header, struct http_fault *out_fault);

// Whether it goes by that name, in whatever case.
bool http_header_is(const struct http_header *header, const char *name);

// Says who the user is, so it must not follow a redirect to another host.
bool http_header_is_private(const struct http_header *header);

#endif
