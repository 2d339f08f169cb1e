// SPDX-License-Identifier: MIT
//
// The rules for names (RFC 9110 tokens), values (no control characters) and whose header it is.

#include "http_header.h"

#include <string.h>
#include <strings.h>

static const char token_characters[] = "!#$%&'*+-.^_`|~0123456789"
                                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static const char *const own_headers[] = {
    "Host",    "Connection", "Content-Length", "Expect",  "HTTP2-Settings",    "Keep-Alive",
    "Proxy-*", "TE",         "Trailer",        "Upgrade", "Transfer-Encoding",
};

static const char *const private_headers[] = {"Authorization", "Cookie"};

static bool is_token(const char *bytes, size_t len) {
    if (len == 0)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!bytes[i] || !strchr(token_characters, bytes[i]))
            return false;
    return true;
}

static bool is_text(const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
            return false;
    }
    return true;
}

// A pattern is a name, or the beginning of one before a star.
static bool is_named(const struct http_header *header, const char *pattern) {
    size_t len = strcspn(pattern, "*");
    if (pattern[len] == '*' ? header->name_len < len : header->name_len != len)
        return false;
    return strncasecmp(header->name, pattern, len) == 0;
}

static bool is_among(const struct http_header *header, const char *const *patterns, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_named(header, patterns[i]))
            return true;
    return false;
}

int http_header_check(const struct http_header *header, struct http_fault *out_fault) {
    int shown = header->name_len < 100 ? (int)header->name_len : 100;
    if (!is_token(header->name, header->name_len))
        return http_fault_set(out_fault, HTTP_KIND_HEADER, NULL,
                              "'%.*s' is no name of a request header", shown, header->name);
    if (!is_text(header->value, header->value_len))
        return http_fault_set(out_fault, HTTP_KIND_HEADER, NULL,
                              "header '%.*s' must not hold line breaks or control characters",
                              shown, header->name);
    if (is_among(header, own_headers, sizeof own_headers / sizeof *own_headers))
        return http_fault_set(out_fault, HTTP_KIND_HEADER, NULL,
                              "header '%.*s' is set by the connection itself", shown, header->name);
    return STATUS_OK;
}

bool http_header_is(const struct http_header *header, const char *name) {
    return is_named(header, name);
}

bool http_header_is_private(const struct http_header *header) {
    return is_among(header, private_headers, sizeof private_headers / sizeof *private_headers);
}
