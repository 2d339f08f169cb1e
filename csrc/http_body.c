// SPDX-License-Identifier: MIT
//
// A sink behind libcurl, with a coding between where there is one.

#include "http_body.h"

#include "http_fields.h"

#include <stdint.h>

static int append(void *data, const char *bytes, size_t len) {
    struct http_body *body = data;
    if (len > body->max_len - body->bytes->len)
        return STATUS_NOTHING;
    buffer_add(body->bytes, bytes, len);
    return body->bytes->is_broken ? STATUS_NO_MEMORY : STATUS_OK;
}

// Spares the download where the length tells beforehand. Of a compressed body it tells nothing.
static bool is_hopeless(const struct http_body *body) {
    curl_off_t length = -1;
    curl_easy_getinfo(body->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return length > 0 && (uint64_t)length > body->max_len;
}

// At the first byte, when the header is known. What a redirect says besides is not unpacked.
static int begin(struct http_body *body) {
    const struct coding_sink sink = {append, body};
    struct buffer names;
    int status = STATUS_NO_MEMORY;
    body->has_begun = true;
    if (http_fields_redirect(body->easy))
        return STATUS_OK;
    buffer_init(&names);
    if (http_fields_join(body->easy, "content-encoding", &names))
        status = coding_new(names.bytes, body->max_len, &sink, &body->coding, &body->fault);
    buffer_fini(&names);
    if (status == STATUS_OK && !body->coding && is_hopeless(body))
        return STATUS_NOTHING;
    return status;
}

size_t http_body_take(char *bytes, size_t size, size_t count, void *data) {
    struct http_body *body = data;
    size_t len = size * count;
    body->status = body->has_begun ? STATUS_OK : begin(body);
    if (body->status == STATUS_OK && body->coding)
        body->status = coding_add(body->coding, bytes, len, &body->fault);
    else if (body->status == STATUS_OK)
        body->status = append(body, bytes, len);
    return body->status == STATUS_OK ? len : CURL_WRITEFUNC_ERROR;
}

static int say_too_large(const struct http_body *body, struct http_fault *out_fault) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    size_t limit = body->max_len;
    size_t unit = 0;
    for (; unit < 3 && limit >= 1024 && limit % 1024 == 0; unit++)
        limit /= 1024;
    return http_fault_set(out_fault, HTTP_KIND_TOO_LARGE, "[fetch] max_body sets the limit",
                          "body larger than %zu %s ([fetch] max_body)", limit, units[unit]);
}

int http_body_say(const struct http_body *body, struct http_fault *out_fault) {
    switch (body->status) {
    case STATUS_OK:
        return STATUS_OK;
    case STATUS_NOTHING:
        return say_too_large(body, out_fault);
    case STATUS_INVALID:
        return http_fault_set(out_fault, HTTP_KIND_PROTOCOL, NULL,
                              "the body cannot be decompressed: %s", body->fault.text);
    default:
        return http_fault_set(out_fault, HTTP_KIND_MEMORY, NULL, "out of memory");
    }
}

int http_body_end(struct http_body *body, struct http_fault *out_fault) {
    if (!body->coding || coding_end(body->coding, &body->fault) == STATUS_OK)
        return STATUS_OK;
    return http_fault_set(out_fault, HTTP_KIND_CONNECT, NULL, "the body was cut off: %s",
                          body->fault.text);
}

void http_body_fini(struct http_body *body) {
    coding_free(body->coding);
    body->coding = NULL;
}
