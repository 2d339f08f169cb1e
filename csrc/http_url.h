// SPDX-License-Identifier: MIT
//
// A URL under the rules: http or https, no user name, no port of another protocol. The rules hold
// for what a user gives and for where a redirect points. Parsing is libcurl's, so that what is
// checked here is what is connected to.

#ifndef BATCH_HTTP_URL_H
#define BATCH_HTTP_URL_H

#include "http_fault.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

enum { HTTP_MAX_URL = 32 * 1024 };

struct http_url {
    CURLU *parts;
    char *host;     // as libcurl spells it: lower case or percent-decoded, IPv4 in dotted form
    char *origin;   // scheme, host and port in one text
    bool has_left;  // a redirect led to another origin than it came from
};

void http_url_init(struct http_url *url);
void http_url_fini(struct http_url *url);

// Takes a URL, or on a URL that was set before, a redirect's location, which may be relative.
// After a refusal the URL can only be released.
int http_url_set(struct http_url *url, const char *text, size_t len, struct http_fault *out_fault);

// Whether the URL is the other one, or lies below it: the same scheme, host and port, and a path
// that begins with its path, up to the end of a segment. A path that some servers would read as
// leading up again does not.
bool http_url_is_below(const struct http_url *url, const struct http_url *other);

// The whole URL, to be released with curl_free. NULL when memory ran out.
char *http_url_text(const struct http_url *url);

// Host and port in one text, without the dot of a full name: "example.org:443". To be released with
// free. NULL when memory ran out.
char *http_url_host(const struct http_url *url);

#endif
