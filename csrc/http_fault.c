// SPDX-License-Identifier: MIT
//
// The table of kinds with the word and the status of each.

#include "http_fault.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *word;
    int status;
} kinds[] = {
    [HTTP_KIND_NONE] = {"none", STATUS_OK},
    [HTTP_KIND_URL] = {"url", STATUS_INVALID},
    [HTTP_KIND_HEADER] = {"header", STATUS_INVALID},
    [HTTP_KIND_GUARD] = {"guard", STATUS_NOTHING},
    [HTTP_KIND_RESOLVE] = {"resolve", STATUS_NOTHING},
    [HTTP_KIND_CONNECT] = {"connect", STATUS_NOTHING},
    [HTTP_KIND_TLS] = {"tls", STATUS_NOTHING},
    [HTTP_KIND_TIMEOUT] = {"timeout", STATUS_TIMEOUT},
    [HTTP_KIND_TOO_LARGE] = {"too_large", STATUS_NOTHING},
    [HTTP_KIND_REDIRECTS] = {"redirects", STATUS_NOTHING},
    [HTTP_KIND_PROTOCOL] = {"protocol", STATUS_NOTHING},
    [HTTP_KIND_CANCELLED] = {"cancelled", STATUS_CLOSED},
    [HTTP_KIND_MEMORY] = {"memory", STATUS_NO_MEMORY},
};

const char *http_kind_word(enum http_kind kind) {
    return kinds[kind].word;
}

int http_fault_set(struct http_fault *fault, enum http_kind kind, const char *hint,
                   const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(fault->fault.text, sizeof fault->fault.text, format, args);
    va_end(args);
    fault->kind = kind;
    fault->hint = hint;
    return kinds[kind].status;
}
