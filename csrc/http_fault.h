// SPDX-License-Identifier: MIT
//
// Why a URL could not be had: the kind that programs branch on, the sentence that users read, and
// where one helps, a hint what to do about it. Knows nothing of libcurl.

#ifndef BATCH_HTTP_FAULT_H
#define BATCH_HTTP_FAULT_H

#include "status.h"

#include <stddef.h>

enum http_kind {
    HTTP_KIND_NONE,
    HTTP_KIND_URL,  // the URL's form
    HTTP_KIND_HEADER,
    HTTP_KIND_GUARD,
    HTTP_KIND_RESOLVE,
    HTTP_KIND_CONNECT,  // no connection, or it broke; trying again may help
    HTTP_KIND_TLS,
    HTTP_KIND_TIMEOUT,
    HTTP_KIND_TOO_LARGE,
    HTTP_KIND_REDIRECTS,
    HTTP_KIND_PROTOCOL,
    HTTP_KIND_CANCELLED,
    HTTP_KIND_MEMORY,
};

struct http_fault {
    enum http_kind kind;
    struct fault fault;
    const char *hint;  // lives for ever; NULL: none
};

// The word that users see for a kind: "guard", "too_large", … Never NULL.
const char *http_kind_word(enum http_kind kind);

// Writes all three and returns the status that goes with the kind: STATUS_INVALID for what the
// caller asked, STATUS_TIMEOUT, STATUS_CLOSED, STATUS_NO_MEMORY, and STATUS_NOTHING for the rest.
int http_fault_set(struct http_fault *fault, enum http_kind kind, const char *hint,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
