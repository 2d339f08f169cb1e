// SPDX-License-Identifier: MIT
//
// Bytes that grow, by doubling.

#include "buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void buffer_init(struct buffer *buffer) {
    memset(buffer, 0, sizeof *buffer);
}

void buffer_fini(struct buffer *buffer) {
    free(buffer->bytes);
    buffer_init(buffer);
}

void buffer_clear(struct buffer *buffer) {
    buffer->len = 0;
    if (buffer->is_broken)
        buffer_fini(buffer);
}

char *buffer_reserve(struct buffer *buffer, size_t extra) {
    if (buffer->is_broken)
        return NULL;
    if (extra <= buffer->capacity - buffer->len)
        return buffer->bytes + buffer->len;
    size_t capacity = buffer->capacity ? buffer->capacity : 64;
    while (capacity - buffer->len < extra) {
        if (capacity > SIZE_MAX / 2) {
            buffer->is_broken = true;
            return NULL;
        }
        capacity *= 2;
    }
    char *bytes = realloc(buffer->bytes, capacity);
    if (!bytes) {
        buffer->is_broken = true;
        return NULL;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return bytes + buffer->len;
}

void buffer_add(struct buffer *buffer, const void *bytes, size_t len) {
    char *place = len ? buffer_reserve(buffer, len) : NULL;
    if (place) {
        memcpy(place, bytes, len);
        buffer->len += len;
    }
}

void buffer_add_byte(struct buffer *buffer, char byte) {
    buffer_add(buffer, &byte, 1);
}
