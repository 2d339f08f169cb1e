// SPDX-License-Identifier: MIT
//
// JSON by the letter. The sources are part of this program, so that their memory can run out.

#include <stdbool.h>
#include <stdlib.h>

static int n_allocations, failing_allocation;  // counted from 1; 0: none fails

static bool is_refused_memory(void) {
    return ++n_allocations == failing_allocation;
}

static void *scarce_malloc(size_t size) {
    return is_refused_memory() ? NULL : malloc(size);
}

static void *scarce_realloc(void *memory, size_t size) {
    return is_refused_memory() ? NULL : realloc(memory, size);
}

#define malloc scarce_malloc
#define realloc scarce_realloc
#include "../../csrc/buffer.c"
#include "../../csrc/json_check.c"
#undef malloc
#undef realloc

#include "check.h"

enum { DEPTH = 8 };

static bool is_json(const char *text, size_t len) {
    struct json_fault fault;
    // On the heap and as long as it is, so that a sanitizer sees a look behind the end.
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    bool is = json_check(copy, len, DEPTH, &fault);
    CHECK("a fault has a sentence, and nothing else has", is == !fault.what);
    CHECK("and lies in the text", fault.at <= len);
    free(copy);
    return is;
}

static void accept_all(const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        CHECK(texts[i], is_json(texts[i], strlen(texts[i])));
}

static void refuse_all(const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        CHECK(texts[i], !is_json(texts[i], strlen(texts[i])));
}

#define ACCEPT(...)                                                                                \
    do {                                                                                           \
        static const char *const texts[] = {__VA_ARGS__};                                          \
        accept_all(texts, sizeof texts / sizeof *texts);                                           \
    } while (0)
#define REFUSE(...)                                                                                \
    do {                                                                                           \
        static const char *const texts[] = {__VA_ARGS__};                                          \
        refuse_all(texts, sizeof texts / sizeof *texts);                                           \
    } while (0)

static void test_values(void) {
    ACCEPT("null", "true", "false", "0", "\"\"", "[]", "{}", " \t\r\n[ \n]\t ", "[ ]", "{ }");
    ACCEPT("[1,2]", "[ 1 , 2 ]", "{\"a\":1}", " { \"a\" : 1 , \"b\" : [ ] } ", "[[],{},[{}]]");
    REFUSE("", " ", "nul", "nullx", "nulll", "True", "NULL", "undefined", "\xEF\xBB\xBFnull");
    REFUSE("NaN", "nan", "Infinity", "-Infinity", "inf", "-inf", "[NaN]", "'a'", "a");
    REFUSE("1 2", "[] []", "{}x", "[1,]", "[,1]", "[,]", "[1 2]", "[", "[1", "[1,", "]", "[}");
    REFUSE("{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}");
    REFUSE("{a:1}", "{1:1}", "{\"a\" 1}", "{\"a\",1}", "{\"a\":1 \"b\":2}", "{\"a\":1]", "{\"a\"}");
    REFUSE("[1]//", "[1]/**/", "/**/[1]", "#\n1", "\v1", "\f1", "1\v",
           "\xC2\xA0"
           "1");
    CHECK("NUL is no space", !is_json("1\0", 2) && !is_json("\0"
                                                            "1",
                                                            2));
}

static void test_strings(void) {
    ACCEPT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u0000\\uabCD\\uFFFF\"", "\"\x7F\"", "\"/\"");
    ACCEPT("\"\xC3\xBC\xF0\x9F\x98\x80\"", "\"\\ud83d\\ude00\"",
           "\"\\uD800\\uDC00\\uDBFF\\uDFFF\"");
    REFUSE("\"", "\"a", "\"\\", "\"\\\"", "\"\\a\"", "\"\\'\"", "\"\\x41\"", "\"\\0\"",
           "\"\\U0041\"");
    REFUSE("\"\\u\"", "\"\\u1\"", "\"\\u12\"", "\"\\u123\"", "\"\\u123", "\"\\u12g4\"",
           "\"\\u-123\"", "\"\\u 123\"", "\"\\u+123\"", "\"\\u0x12\"");
    REFUSE("\"\\ud83d\"", "\"\\ud83dx\"", "\"\\ud83d\\n\"", "\"\\ude00\"", "\"\\ud83d\\ud83d\"",
           "\"\\ud83d\\u0041\"", "\"\\ude00\\ud83d\"", "\"\\ud83d\\", "\"\\ud83d\\u",
           "\"\\ud83d\\ude0");
    REFUSE("\"\n\"", "\"\t\"", "\"\x1F\"", "\"\xFF\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"",
           "\"\xC3\"");
    CHECK("NUL must be escaped", !is_json("\"\0\"", 3));
    CHECK("also behind a backslash", !is_json("\"\\\0\"", 4));
    for (int byte = 0; byte < 0x20; byte++) {
        char text[] = {'"', (char)byte, '"'};
        CHECK("so must every control character", !is_json(text, sizeof text));
    }
}

