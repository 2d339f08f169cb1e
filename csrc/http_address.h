// SPDX-License-Identifier: MIT
//
// A URL as it would be requested, for those who only want to know where it leads.

#ifndef BATCH_HTTP_ADDRESS_H
#define BATCH_HTTP_ADDRESS_H

#include "http_fault.h"

#include <stddef.h>

struct http_address {
    char *url;   // without its fragment
    char *host;  // in lower case, with the port: "example.org:443"
};

// Returns 0 with an address to be released by http_address_fini, or a negative status with an empty
// one and the reason in *out_fault.
int http_address_read(const char *url, size_t len, struct http_address *out_address,
                      struct http_fault *out_fault);
void http_address_fini(struct http_address *address);

#endif
