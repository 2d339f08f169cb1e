// SPDX-License-Identifier: MIT
//
// Rows of the store as JSON, under the names that Lua and SQL use too: what HTTP answers with.
// Absent fields are left out. Stored JSON (options, meta) goes through unread.
//
// Memory shortage is remembered in the buffer's is_broken.

#ifndef BATCH_ROWS_H
#define BATCH_ROWS_H

#include "buffer.h"
#include "store.h"

void rows_add_job(struct buffer *out, const struct job_row *job);

// A pending target, or one with its outcome. Content that is not UTF-8 becomes base64, and says so.
// has_content: whether a result comes along.
void rows_add_target(struct buffer *out, const struct target_row *target, bool has_content);

#endif
