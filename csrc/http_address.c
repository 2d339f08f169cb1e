// SPDX-License-Identifier: MIT
//
// Under the rules of http_url.

#include "http_address.h"

#include "http_url.h"

#include <stdlib.h>
#include <string.h>

int http_address_read(const char *url, size_t len, struct http_address *out_address,
                      struct http_fault *out_fault) {
    struct http_url parsed;
    memset(out_address, 0, sizeof *out_address);
    http_url_init(&parsed);
    int status = http_url_set(&parsed, url, len, out_fault);
    if (status == STATUS_OK) {
        curl_url_set(parsed.parts, CURLUPART_FRAGMENT, NULL, 0);
        out_address->url = http_url_text(&parsed);
        out_address->host = http_url_host(&parsed);
        if (!out_address->url || !out_address->host)
            status = http_fault_set(out_fault, HTTP_KIND_MEMORY, NULL, "out of memory");
    }
    http_url_fini(&parsed);
    if (status != STATUS_OK)
        http_address_fini(out_address);
    return status;
}

void http_address_fini(struct http_address *address) {
    curl_free(address->url);
    free(address->host);
    memset(address, 0, sizeof *address);
}
