// SPDX-License-Identifier: MIT
//
// The reader's side of JSON: a walk through a text that builds nothing and remembers nothing but
// the keys of the objects that are open. Whoever reads the values may use a lenient parser after
// it.

#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_EXPONENT = 400,  // beyond it, nothing but zeros is a double
    MAX_DIGITS = 309,    // of the least integer that is beyond a double
    FEW_KEYS = 8,        // are compared each with each
};

// A key of an open object: unescaped, in names.
struct key {
    size_t at;
    size_t len;
};

struct check {
    const char *text;
    size_t len;
    size_t at;
    int max_depth;
    const char *what;     // is wrong; NULL: nothing yet
    struct buffer names;  // of the objects that are open, innermost last
    struct buffer keys;   // struct key
};

static bool check_value(struct check *check, int depth);

static bool refuse(struct check *check, const char *what) {
    check->what = what;
    return false;
}

static bool refuse_at(struct check *check, size_t at, const char *what) {
    check->at = at;
    return refuse(check, what);
}

static int peek(const struct check *check) {
    return check->at < check->len ? (unsigned char)check->text[check->at] : -1;
}

static bool accept(struct check *check, char byte) {
    if (peek(check) != (unsigned char)byte)
        return false;
    check->at++;
    return true;
}

static void skip_space(struct check *check) {
    int byte = peek(check);
    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
        check->at++;
        byte = peek(check);
    }
}

static bool is_digit(int byte) {
    return byte >= '0' && byte <= '9';
}

// --- strings ---

static int hex_value(int byte) {
    if (is_digit(byte))
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

// The four digits behind a \u, or -1.
static int read_unit(struct check *check) {
    int unit = 0;
    for (int i = 0; i < 4; i++) {
        int value = hex_value(peek(check));
        if (value < 0)
            return -1;
        unit = unit * 16 + value;
        check->at++;
    }
    return unit;
}

static void add_character(struct buffer *out, uint32_t point) {
    unsigned char bytes[4];
    size_t len = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (size_t i = len; i-- > 1; point >>= 6)
        bytes[i] = (unsigned char)(0x80 | (point & 0x3F));
    bytes[0] = (unsigned char)(marks[len] | point);
    buffer_add(out, bytes, len);
}

static bool check_unicode(struct check *check, struct buffer *out) {
    size_t start = check->at - 2;
    int unit = read_unit(check);
    if (unit < 0)
        return refuse(check, "four hexadecimal digits must follow \\u");
    uint32_t point = (uint32_t)unit;
    if (unit >= 0xD800 && unit < 0xE000) {
        bool has_second = unit < 0xDC00 && accept(check, '\\') && accept(check, 'u');
        int second = has_second ? read_unit(check) : -1;
        if (second < 0xDC00 || second > 0xDFFF)
            return refuse_at(check, start, "half of a surrogate pair is no character");
        point = 0x10000 + ((point - 0xD800) << 10) + ((uint32_t)second - 0xDC00);
    }
    if (out)
        add_character(out, point);
    return true;
}

static bool check_escape(struct check *check, struct buffer *out) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    int letter = peek(check);
    const char *place = letter > 0 ? strchr(letters, letter) : NULL;
    if (letter < 0)
        return refuse(check, "the text ends inside of a string");
    check->at++;
    if (letter == 'u')
        return check_unicode(check, out);
    if (!place)
        return refuse_at(check, check->at - 2, "no such escape");
    if (out)
        buffer_add_byte(out, meanings[place - letters]);
    return true;
}

// Behind the opening quote. out: gets what it means; may be NULL.
static bool check_string(struct check *check, struct buffer *out) {
    for (;;) {
        size_t start = check->at;
        int byte = peek(check);
        while (byte >= ' ' && byte != '"' && byte != '\\') {
            check->at++;
            byte = peek(check);
        }
        if (out)
            buffer_add(out, check->text + start, check->at - start);
        if (byte < 0)
            return refuse(check, "the text ends inside of a string");
        if (byte < ' ')
            return refuse(check, "a control character must be escaped");
        check->at++;
        if (byte == '"')
            return true;
        if (!check_escape(check, out))
            return false;
    }
}

// --- numbers ---

static size_t skip_digits(struct check *check) {
    size_t start = check->at;
    while (is_digit(peek(check)))
        check->at++;
    return check->at - start;
}

// Whether the digits, with a point or without, times ten to the power of exponent are beyond a
// double. power becomes that of the first digit which is not 0. Only what lies near the limit is
// converted, without the point, for which locales have their own idea. Digits behind as many as the
// limit has do not matter.
static bool is_too_large(const char *digits, size_t len, long exponent) {
    char text[MAX_DIGITS + 16];
    size_t n_kept = 0;
    long power = exponent - 1;
    bool has_point = false;
    for (size_t i = 0; i < len; i++) {
        if (digits[i] == '.') {
            has_point = true;
            continue;
        }
        bool is_leading = n_kept == 0 && digits[i] == '0';
        if (!is_leading && n_kept < MAX_DIGITS)
            text[n_kept++] = digits[i];
        power += !has_point && !is_leading;
        power -= has_point && is_leading;
    }
    if (n_kept == 0 || power < 300)
        return false;
    if (power > MAX_EXPONENT)
        return true;
    snprintf(text + n_kept, sizeof text - n_kept, "e%ld", power + 1 - (long)n_kept);
    return isinf(strtod(text, NULL));
}

static long read_exponent(const char *digits, size_t len) {
    long exponent = 0;
    for (size_t i = 0; i < len; i++)
        if (exponent < 100000000)
            exponent = exponent * 10 + (digits[i] - '0');
    return exponent;
}

