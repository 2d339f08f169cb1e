// SPDX-License-Identifier: MIT
//
// URLs and redirects: what passes is http or https without a user, and is read again as the same.
// The input is a URL, and behind a line feed where a redirect points.

#include "host/fuzz.h"
#include "http_url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void check_same(const struct http_url *url) {
    struct http_url again;
    struct http_fault fault;
    char *text = http_url_text(url);
    FUZZ_CHECK("a URL has a text", text);
    FUZZ_CHECK("only http and https pass",
               !strncasecmp(text, "http://", 7) || !strncasecmp(text, "https://", 8));
    http_url_init(&again);
    FUZZ_CHECK("its text is a URL again",
               http_url_set(&again, text, strlen(text), &fault) == STATUS_OK);
    FUZZ_CHECK("of the same origin", strcmp(url->origin, again.origin) == 0);
    char *text_again = http_url_text(&again);
    FUZZ_CHECK("and of the same text", text_again && strcmp(text, text_again) == 0);
    curl_free(text_again);
    curl_free(text);
    http_url_fini(&again);
}

static void check(const struct http_url *url, const struct http_url *base) {
    char *host = http_url_host(url);
    char *user = NULL;
    FUZZ_CHECK("a URL has a host", url->host && url->host[0] && url->origin && host);
    FUZZ_CHECK("no user passes", curl_url_get(url->parts, CURLUPART_USER, &user, 0) != CURLUE_OK);
    if (http_url_is_below(url, base))
        FUZZ_CHECK("what is below has the same origin", strcasecmp(url->origin, base->origin) == 0);
    free(host);
    check_same(url);
}

void fuzz_one(const char *bytes, size_t len) {
    struct http_url url, base;
    struct http_fault fault;
    const char *line_end = len ? memchr(bytes, '\n', len) : NULL;
    size_t first_len = line_end ? (size_t)(line_end - bytes) : len;
    http_url_init(&base);
    http_url_init(&url);
    FUZZ_CHECK("the base is a URL",
               http_url_set(&base, "http://a.example/v1/", 20, &fault) == STATUS_OK);
    int status = http_url_set(&url, bytes, first_len, &fault);
    if (status == STATUS_OK)
        check(&url, &base);
    if (status == STATUS_OK && line_end)
        status = http_url_set(&url, line_end + 1, len - first_len - 1, &fault);
    if (status == STATUS_OK && line_end)
        check(&url, &base);
    FUZZ_CHECK("a refusal has a kind and a sentence",
               status == STATUS_OK || (fault.kind != HTTP_KIND_NONE && fault.fault.text[0]));
    http_url_fini(&url);
    http_url_fini(&base);
}
