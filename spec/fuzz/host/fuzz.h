// SPDX-License-Identifier: MIT
//
// What a fuzz target and its host agree on. The target is one function that takes any bytes and
// ends the process when a claim does not hold. Its host is libFuzzer (drive.c) or the replay of
// files (replay.c).

#ifndef BATCH_FUZZ_H
#define BATCH_FUZZ_H

#include <stddef.h>

// Any number of calls in one process; a call leaves nothing behind that the next one would see.
void fuzz_one(const char *bytes, size_t len);

// Prints and aborts, so that libFuzzer keeps the input.
_Noreturn void fuzz_fail(const char *file, int line, const char *claim);

#define FUZZ_CHECK(claim, condition)                                                               \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_fail(__FILE__, __LINE__, claim);                                                  \
    } while (0)

// Takes a byte off the input, for a choice that it makes; 0 at its end.
static inline unsigned fuzz_take(const char **bytes, size_t *len) {
    if (*len == 0)
        return 0;
    (*len)--;
    return (unsigned char)*(*bytes)++;
}

#endif
