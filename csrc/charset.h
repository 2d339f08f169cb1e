// SPDX-License-Identifier: MIT
//
// Text of the web as UTF-8: by its byte order mark, else by the charset that its sender named, else
// by a look at the bytes. Knows nothing of HTTP and HTML.

#ifndef BATCH_CHARSET_H
#define BATCH_CHARSET_H

#include "buffer.h"

#include <stddef.h>

enum { CHARSET_MAX_LABEL = 32 };

struct charset_guess {
    char label[CHARSET_MAX_LABEL];  // in lower case, as a sender would name it
    size_t mark_len;                // bytes of the byte order mark at the beginning
};

// Finds the charset of bytes; label is what the sender said, NULL for nothing. Returns 0, or
// STATUS_NOT_FOUND for a label that stands for no charset known here.
int charset_guess(const char *label, const char *bytes, size_t len,
                  struct charset_guess *out_guess);

// Appends the text as valid UTF-8; what the charset does not know becomes U+FFFD. Returns 0,
// STATUS_NOT_FOUND or STATUS_NO_MEMORY.
int charset_decode(const struct charset_guess *guess, const char *bytes, size_t len,
                   struct buffer *text);

#endif
