// SPDX-License-Identifier: MIT

#include "grep.h"

#include "check.h"

#include <stdlib.h>
#include <unistd.h>

enum { AMPLE_US = 60 * 1000 * 1000 };

static struct pattern *open_pattern(const char *text) {
    struct fault fault;
    struct pattern *pattern;
    if (pattern_open(text, strlen(text), &pattern, &fault) != STATUS_OK)
        CHECK_TEXT("", fault.text);
    return pattern;
}

static void test_one_line(void) {
    struct pattern *pattern = open_pattern("^b+$");
    struct fault fault;
    bool is_match;
    pattern_allow(pattern, AMPLE_US, -1);
    CHECK("a match is found", pattern_match(pattern, "bb", 2, &is_match, &fault) == 0 && is_match);
    CHECK("or not", pattern_match(pattern, "ab", 2, &is_match, &fault) == 0 && !is_match);
    pattern_close(pattern);
    pattern_close(NULL);
}

static void test_wrong_pattern(void) {
    struct fault fault;
    struct pattern *pattern;
    CHECK("it is refused", pattern_open("a(", 2, &pattern, &fault) == STATUS_INVALID && !pattern);
    CHECK_TEXT("missing closing parenthesis, at byte 3", fault.text);
    CHECK("by the check too", pattern_check("a(", 2, &fault) == STATUS_INVALID);
    CHECK("which takes a good one", pattern_check("a", 1, &fault) == STATUS_OK);
}

// What the match limit does not see: each step is cheap, but there are a million times a million.
static void test_time(void) {
    size_t len = 1000 * 1000;
    char *line = malloc(len);
    struct pattern *pattern = open_pattern("\\s*a+[0-9]");
    struct fault fault;
    bool is_match;
    memset(line, 'a', len);
    pattern_allow(pattern, 20 * 1000, -1);
    CHECK("it ends when the time is up",
          pattern_match(pattern, line, len, &is_match, &fault) == STATUS_TIMEOUT && !is_match);
    CHECK("and nothing is matched any more",
          pattern_match(pattern, "a1", 2, &is_match, &fault) == STATUS_TIMEOUT);
    pattern_allow(pattern, AMPLE_US, -1);
    CHECK("until there is time again",
          pattern_match(pattern, "a1", 2, &is_match, &fault) == STATUS_OK && is_match);
    pattern_close(pattern);
    free(line);
}

static void test_cancel(void) {
    int ends[2];
    size_t len = 1000 * 1000;
    char *line = malloc(len);
    struct pattern *pattern = open_pattern("\\s*a+[0-9]");
    struct fault fault;
    bool is_match;
    memset(line, 'a', len);
    CHECK("there is a pipe", pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    pattern_allow(pattern, AMPLE_US, ends[0]);
    CHECK("it ends when it is cancelled",
          pattern_match(pattern, line, len, &is_match, &fault) == STATUS_CLOSED);
    pattern_close(pattern);
    free(line);
    close(ends[0]);
    close(ends[1]);
}

static void check_lines(const char *expected, const char *text, size_t n_context) {
    struct grep_found found = {0};
    struct fault fault;
    struct pattern *pattern = open_pattern("x");
    pattern_allow(pattern, AMPLE_US, -1);
    CHECK("it ends well",
          grep_lines(pattern, text, strlen(text), n_context, &found, &fault) == STATUS_OK);
    buffer_add_byte(&found.text, '\0');
    CHECK_TEXT(expected, found.text.bytes);
    buffer_fini(&found.text);
    pattern_close(pattern);
}

static void test_lines(void) {
    check_lines("", "", 0);
    check_lines("", "a\nb\n", 0);
    check_lines("x\n", "x", 0);
    check_lines("x1\r\nx2\n", "x1\r\na\n\nx2", 0);
    check_lines("x\nb\n--\ne\nx\n", "x\nb\nc\nd\ne\nx", 1);
    check_lines("x\nb\nc\nx\n", "x\nb\nc\nx\n", 1);
    check_lines("a\nx\nx\nb\n", "a\nx\nx\nb\nc\n", 1);
}

int main(void) {
    test_one_line();
    test_wrong_pattern();
    test_time();
    test_cancel();
    test_lines();
    return check_report();
}
