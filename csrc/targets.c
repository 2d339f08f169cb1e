// SPDX-License-Identifier: MIT
//
// The packed list. What is read may come from a damaged store: no length is believed.

#include "targets.h"

#include "status.h"

#include <stdbool.h>
#include <string.h>

enum { LENGTH_BYTES = 5 };  // of a varint below 2^32

static const char no_options[] = "{}";

void targets_init(struct targets *targets) {
    memset(targets, 0, sizeof *targets);
}

void targets_fini(struct targets *targets) {
    buffer_fini(&targets->packed);
    targets_file_free(targets->file);
    targets_init(targets);
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

// A disk that does not take them is no reason to refuse them: they stay where they are.
static void put_away(struct targets *targets) {
    if (!targets->file)
        targets->file = targets_file_new();
    if (targets->file &&
        !targets_file_add(targets->file, targets->packed.bytes, targets->packed.len))
        targets->packed.len = 0;
    else
        targets->max_held = 0;
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
    if (targets->max_held && targets->packed.len > targets->max_held)
        put_away(targets);
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

// What lies at an offset of a list.
struct view {
    const char *bytes;
    size_t len;
    bool is_whole;  // up to the end of what is in the same place
};

static int look(const struct targets *targets, size_t offset, size_t wanted, struct view *out) {
    size_t filed = targets->file ? targets->file->len : 0;
    if (offset < filed) {
        int status = targets_file_look(targets->file, offset, wanted, &out->bytes, &out->len);
        out->is_whole = !status && offset + out->len == filed;
        return status;
    }
    offset -= filed;
    if (offset >= targets->packed.len)
        return STATUS_NOTHING;
    *out = (struct view){targets->packed.bytes + offset, targets->packed.len - offset, true};
    return STATUS_OK;
}

// A view that has the whole first target, which is read. STATUS_INVALID when there is none.
static int look_at_target(const struct targets *targets, size_t offset, size_t wanted,
                          struct view *out, size_t *out_end, struct target *out_target) {
    for (;;) {
        int status = look(targets, offset, wanted, out);
        if (status)
            return status;
        *out_end = 0;
        status = targets_read(out->bytes, out->len, out_end, out_target);
        if (status != STATUS_INVALID || out->is_whole)
            return status;
        wanted = 2 * out->len;
    }
}

int targets_next(const struct targets *targets, size_t *offset, struct target *out_target) {
    struct view view;
    size_t end;
    int status = look_at_target(targets, *offset, 0, &view, &end, out_target);
    if (!status)
        *offset += end;
    return status;
}

int targets_run(const struct targets *targets, size_t *offset, size_t max_len,
                const char **out_packed, size_t *out_len, size_t *out_count) {
    struct view view;
    struct target target;
    size_t end, next;
    int status = look_at_target(targets, *offset, max_len, &view, &end, &target);
    if (status)
        return status;
    *out_count = 1;
    for (next = end;
         targets_read(view.bytes, view.len, &next, &target) == STATUS_OK && next <= max_len;
         end = next)
        ++*out_count;
    *out_packed = view.bytes;
    *out_len = end;
    *offset += end;
    return STATUS_OK;
}
