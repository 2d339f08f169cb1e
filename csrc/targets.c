// SPDX-License-Identifier: MIT
//
// The packed list: for each target two lengths, then its bytes.

#include "targets.h"

#include "status.h"

#include <string.h>

struct lengths {
    uint32_t url;
    uint32_t options;
};

void targets_init(struct targets *targets) {
    buffer_init(&targets->packed);
    targets->count = 0;
}

void targets_fini(struct targets *targets) {
    buffer_fini(&targets->packed);
    targets->count = 0;
}

void targets_add(struct targets *targets, const struct target *target) {
    struct lengths lengths = {(uint32_t)target->url_len, (uint32_t)target->options_len};
    if (!buffer_reserve(&targets->packed, sizeof lengths + target->url_len + target->options_len))
        return;
    buffer_add(&targets->packed, &lengths, sizeof lengths);
    buffer_add(&targets->packed, target->url, target->url_len);
    buffer_add(&targets->packed, target->options, target->options_len);
    targets->count++;
}

int targets_next(const struct targets *targets, size_t *offset, struct target *out_target) {
    if (*offset >= targets->packed.len)
        return STATUS_NOTHING;
    struct lengths lengths;
    const char *place = targets->packed.bytes + *offset;
    memcpy(&lengths, place, sizeof lengths);
    out_target->url = place + sizeof lengths;
    out_target->url_len = lengths.url;
    out_target->options = out_target->url + lengths.url;
    out_target->options_len = lengths.options;
    *offset += sizeof lengths + lengths.url + lengths.options;
    return STATUS_OK;
}
