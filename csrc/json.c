// SPDX-License-Identifier: MIT
//
// The writer renders members where they come and remembers where each lies; an object that turns
// out to be in disorder is put in order when it ends. Objects of one member, and lucky ones, cost
// nothing. Numbers go by snprintf and strtod, digits only, so that no locale's point gets in.

#include "json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH_BYTE UINT64_C(0x0101010101010101)

enum { MAX_DIGITS = 17 };  // enough for every double to be read back

struct member {
    const char *key;
    size_t key_len;
    int rank;
    size_t at;  // of its key's quote in the output
    size_t len;
};

// 0.d1 d2 d3 … times ten to the power of point.
struct decimal {
    char digits[32];
    int n_digits;
    int point;
};

static const char replacement[] = "\xEF\xBF\xBD";

// What a byte of a string needs: 0 nothing, 'u' a \u00XX, 'E' a look at the two bytes after it,
// anything else a backslash and that letter.
static const char escapes[256] = {
    'u',         'u',           'u',         'u',         'u',         'u',          'u', 'u',
    'b',         't',           'n',         'u',         'f',         'r',          'u', 'u',
    'u',         'u',           'u',         'u',         'u',         'u',          'u', 'u',
    'u',         'u',           'u',         'u',         'u',         'u',          'u', 'u',
    ['"'] = '"', ['\\'] = '\\', ['<'] = 'u', ['>'] = 'u', ['&'] = 'u', [0xE2] = 'E',
};

// A byte in the middle of things, which nearly always has room.
static inline void add_byte(struct buffer *out, char byte) {
    if (out->len < out->capacity)
        out->bytes[out->len++] = byte;
    else
        buffer_add_byte(out, byte);
}

static bool is_tail(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

// The length of the character that begins here, 0 when none does.
static size_t character_len(const unsigned char *at, size_t left) {
    unsigned char first = at[0];
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || left < 2 || !is_tail(at[1]))
        return 0;
    if (first < 0xE0)
        return 2;
    if (left < 3 || !is_tail(at[2]))
        return 0;
    if (first < 0xF0) {
        bool is_overlong = first == 0xE0 && at[1] < 0xA0;
        bool is_surrogate = first == 0xED && at[1] >= 0xA0;
        return is_overlong || is_surrogate ? 0 : 3;
    }
    bool is_overlong = first == 0xF0 && at[1] < 0x90;
    bool is_beyond = first > 0xF4 || (first == 0xF4 && at[1] >= 0x90);
    return left < 4 || !is_tail(at[3]) || is_overlong || is_beyond ? 0 : 4;
}

// How many of the bytes, counted in eights, are ASCII from here on.
static size_t ascii_run(const char *bytes, size_t len) {
    size_t run = 0;
    for (uint64_t word; len - run >= sizeof word; run += sizeof word) {
        memcpy(&word, bytes + run, sizeof word);
        if (word & 0x8080808080808080u)
            break;
    }
    return run;
}

static bool is_line_separator(const unsigned char *at, size_t left) {
    return left >= 3 && at[1] == 0x80 && (at[2] == 0xA8 || at[2] == 0xA9);
}

// Writes the escape of the character that begins here and returns the character's length.
static size_t add_escape(struct buffer *out, const unsigned char *at, size_t left) {
    char escape = escapes[*at];
    char text[8] = {'\\', escape};
    if (escape == 'E') {
        if (!is_line_separator(at, left)) {
            add_byte(out, (char)*at);
            return 1;
        }
        buffer_add(out, at[2] == 0xA8 ? "\\u2028" : "\\u2029", 6);
        return 3;
    }
    if (escape == 'u')
        snprintf(text, sizeof text, "\\u%04x", *at);
    buffer_add(out, text, escape == 'u' ? 6 : 2);
    return 1;
}

// How many bytes from here on need no escape.
static size_t plain_run(const char *bytes, size_t len) {
    size_t run = 0;
    while (run < len && !escapes[(unsigned char)bytes[run]])
        run++;
    return run;
}

// Adds text that begins with a character to escape, if it is not empty.
static void add_escaped(struct buffer *out, const char *bytes, size_t len) {
    for (size_t i = 0; i < len;) {
        i += add_escape(out, (const unsigned char *)bytes + i, len - i);
        size_t run = plain_run(bytes + i, len - i);
        buffer_add(out, bytes + i, run);
        i += run;
    }
}

static int compare_members(const void *left, const void *right) {
    const struct member *a = left;
    const struct member *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    int order = memcmp(a->key, b->key, a->key_len < b->key_len ? a->key_len : b->key_len);
    return order ? order : (a->key_len > b->key_len) - (a->key_len < b->key_len);
}

