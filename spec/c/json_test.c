// SPDX-License-Identifier: MIT
//
// JSON's canonical text, and the rules of UTF-8.

#include "json.h"

#include "check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

// Reads what is in the buffer and empties it. The text lives until the next append.
static const char *take(struct buffer *out) {
    buffer_add_byte(out, '\0');
    out->len = 0;
    return out->bytes;
}

static void add_text(struct buffer *out, const char *text) {
    buffer_add(out, text, strlen(text));
}

static void test_strings(void) {
    static const struct {
        const char *expected;
        const char *text;
        size_t len;
    } strings[] = {
        {"\"\"", "", 0},
        {"\"https://example.com/\"", "https://example.com/", 20},
        {"\"a\\\"b\\\\c\"", "a\"b\\c", 5},
        {"\"\\u003ca\\u003e\\u0026\"", "<a>&", 4},
        {"\"\\b\\t\\n\\f\\r\"", "\b\t\n\f\r", 5},
        {"\"\\u0000\\u0001\\u000b\\u001f\"", "\0\1\v\x1F", 4},
        {"\"/\x7F'\"", "/\x7F'", 3},
        {"\"\\u2028x\\u2029\"", "\xE2\x80\xA8x\xE2\x80\xA9", 7},
        {"\"\xE2\x80\xA7\xE2\x82\xAC\"", "\xE2\x80\xA7\xE2\x82\xAC", 6},
        {"\"\xC3\xBC\xF0\x9F\x98\x80\"", "\xC3\xBC\xF0\x9F\x98\x80", 6},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        json_string(&out, strings[i].text, strings[i].len);
        CHECK_TEXT(strings[i].expected, take(&out));
    }
    buffer_fini(&out);
}

static void test_text(void) {
    static const struct {
        const char *expected;
        const char *text;
        size_t len;
    } texts[] = {
        {"\"\"", "", 0},
        {"\"<a href='/'>&\x7F\"", "<a href='/'>&\x7F", 14},
        {"\"\\b\\t\\n\\f\\r\\\"\\\\\"", "\b\t\n\f\r\"\\", 7},
        {"\"\\u0000\\u0001\\u000b\\u001f\"", "\0\1\v\x1F", 4},
        {"\"\xE2\x80\xA8\xE2\x80\xA9\xC3\xBC\"", "\xE2\x80\xA8\xE2\x80\xA9\xC3\xBC", 8},
        {"\"a long run of it\\nand one more\"", "a long run of it\nand one more", 29},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_text(&out, texts[i].text, texts[i].len);
        CHECK_TEXT(texts[i].expected, take(&out));
    }
    buffer_fini(&out);
}

static void test_integers(void) {
    struct buffer out;
    buffer_init(&out);
    json_integer(&out, 0);
    CHECK_TEXT("0", take(&out));
    json_integer(&out, -42);
    CHECK_TEXT("-42", take(&out));
    json_integer(&out, INT64_MAX);
    CHECK_TEXT("9223372036854775807", take(&out));
    json_integer(&out, INT64_MIN);
    CHECK_TEXT("-9223372036854775808", take(&out));
    buffer_fini(&out);
}

static void test_numbers(void) {
    static const struct {
        const char *expected;
        double value;
    } numbers[] = {
        {"0", 0.0},
        {"0", -0.0},
        {"3", 3.0},
        {"-9007199254740992", -0x1p53},
        {"0.1", 0.1},
        {"-1.5", -1.5},
        {"0.30000000000000004", 0.1 + 0.2},
        {"123456.789", 123456.789},
        {"0.000001", 1e-6},
        {"9.5e-7", 9.5e-7},
        {"1e-7", 1e-7},
        {"1.5e-10", 1.5e-10},
        {"100000000000000000000", 1e20},
        {"1e+21", 1e21},
        {"1.7976931348623157e+308", DBL_MAX},
        {"2.2250738585072014e-308", DBL_MIN},
        {"5e-324", 5e-324},
        // 2^-44: the nearest decimal of 16 digits is read as its neighbour, the next one is not.
        {"5.684341886080802e-14", 0x1p-44},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        json_number(&out, numbers[i].value);
        CHECK_TEXT(numbers[i].expected, take(&out));
    }
    buffer_fini(&out);
}

static void test_numbers_are_read_back(void) {
    struct buffer out;
    bool is_same = true;
    buffer_init(&out);
    for (int exponent = -1074; exponent < 1024; exponent++) {
        double power = ldexp(1, exponent);
        double values[] = {power, nextafter(power, 0), nextafter(power, INFINITY), power * 1.1};
        for (size_t i = 0; i < sizeof values / sizeof *values && isfinite(values[i]); i++) {
            json_number(&out, values[i]);
            is_same = is_same && strtod(take(&out), NULL) == values[i];
        }
    }
    CHECK("a number is read back as it was, at every power of two", is_same);
    buffer_fini(&out);
}

