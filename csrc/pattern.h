// SPDX-License-Identifier: MIT
//
// A PCRE2 pattern, matched against one line of text at a time, in bounded time and memory. The only
// file that knows PCRE2. Knows nothing of where lines come from. A struct pattern belongs to one
// thread at a time; two of them share nothing.

#ifndef BATCH_PATTERN_H
#define BATCH_PATTERN_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern;

// Compiles. Returns 0, STATUS_INVALID with what is wrong and where in *fault, or STATUS_NO_MEMORY;
// *out_pattern is NULL then.
int pattern_open(const char *text, size_t len, struct pattern **out_pattern, struct fault *fault);

// NULL is harmless.
void pattern_close(struct pattern *pattern);

// As pattern_open, without keeping the result.
int pattern_check(const char *text, size_t len, struct fault *fault);

// From now on all matches together may take cpu_us of this thread's time, and end when cancel_fd
// becomes readable (it is never read; -1: none). Without a call the time is 0.
void pattern_allow(struct pattern *pattern, int64_t cpu_us, int cancel_fd);

// Whether the line, given without its end, has a match: *out_is_match. It is read as UTF-8; bytes
// that are none match nothing, and what stands around them is still found.
// Returns 0; STATUS_TIMEOUT when the pattern takes too long or too much memory; STATUS_CLOSED when
// cancelled; STATUS_INVALID with a sentence in *fault for what PCRE2 cannot match.
int pattern_match(struct pattern *pattern, const char *line, size_t len, bool *out_is_match,
                  struct fault *fault);

#endif