// Fills in the lengths and tells whether the members came in order.
static bool measure_members(struct member *members, size_t count, size_t end) {
    bool is_sorted = true;
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count;
        members[i].len = (is_last ? end : members[i + 1].at - 1) - members[i].at;
        is_sorted = is_sorted && (is_last || compare_members(&members[i], &members[i + 1]) < 0);
    }
    return is_sorted;
}

static void sort_members(struct json *json, struct member *members, size_t count) {
    struct buffer *out = json->out;
    size_t start = members[0].at;
    qsort(members, count, sizeof *members, compare_members);
    json->scratch.len = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            add_byte(&json->scratch, ',');
        buffer_add(&json->scratch, out->bytes + members[i].at, members[i].len);
    }
    out->is_broken = json->scratch.is_broken;
    if (!out->is_broken)
        memcpy(out->bytes + start, json->scratch.bytes, json->scratch.len);
}

static void read_digits(struct decimal *decimal, const char *text) {
    decimal->n_digits = 0;
    for (; *text != 'e'; text++)
        if (*text >= '0' && *text <= '9')
            decimal->digits[decimal->n_digits++] = *text;
    decimal->point = (int)strtol(text + 1, NULL, 10) + 1;
}

static double decimal_value(const struct decimal *decimal) {
    char text[48];
    snprintf(text, sizeof text, "%.*se%d", decimal->n_digits, decimal->digits,
             decimal->point - decimal->n_digits);
    return strtod(text, NULL);
}

// The next decimal of as many digits.
static void decimal_bump(struct decimal *decimal) {
    int i = decimal->n_digits - 1;
    while (i >= 0 && decimal->digits[i] == '9')
        decimal->digits[i--] = '0';
    if (i >= 0) {
        decimal->digits[i]++;
    } else {
        decimal->digits[0] = '1';
        decimal->point++;
    }
}

// Whether so many digits can be read back as the value; decimal holds them then.
static bool fits_digits(struct decimal *decimal, double value, int n_digits) {
    char text[48];
    snprintf(text, sizeof text, "%.*e", n_digits - 1, value);
    read_digits(decimal, text);
    if (decimal_value(decimal) == value)
        return true;
    // Below a power of two the doubles lie twice as close as above it: there the nearest decimal
    // may miss while the one above it hits.
    decimal_bump(decimal);
    return decimal_value(decimal) == value;
}

static void shortest_decimal(struct decimal *decimal, double value) {
    // Every decimal of up to DBL_DIG digits survives the way through a normal double, so that the
    // shorter ones show as zeros at the end. Subnormal numbers hold fewer.
    int n_digits = value < DBL_MIN ? 1 : DBL_DIG;
    while (n_digits < MAX_DIGITS && !fits_digits(decimal, value, n_digits))
        n_digits++;
    if (n_digits == MAX_DIGITS)
        fits_digits(decimal, value, MAX_DIGITS);
    while (decimal->n_digits > 1 && decimal->digits[decimal->n_digits - 1] == '0')
        decimal->n_digits--;
}

static void add_zeros(struct buffer *out, int count) {
    for (int i = 0; i < count; i++)
        add_byte(out, '0');
}

static void add_plain(struct buffer *out, const struct decimal *decimal) {
    int n_whole = decimal->point < decimal->n_digits ? decimal->point : decimal->n_digits;
    if (n_whole > 0)
        buffer_add(out, decimal->digits, (size_t)n_whole);
    else
        add_byte(out, '0');
    add_zeros(out, decimal->point - decimal->n_digits);
    if (decimal->point >= decimal->n_digits)
        return;
    add_byte(out, '.');
    add_zeros(out, -decimal->point);
    if (n_whole < 0)
        n_whole = 0;
    buffer_add(out, decimal->digits + n_whole, (size_t)(decimal->n_digits - n_whole));
}

static void add_exponent(struct buffer *out, const struct decimal *decimal) {
    char exponent[16];
    int len = snprintf(exponent, sizeof exponent, "e%+d", decimal->point - 1);
    add_byte(out, decimal->digits[0]);
    if (decimal->n_digits > 1) {
        add_byte(out, '.');
        buffer_add(out, decimal->digits + 1, (size_t)decimal->n_digits - 1);
    }
    buffer_add(out, exponent, (size_t)len);
}

void json_init(struct json *json, struct buffer *out) {
    json->out = out;
    buffer_init(&json->members);
    buffer_init(&json->scratch);
}

void json_fini(struct json *json) {
    buffer_fini(&json->members);
    buffer_fini(&json->scratch);
}

size_t json_begin_object(struct json *json) {
    add_byte(json->out, '{');
    return json->members.len;
}

