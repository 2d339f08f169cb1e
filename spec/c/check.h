// SPDX-License-Identifier: MIT
//
// Claims for the C tests. Each claim that fails is printed, all are counted, and main ends with
// `return check_report();`. One test program is one file, so the counts may live here.

#ifndef BATCH_CHECK_H
#define BATCH_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int check_n_passed;
static int check_n_failed;

static inline bool check_claim(bool holds, const char *file, int line, const char *claim) {
    if (holds) {
        check_n_passed++;
    } else {
        check_n_failed++;
        printf("%s:%d: not so: %s\n", file, line, claim);
    }
    return holds;
}

static inline bool check_text(const char *expected, const char *actual, const char *file, int line,
                              const char *expression) {
    bool is_same = actual && strcmp(expected, actual) == 0;
    if (!check_claim(is_same, file, line, expression))
        printf("    expected: %s\n    actual:   %s\n", expected, actual ? actual : "(null)");
    return is_same;
}

// Says how many claims held. What main returns: 0 when all did.
static inline int check_report(void) {
    printf("%d passed, %d failed\n", check_n_passed, check_n_failed);
    return check_n_failed > 0;
}

// Both give whether the claim held, so that a test may stop where going on makes no sense.
#define CHECK(claim, condition) check_claim((condition), __FILE__, __LINE__, claim)
#define CHECK_TEXT(expected, actual) check_text(expected, actual, __FILE__, __LINE__, #actual)

#endif
