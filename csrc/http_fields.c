// SPDX-License-Identifier: MIT
//
// By libcurl's headers API, for the last answer of a handle.

#include "http_fields.h"

#include <string.h>

enum { MAX_RETRY_AFTER_S = 365 * 24 * 3600 };

static const char *read_header(CURL *easy, const char *name) {
    struct curl_header *header;
    if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return NULL;
    return header->value;
}

const char *http_fields_redirect(CURL *easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    bool is_redirect = (status >= 301 && status <= 303) || status == 307 || status == 308;
    const char *location = is_redirect ? read_header(easy, "location") : NULL;
    // Of an empty field libcurl keeps the line's end.
    return location && *location > ' ' ? location : NULL;
}

bool http_fields_keeps_method(CURL *easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status == 307 || status == 308;
}

// Seconds and dates both come as seconds from libcurl; 0 also where it could read neither.
int64_t http_fields_retry_after(CURL *easy) {
    const char *text = read_header(easy, "retry-after");
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    if (!text || (seconds == 0 && *text != '0'))
        return -1;
    if (seconds < 0)
        return 0;
    return seconds < MAX_RETRY_AFTER_S ? seconds : MAX_RETRY_AFTER_S;
}

bool http_fields_join(CURL *easy, const char *name, struct buffer *text) {
    struct curl_header *header;
    size_t amount = 1;
    for (size_t i = 0; i < amount; i++) {
        if (curl_easy_header(easy, name, i, CURLH_HEADER, -1, &header) != CURLHE_OK)
            break;
        amount = header->amount;
        buffer_add(text, header->value, strlen(header->value));
        buffer_add_byte(text, ',');
    }
    buffer_add_byte(text, '\0');
    return !text->is_broken;
}
