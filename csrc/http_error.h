// SPDX-License-Identifier: MIT
//
// libcurl's codes as sentences for people who do not know libcurl.

#ifndef BATCH_HTTP_ERROR_H
#define BATCH_HTTP_ERROR_H

#include "http_fault.h"

#include <curl/curl.h>

// Says why the transfer on easy ended with code; host is the one it went to, detail is libcurl's
// own text. Time-outs and limits are the caller's to tell. Returns the fault's status.
int http_error(CURL *easy, CURLcode code, const char *host, const char *detail,
               struct http_fault *out_fault);

#endif