static void test_numbers(void) {
    ACCEPT("-0", "0.0", "-0.0", "0e0", "0E+00", "0e-0", "1.5e-3", "10", "123456789012345678901234");
    ACCEPT("1e308", "-1e308", "1e-400", "0.1e-999999999999", "0e999999999999", "0.000e400",
           "-0e400");
    REFUSE("-", "+1", "01", "-01", "00", "0.", ".5", "-.5", "1.", "1.e1", "1e", "1e+", "1e-", "1E");
    REFUSE("0x1", "0X1", "1_000", "1,0", "1.2.3", "1e1.5", "1e1e1", "--1", "- 1", "1f", "1L",
           "0b1");
    REFUSE("1e309", "-1e309", "1e400", "1e999999999999999999999", "10e308", "0.001e312", "1E+309");
}

// 2^1024 - 2^970, half a step above the largest double, is the least that is read as infinite.
static void test_the_largest_number(void) {
    char text[1024];
    struct json_fault fault;
    ACCEPT("1.7976931348623157e308", "-1.7976931348623157e308", "17976931348623157e292",
           "0.00017976931348623157e312", "1.7976931348623158e308", "179769313486231570000e288");
    REFUSE("1.7976931348623159e308", "-1.7976931348623159e+308", "17976931348623159e292",
           "0.00017976931348623159e312", "1.8e308");
    snprintf(text, sizeof text, "%.0f", 0x1.fffffffffffffp1023);
    CHECK("the largest double itself is one", json_check(text, strlen(text), DEPTH, &fault));
    long double half_above = 0x1.fffffffffffff8p1023L;
    int len = snprintf(text, sizeof text, "%.0Lf", half_above);
    CHECK("half a step above it is none", !json_check(text, (size_t)len, DEPTH, &fault));
    text[len++] = '.';
    text[len++] = '0';
    CHECK("nor with a point", !json_check(text, (size_t)len, DEPTH, &fault));
    len = snprintf(text, sizeof text, "%.0Lf", half_above);
    text[len - 1]--;  // its last digit is not 0
    CHECK("one less is one", json_check(text, (size_t)len, DEPTH, &fault));
    len += snprintf(text + len, sizeof text - (size_t)len, ".999999");
    CHECK("also with a fraction", json_check(text, (size_t)len, DEPTH, &fault));
}

// digits zeros and the like around a one.
static void test_long_numbers(void) {
    char text[2048];
    struct json_fault fault;
    int len = snprintf(text, sizeof text, "1%0400d", 0);
    CHECK("400 zeros are too large", !json_check(text, (size_t)len, DEPTH, &fault));
    len = snprintf(text, sizeof text, "1%0400de-100", 0);
    CHECK("but not with an exponent that makes up for it",
          json_check(text, (size_t)len, DEPTH, &fault));
    len = snprintf(text, sizeof text, "0.%0400d1e700", 0);
    CHECK("so are 400 behind the point", json_check(text, (size_t)len, DEPTH, &fault));
    len = snprintf(text, sizeof text, "0.%0400d1e710", 0);
    CHECK("which can be too large as well", !json_check(text, (size_t)len, DEPTH, &fault));
    len = snprintf(text, sizeof text, "1e%0400d7", 0);
    CHECK("an exponent may begin with zeros", json_check(text, (size_t)len, DEPTH, &fault));
    len = snprintf(text, sizeof text, "1e9%0400d", 0);
    CHECK("one of 400 digits is too large", !json_check(text, (size_t)len, DEPTH, &fault));
    len = snprintf(text, sizeof text, "1e-9%0400d", 0);
    CHECK("or very small", json_check(text, (size_t)len, DEPTH, &fault));
    len = snprintf(text, sizeof text, "0e9%0400d", 0);
    CHECK("zero stays zero", json_check(text, (size_t)len, DEPTH, &fault));
}

