// SPDX-License-Identifier: MIT
//
// The packed list. What is read may come from a damaged store: no length is believed.

#include "targets.h"

#include "status.h"

#include <string.h>

enum { LENGTH_BYTES = 5 };  // of a varint below 2^32

static const char no_options[] = "{}";

void targets_init(struct targets *targets) {
    buffer_init(&targets->packed);
    targets->count = 0;
}

void targets_fini(struct targets *targets) {
    buffer_fini(&targets->packed);
    targets->count = 0;
}

static char *put_length(char *place, size_t len) {
    for (; len >= 0x80; len >>= 7)
        *place++ = (char)(len | 0x80);
    *place++ = (char)len;
    return place;
}

static char *put_bytes(char *place, const char *bytes, size_t len) {
    if (len)
        memcpy(place, bytes, len);
    return place + len;
}

void targets_add(struct targets *targets, const struct target *target) {
    // No other object is as short as "{}".
    bool has_options = target->options_len != sizeof no_options - 1;
    size_t options_len = has_options ? target->options_len : 0;
    size_t room = 2 * LENGTH_BYTES + target->url_len + options_len;
    char *start = buffer_reserve(&targets->packed, room);
    if (!start)
        return;
    char *place = put_length(start, target->url_len);
    place = put_length(place, options_len);
    place = put_bytes(place, target->url, target->url_len);
    place = put_bytes(place, target->options, options_len);
    targets->packed.len += (size_t)(place - start);
    targets->count++;
}

// Returns the place behind the length, or NULL when there is none before the end.
static const unsigned char *read_length(const unsigned char *place, const unsigned char *end,
                                        size_t *out_len) {
    uint64_t len = 0;
    for (int shift = 0; shift < 7 * LENGTH_BYTES && place < end; shift += 7) {
        len |= (uint64_t)(*place & 0x7f) << shift;
        if (*place++ < 0x80) {
            *out_len = (size_t)len;
            return len <= UINT32_MAX ? place : NULL;
        }
    }
    return NULL;
}

// The same of both lengths. Most have one byte each, and whoever looks for one target of a list
// passes many.
static const unsigned char *read_lengths(const unsigned char *place, const unsigned char *end,
                                         size_t *out_url_len, size_t *out_options_len) {
    if (end - place >= 2 && !((place[0] | place[1]) & 0x80)) {
        *out_url_len = place[0];
        *out_options_len = place[1];
        return place + 2;
    }
    place = read_length(place, end, out_url_len);
    return place ? read_length(place, end, out_options_len) : NULL;
}

int targets_read(const char *packed, size_t len, size_t *offset, struct target *out_target) {
    if (*offset >= len)
        return STATUS_NOTHING;
    const unsigned char *place = (const unsigned char *)packed + *offset;
    const unsigned char *end = (const unsigned char *)packed + len;
    size_t url_len, options_len;
    place = read_lengths(place, end, &url_len, &options_len);
    if (!place || url_len + options_len > (size_t)(end - place))
        return STATUS_INVALID;
    out_target->url = (const char *)place;
    out_target->url_len = url_len;
    out_target->options = options_len ? out_target->url + url_len : no_options;
    out_target->options_len = options_len ? options_len : sizeof no_options - 1;
    *offset = (size_t)((const char *)place - packed) + url_len + options_len;
    return STATUS_OK;
}

int targets_next(const struct targets *targets, size_t *offset, struct target *out_target) {
    return targets_read(targets->packed.bytes, targets->packed.len, offset, out_target);
}
