// SPDX-License-Identifier: MIT
//
// The lines of a text that a pattern matches, as the program grep prints them. Knows nothing of how
// matching is done.

#ifndef BATCH_GREP_H
#define BATCH_GREP_H

#include "buffer.h"
#include "pattern.h"

struct grep_found {
    struct buffer text;  // whole lines, each with its end
    int64_t n_matches;   // of lines
    int64_t n_lines;     // that were looked at, the one that could not be matched included
};

// Appends to *found, which begins as zeros and is the caller's to release by buffer_fini, also
// after a failure. Around each match stand up to n_context lines, and "--" where lines are left out
// between two of them. A line ends with LF; a CR before it is no part of what the pattern sees, but
// stays in the text. The last line gets an end if it has none.
// Returns 0, or what pattern_match returned, or STATUS_NO_MEMORY.
int grep_lines(struct pattern *pattern, const char *text, size_t len, size_t n_context,
               struct grep_found *found, struct fault *fault);

#endif
