// SPDX-License-Identifier: MIT
//
// JSON text in its one canonical form: no spaces, members sorted by the bytes of their keys at
// every depth, strings escaped as Go's encoding/json does by default, numbers as short as they can
// be read back. Also the rules of UTF-8 that the texts must obey. Knows no Lua and no targets.
//
// Nothing here can be refused. Memory shortage is remembered in the output's is_broken.

#ifndef BATCH_JSON_H
#define BATCH_JSON_H

#include "buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The integers that a double, and so every reader of JSON, tells apart.
#define JSON_MAX_INTEGER ((int64_t)1 << 53)

// A writer of objects. Needed for these alone: values and lists go straight to a buffer.
struct json {
    struct buffer *out;
    struct buffer members;  // of the objects that are open, innermost last
    struct buffer scratch;
};

// The buffer belongs to the caller and outlives the writer.
void json_init(struct json *json, struct buffer *out);
void json_fini(struct json *json);

// Opens an object; the mark goes to the json_end_object that closes it.
size_t json_begin_object(struct json *json);

// Names the member whose value is written next. The key's bytes are not copied: they stay where
// they are until the object ends. An object's keys are distinct. Members of a lower rank stand
// first; 0 where nothing but the key counts.
void json_key(struct json *json, int rank, const char *key, size_t len);

void json_end_object(struct json *json, size_t mark);

// A list is '[', a json_comma before each of its values, and ']'. Writes nothing before the first.
void json_comma(struct buffer *out);

// Text that json_is_utf8 accepts, in quotes and escaped.
void json_string(struct buffer *out, const char *bytes, size_t len);

// The same with nothing escaped but what has to be: shorter, and not canonical.
void json_text(struct buffer *out, const char *bytes, size_t len);

void json_integer(struct buffer *out, int64_t value);

// A finite number; an integral one has no fraction, and minus zero is 0.
void json_number(struct buffer *out, double value);

void json_bool(struct buffer *out, bool value);
void json_null(struct buffer *out);

// What is wrong with a text that should be JSON.
struct json_fault {
    size_t at;  // byte, from 0
    const char *what;
};

// Whether the text is one value of JSON by the letter of RFC 8259, in UTF-8, and means the same to
// every reader: no key twice in an object, no number beyond a double, no half of a surrogate pair,
// at most max_depth values inside of each other. Without memory for the keys it says so.
bool json_check(const char *text, size_t len, int max_depth, struct json_fault *out_fault);

// Whether all of it is UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF.
bool json_is_utf8(const char *bytes, size_t len);

// Appends the text with U+FFFD in place of each byte that is not UTF-8, at most limit bytes of it,
// cut between characters. Returns whether nothing was cut off.
bool json_clean_utf8(struct buffer *out, const char *bytes, size_t len, size_t limit);

#endif