static void add_member(struct json *json, int rank, const char *key) {
    json_key(json, rank, key, strlen(key));
    json_null(json->out);
}

static void test_objects(void) {
    struct buffer out;
    struct json json;
    buffer_init(&out);
    json_init(&json, &out);
    json_end_object(&json, json_begin_object(&json));
    CHECK_TEXT("{}", take(&out));

    size_t mark = json_begin_object(&json);
    add_member(&json, 0, "b");
    add_member(&json, 0, "ab");
    add_member(&json, 0, "\xC3\xBC");
    add_member(&json, 0, "<");
    add_member(&json, 0, "a");
    add_member(&json, 0, "");
    json_end_object(&json, mark);
    CHECK_TEXT("{\"\":null,\"\\u003c\":null,\"a\":null,\"ab\":null,\"b\":null,\"\xC3\xBC\":null}",
               take(&out));

    mark = json_begin_object(&json);
    add_member(&json, 1, "a");
    add_member(&json, 0, "z");
    json_end_object(&json, mark);
    CHECK_TEXT("{\"z\":null,\"a\":null}", take(&out));
    json_fini(&json);
    buffer_fini(&out);
}

static void test_nesting(void) {
    struct buffer out;
    struct json json;
    buffer_init(&out);
    json_init(&json, &out);
    add_text(&out, "before ");
    size_t outer = json_begin_object(&json);
    json_key(&json, 0, "z", 1);
    size_t inner = json_begin_object(&json);
    add_member(&json, 0, "q");
    add_member(&json, 0, "p");
    json_end_object(&json, inner);
    json_key(&json, 0, "a", 1);
    add_text(&out, "[");
    json_comma(&out);
    json_bool(&out, true);
    json_comma(&out);
    json_bool(&out, false);
    add_text(&out, "]");
    json_end_object(&json, outer);
    CHECK_TEXT("before {\"a\":[true,false],\"z\":{\"p\":null,\"q\":null}}", take(&out));
    json_fini(&json);
    buffer_fini(&out);
}

static void test_memory_shortage(void) {
    struct buffer out;
    struct json json;
    buffer_init(&out);
    json_init(&json, &out);
    size_t mark = json_begin_object(&json);
    add_member(&json, 0, "b");
    buffer_reserve(&json.members, SIZE_MAX - 1);
    add_member(&json, 0, "a");
    json_end_object(&json, mark);
    CHECK("an object whose order is lost breaks the output", out.is_broken);
    json_string(&out, "x", 1);
    json_number(&out, 0.5);
    CHECK("a broken output stays broken", out.is_broken);
    json_fini(&json);
    buffer_fini(&out);
}

static void test_utf8(void) {
    static const char *const valid[] = {
        "",
        "plain text, more than eight bytes of it",
        "\xC2\x80\xDF\xBF",
        "\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF",
        "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF",
    };
    static const char *const invalid[] = {
        "\x80",
        "a\xBF",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC3",
        "\xC3(",
        "\xE0\x9F\xBF",
        "\xE2\x82",
        "\xE2\x82(",
        "\xED\xA0\x80",
        "\xED\xBF\xBF",
        "\xF0\x8F\xBF\xBF",
        "\xF0\x9F\x98",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xFF",
        "12345678\xFE",
        "1234567\xC3\xBC\xC3",
    };
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
        CHECK(valid[i], json_is_utf8(valid[i], strlen(valid[i])));
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        CHECK(invalid[i], !json_is_utf8(invalid[i], strlen(invalid[i])));
    CHECK("NUL is a character", json_is_utf8("a\0b", 3));
}

static void test_clean(void) {
    struct buffer out;
    buffer_init(&out);
    CHECK("clean text is whole", json_clean_utf8(&out, "a\xC3\xBC", 3, 100));
    CHECK_TEXT("a\xC3\xBC", take(&out));
    json_clean_utf8(&out, "\xFF\xE2\x82x\xED\xA0\x80", 7, 100);
    CHECK_TEXT("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDx\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD",
               take(&out));
    CHECK("text as long as the limit is whole", json_clean_utf8(&out, "abc", 3, 3));
    CHECK_TEXT("abc", take(&out));
    CHECK("longer text is not", !json_clean_utf8(&out, "a\xC3\xBC", 3, 2));
    CHECK_TEXT("a", take(&out));
    json_clean_utf8(&out, "ab\xFFz", 4, 4);
    CHECK_TEXT("ab", take(&out));
    buffer_fini(&out);
}

int main(void) {
    test_strings();
    test_text();
    test_integers();
    test_numbers();
    test_numbers_are_read_back();
    test_objects();
    test_nesting();
    test_memory_shortage();
    test_utf8();
    test_clean();
    return check_report();
}
