// SPDX-License-Identifier: MIT
//
// Patterns of users and lines of strangers: bounded, and with a sentence where something is wrong.
// The input is a pattern, and behind a line feed the line.

#include "host/fuzz.h"
#include "pattern.h"

#include <string.h>
#include <time.h>

enum { MAX_MATCH_US = 2000, MAX_CALL_US = 2000000 };

static int64_t cpu_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void fuzz_one(const char *bytes, size_t len) {
    struct pattern *pattern;
    struct fault fault = {""};
    const char *line_end = len ? memchr(bytes, '\n', len) : NULL;
    size_t pattern_len = line_end ? (size_t)(line_end - bytes) : len;
    int status = pattern_open(bytes, pattern_len, &pattern, &fault);
    FUZZ_CHECK("a pattern is taken or refused by a sentence",
               status == STATUS_OK ? pattern != NULL
                                   : !pattern && status == STATUS_INVALID && fault.text[0]);
    FUZZ_CHECK("a check says the same as opening",
               pattern_check(bytes, pattern_len, &fault) == status);
    if (status || !line_end) {
        pattern_close(pattern);
        return;
    }
    bool is_match = false;
    int64_t begin_us = cpu_us();
    pattern_allow(pattern, MAX_MATCH_US, -1);
    status = pattern_match(pattern, line_end + 1, len - pattern_len - 1, &is_match, &fault);
    FUZZ_CHECK("a match ends as it should",
               status == STATUS_OK || status == STATUS_TIMEOUT || status == STATUS_INVALID);
    FUZZ_CHECK("a match ends in time", cpu_us() - begin_us < MAX_CALL_US);
    pattern_close(pattern);
}
