// SPDX-License-Identifier: MIT
//
// What the header of an answer says, once it is there.

#ifndef BATCH_HTTP_FIELDS_H
#define BATCH_HTTP_FIELDS_H

#include "buffer.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

// Where the answer points, or NULL when it is no redirect. Lives until the handle's next transfer.
const char *http_fields_redirect(CURL *easy);

// Whether a redirect wants the same method again. After the others a POST becomes a GET, as
// browsers have it.
bool http_fields_keeps_method(CURL *easy);

// In how many seconds to come back; -1 where the server named none.
int64_t http_fields_retry_after(CURL *easy);

// Appends the values of all fields of that name, each with a comma behind it, and a terminator.
// False when memory ran out.
bool http_fields_join(CURL *easy, const char *name, struct buffer *text);

#endif