static bool check_number(struct check *check) {
    size_t number = check->at;
    accept(check, '-');
    size_t start = check->at;
    bool has_zero = peek(check) == '0';
    size_t n_whole = skip_digits(check);
    if (n_whole == 0)
        return refuse_at(check, number, "no value begins like that");
    if (has_zero && n_whole > 1)
        return refuse_at(check, number, "a number must not begin with a zero");
    if (accept(check, '.') && skip_digits(check) == 0)
        return refuse(check, "a digit must follow the point");
    size_t end = check->at;
    long exponent = 0;
    if (accept(check, 'e') || accept(check, 'E')) {
        bool is_negative = peek(check) == '-';
        if (!accept(check, '-'))
            accept(check, '+');
        size_t at = check->at, n_digits = skip_digits(check);
        if (n_digits == 0)
            return refuse(check, "a digit must follow the exponent's sign");
        exponent = read_exponent(check->text + at, n_digits);
        exponent = is_negative ? -exponent : exponent;
    }
    if (is_too_large(check->text + start, end - start, exponent))
        return refuse_at(check, number, "the number is too large");
    return true;
}

// --- lists and objects ---

static bool check_word(struct check *check, const char *word) {
    size_t len = strlen(word);
    if (check->len - check->at < len || memcmp(check->text + check->at, word, len) != 0)
        return refuse(check, "no value begins like that");
    check->at += len;
    return true;
}

static bool check_list(struct check *check, int depth) {
    skip_space(check);
    if (accept(check, ']'))
        return true;
    for (;;) {
        if (!check_value(check, depth + 1))
            return false;
        skip_space(check);
        if (accept(check, ']'))
            return true;
        if (!accept(check, ','))
            return refuse(check, "a comma or ] must follow a list's value");
    }
}

// What the comparison needs; qsort has no context.
struct span {
    const char *start;
    size_t len;
};

static int compare_spans(const void *left, const void *right) {
    const struct span *a = left, *b = right;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return a->len ? memcmp(a->start, b->start, a->len) : 0;  // of empty ones there may be no bytes
}

static bool has_twin(struct span *spans, size_t count) {
    if (count > FEW_KEYS) {
        qsort(spans, count, sizeof *spans, compare_spans);
        for (size_t i = 1; i < count; i++)
            if (compare_spans(&spans[i - 1], &spans[i]) == 0)
                return true;
        return false;
    }
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (compare_spans(&spans[i], &spans[j]) == 0)
                return true;
    return false;
}

// Whether the keys behind mark are all different; drops them.
static bool end_keys(struct check *check, size_t mark) {
    if (check->names.is_broken || check->keys.is_broken)
        return refuse(check, "there is no memory to check it");
    size_t count = (check->keys.len - mark) / sizeof(struct key);
    if (count == 0)
        return true;
    const struct key *keys = (const struct key *)(void *)(check->keys.bytes + mark);
    const char *names = check->names.bytes ? check->names.bytes : "";  // all may be empty
    struct span few[FEW_KEYS], *spans = few;
    if (count > FEW_KEYS && !(spans = malloc(count * sizeof *spans)))
        return refuse(check, "there is no memory to check it");
    for (size_t i = 0; i < count; i++)
        spans[i] = (struct span){names + keys[i].at, keys[i].len};
    check->names.len = keys[0].at;
    bool is_refused = has_twin(spans, count);
    if (spans != few)
        free(spans);
    check->keys.len = mark;
    return is_refused ? refuse(check, "an object must not have a key twice") : true;
}

static bool check_member(struct check *check, int depth) {
    skip_space(check);
    struct key key = {.at = check->names.len};
    if (!accept(check, '"'))
        return refuse(check, "an object's key must be a string");
    if (!check_string(check, &check->names))
        return false;
    key.len = check->names.len - key.at;
    buffer_add(&check->keys, &key, sizeof key);
    skip_space(check);
    if (!accept(check, ':'))
        return refuse(check, "a colon must follow a key");
    return check_value(check, depth + 1);
}

static bool check_object(struct check *check, int depth) {
    size_t mark = check->keys.len;
    skip_space(check);
    if (accept(check, '}'))
        return true;
    for (;;) {
        if (!check_member(check, depth))
            return false;
        skip_space(check);
        if (accept(check, '}'))
            return end_keys(check, mark);
        if (!accept(check, ','))
            return refuse(check, "a comma or } must follow a member");
    }
}

static bool check_value(struct check *check, int depth) {
    skip_space(check);
    if (depth > check->max_depth)
        return refuse(check, "too many values inside of each other");
    switch (peek(check)) {
    case -1:
        return refuse(check, "the text ends where a value must be");
    case '{':
        check->at++;
        return check_object(check, depth);
    case '[':
        check->at++;
        return check_list(check, depth);
    case '"':
        check->at++;
        return check_string(check, NULL);
    case 't':
        return check_word(check, "true");
    case 'f':
        return check_word(check, "false");
    case 'n':
        return check_word(check, "null");
    default:
        return check_number(check);
    }
}

bool json_check(const char *text, size_t len, int max_depth, struct json_fault *out_fault) {
    struct check check = {.text = text, .len = len, .max_depth = max_depth};
    buffer_init(&check.names);
    buffer_init(&check.keys);
    bool is_fine = json_is_utf8(text, len) || refuse(&check, "the text must be UTF-8");
    is_fine = is_fine && check_value(&check, 1);
    if (is_fine) {
        skip_space(&check);
        is_fine = check.at == len || refuse(&check, "nothing may follow the value");
    }
    buffer_fini(&check.names);
    buffer_fini(&check.keys);
    *out_fault = (struct json_fault){check.at, check.what};
    return is_fine;
}