static void test_keys(void) {
    ACCEPT("{\"a\":1,\"A\":2}", "{\"\":1}", "{\"a\":{\"a\":{\"a\":1}}}", "[{\"a\":1},{\"a\":1}]");
    ACCEPT("{\"a\":{\"x\":1,\"y\":2},\"b\":{\"x\":1,\"y\":2}}",
           "{\"ab\":{\"c\":1},\"a\":{\"bc\":1}}");
    ACCEPT("{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1,\"10\":1}");
    ACCEPT("{\"\\u00e9\":1,\"e\\u0301\":2}");
    REFUSE("{\"a\":1,\"a\":2}", "{\"\":1,\"\":2}", "{\"a\":1,\"b\":2,\"a\":3}",
           "{\"a\":{},\"a\":{}}");
    REFUSE("{\"a\":1,\"\\u0061\":2}", "{\"\\/\":1,\"/\":2}",
           "{\"\\ud83d\\ude00\":1,\"\xF0\x9F\x98\x80\":2}", "{\"\\u00fc\":1,\"\xC3\xBC\":2}",
           "{\"\\u20ac\":1,\"\xE2\x82\xAC\":2}", "{\"\\n\":1,\"\\u000A\":2}");
    REFUSE("{\"x\":[{\"a\":1,\"a\":2}]}", "{\"a\":{\"b\":1},\"c\":{\"b\":1},\"a\":0}",
           "{\"a\":{\"b\":1,\"b\":2},\"c\":1}");
    REFUSE("{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1,\"1\":1}",
           "{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":{\"z\":1},\"9\":1,"
           "\"\\u0039\":1}",
           "{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"7\":1}");
    ACCEPT("{\"\\u0000a\":1,\"\\u0000b\":2}");
}

static void test_many_keys(void) {
    struct buffer text;
    struct json_fault fault;
    buffer_init(&text);
    for (int i = 0; i < 5000; i++) {
        char member[48];
        int len = snprintf(member, sizeof member, "%c\"%d\":{\"x\":%d}", i ? ',' : '{', i * 7, i);
        buffer_add(&text, member, (size_t)len);
    }
    size_t len = text.len;
    buffer_add_byte(&text, '}');
    CHECK("five thousand keys are fine", json_check(text.bytes, text.len, DEPTH, &fault));
    text.len = len;
    buffer_add(&text, ",\"\\u0037\":1}", 13);
    CHECK("one of them again is not", !json_check(text.bytes, text.len, DEPTH, &fault));
    CHECK_TEXT("an object must not have a key twice", fault.what);
    buffer_fini(&text);
}

static void test_depth(void) {
    struct json_fault fault;
    char deep[2000];
    CHECK("a value is one deep", json_check("1", 1, 1, &fault));
    CHECK("a list with one is two", !json_check("[1]", 3, 1, &fault));
    CHECK("which may be allowed", json_check("[1]", 3, 2, &fault));
    CHECK("an empty list is one", json_check("[]", 2, 1, &fault));
    CHECK("a member as well",
          json_check("{\"a\":1}", 7, 2, &fault) && !json_check("{\"a\":1}", 7, 1, &fault));
    memset(deep, '[', sizeof deep);
    CHECK("what does not end is refused at its depth", !json_check(deep, sizeof deep, 104, &fault));
    CHECK_TEXT("too many values inside of each other", fault.what);
    CHECK("and there", fault.at == 104);
    memset(deep + 1000, ']', 1000);
    CHECK("a thousand may be allowed", json_check(deep, sizeof deep, 1000, &fault));
}

static void test_faults(void) {
    static const struct {
        const char *text;
        size_t at;
        const char *what;
    } faults[] = {
        {"", 0, "the text ends where a value must be"},
        {"[1,", 3, "the text ends where a value must be"},
        {"[1 2]", 3, "a comma or ] must follow a list's value"},
        {"{\"a\" 1}", 5, "a colon must follow a key"},
        {"{1:2}", 1, "an object's key must be a string"},
        {"[01]", 1, "a number must not begin with a zero"},
        {"[1e400]", 1, "the number is too large"},
        {"[\"\\x\"]", 2, "no such escape"},
        {"\"\\ud83d\"", 1, "half of a surrogate pair is no character"},
        {"\"a", 2, "the text ends inside of a string"},
        {"1 1", 2, "nothing may follow the value"},
        {"[nul]", 1, "no value begins like that"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct json_fault fault;
        json_check(faults[i].text, strlen(faults[i].text), DEPTH, &fault);
        CHECK_TEXT(faults[i].what, fault.what);
        CHECK(faults[i].text, faults[i].at == fault.at);
    }
}

static void test_memory_shortage(void) {
    static const char text[] = "{\"1\":1,\"2\":{\"a\":1},\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,"
                               "\"8\":1,\"a key which is so long that it needs room of its own, "
                               "more than what was there for all of the others\":1}";
    struct json_fault fault;
    n_allocations = failing_allocation = 0;
    CHECK("a text is fine", json_check(text, sizeof text - 1, DEPTH, &fault));
    int n = n_allocations;
    CHECK("and takes some memory", n >= 4);
    for (int i = 1; i <= n; i++) {
        n_allocations = 0;
        failing_allocation = i;
        bool is_refused = !json_check(text, sizeof text - 1, DEPTH, &fault);
        CHECK("without it, it is refused", is_refused);
        CHECK_TEXT("there is no memory to check it", fault.what);
    }
    failing_allocation = 0;
    CHECK("and is fine again", json_check(text, sizeof text - 1, DEPTH, &fault));
}

int main(void) {
    test_values();
    test_strings();
    test_numbers();
    test_the_largest_number();
    test_long_numbers();
    test_keys();
    test_many_keys();
    test_depth();
    test_faults();
    test_memory_shortage();
    return check_report();
}
