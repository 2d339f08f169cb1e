// SPDX-License-Identifier: MIT
//
// Between libFuzzer and a target: counts what was tried, and says so at the end, which libFuzzer
// does not do for bytes.

#include "fuzz.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static unsigned long long n_inputs;
static unsigned long long n_bytes;

void fuzz_fail(const char *file, int line, const char *claim) {
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, claim);
    abort();
}

static void report(void) {
    fprintf(stderr, "fuzzed: %llu inputs, %llu bytes\n", n_inputs, n_bytes);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    atexit(report);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    n_inputs++;
    n_bytes += len;
    fuzz_one((const char *)bytes, len);
    return 0;
}
