// SPDX-License-Identifier: MIT
//
// Bytes that grow. A buffer remembers that memory ran out, so that a row of appends needs one check
// at its end. Plain data: whoever holds it may read the fields.

#ifndef BATCH_BUFFER_H
#define BATCH_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *bytes;  // NULL while nothing was appended
    size_t len;
    size_t capacity;
    bool is_broken;  // memory ran out; what is here is incomplete
};

void buffer_init(struct buffer *buffer);

// Releases the bytes; the buffer is as after buffer_init.
void buffer_fini(struct buffer *buffer);

// Makes it empty but keeps its room; one that was broken is whole again.
void buffer_clear(struct buffer *buffer);

// Appends len bytes. On memory shortage marks the buffer broken and appends nothing more.
void buffer_add(struct buffer *buffer, const void *bytes, size_t len);

void buffer_add_byte(struct buffer *buffer, char byte);

// Makes room for extra bytes behind len and returns their place; NULL when memory ran out.
// The caller writes there and adds what it wrote to len.
char *buffer_reserve(struct buffer *buffer, size_t extra);

#endif