void json_key(struct json *json, int rank, const char *key, size_t len) {
    json_comma(json->out);
    struct member member = {.key = key, .key_len = len, .rank = rank, .at = json->out->len};
    buffer_add(&json->members, &member, sizeof member);
    json_string(json->out, key, len);
    add_byte(json->out, ':');
}

void json_end_object(struct json *json, size_t mark) {
    struct buffer *out = json->out;
    if (json->members.is_broken)
        out->is_broken = true;
    if (out->is_broken)
        return;
    size_t count = (json->members.len - mark) / sizeof(struct member);
    if (count > 1) {
        struct member *members = (struct member *)(void *)(json->members.bytes + mark);
        if (!measure_members(members, count, out->len))
            sort_members(json, members, count);
    }
    json->members.len = mark;
    add_byte(out, '}');
}

void json_comma(struct buffer *out) {
    char last = out->len ? out->bytes[out->len - 1] : '[';
    if (last != '[' && last != '{')
        add_byte(out, ',');
}

void json_string(struct buffer *out, const char *bytes, size_t len) {
    bytes = len ? bytes : "";  // no bytes may lie nowhere
    size_t run = plain_run(bytes, len);
    char *place = buffer_reserve(out, run + 2);
    if (!place)
        return;
    place[0] = '"';
    memcpy(place + 1, bytes, run);
    out->len += run + 1;
    add_escaped(out, bytes + run, len - run);
    add_byte(out, '"');
}

// What a byte needs where only the letter of RFC 8259 counts.
static const char needed_escapes[256] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b',         't',           'n', 'u',
    'f', 'r', 'u', 'u', 'u', 'u', 'u', 'u', 'u',         'u',           'u', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', ['"'] = '"', ['\\'] = '\\',
};

// A word has a bit set if one of its bytes is zero, or is below n.
static uint64_t with_zero(uint64_t word) {
    return (word - EACH_BYTE) & ~word & EACH_BYTE * 0x80;
}

static uint64_t with_below(uint64_t word, unsigned char n) {
    return (word - EACH_BYTE * n) & ~word & EACH_BYTE * 0x80;
}

// How many of the bytes, counted in eights, need no such escape from here on.
static size_t literal_run(const char *bytes, size_t len) {
    size_t run = 0;
    for (uint64_t word; len - run >= sizeof word; run += sizeof word) {
        memcpy(&word, bytes + run, sizeof word);
        if (with_below(word, ' ') | with_zero(word ^ EACH_BYTE * '"') |
            with_zero(word ^ EACH_BYTE * '\\'))
            break;
    }
    return run;
}

void json_text(struct buffer *out, const char *bytes, size_t len) {
    add_byte(out, '"');
    for (size_t i = 0; i < len;) {
        size_t run = literal_run(bytes + i, len - i);
        while (i + run < len && !needed_escapes[(unsigned char)bytes[i + run]])
            run++;
        buffer_add(out, bytes + i, run);
        i += run;
        if (i < len)
            i += add_escape(out, (const unsigned char *)bytes + i, len - i);
    }
    add_byte(out, '"');
}

void json_integer(struct buffer *out, int64_t value) {
    char text[24];
    char *end = text + sizeof text;
    char *place = end;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--place = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        *--place = '-';
    buffer_add(out, place, (size_t)(end - place));
}

void json_number(struct buffer *out, double value) {
    double size = fabs(value);
    if (size <= (double)JSON_MAX_INTEGER && value == (double)(int64_t)value) {
        json_integer(out, (int64_t)value);
        return;
    }
    if (value < 0)
        add_byte(out, '-');
    struct decimal decimal;
    shortest_decimal(&decimal, size);
    if (size < 1e-6 || size >= 1e21)
        add_exponent(out, &decimal);
    else
        add_plain(out, &decimal);
}

void json_bool(struct buffer *out, bool value) {
    buffer_add(out, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct buffer *out) {
    buffer_add(out, "null", 4);
}

bool json_is_utf8(const char *bytes, size_t len) {
    const unsigned char *text = (const unsigned char *)bytes;
    for (size_t i = ascii_run(bytes, len); i < len;) {
        size_t step = text[i] < 0x80 ? 1 : character_len(text + i, len - i);
        if (!step)
            return false;
        i += step;
    }
    return true;
}

bool json_clean_utf8(struct buffer *out, const char *bytes, size_t len, size_t limit) {
    size_t n_written = 0;
    for (size_t i = 0; i < len;) {
        size_t step = character_len((const unsigned char *)bytes + i, len - i);
        size_t n_bytes = step ? step : sizeof replacement - 1;
        if (n_bytes > limit - n_written)
            return false;
        buffer_add(out, step ? bytes + i : replacement, n_bytes);
        n_written += n_bytes;
        i += step ? step : 1;
    }
    return true;
}
