// SPDX-License-Identifier: MIT
//
// Text in any charset: what comes out is UTF-8, and UTF-8 itself comes out as it went in. The input
// is a label, a line feed, and the text.

#include "charset.h"
#include "host/fuzz.h"
#include "json.h"
#include "status.h"

#include <string.h>

void fuzz_one(const char *bytes, size_t len) {
    char label[64] = "";
    const char *line_end = len ? memchr(bytes, '\n', len) : NULL;
    size_t label_len = line_end ? (size_t)(line_end - bytes) : 0;
    if (label_len >= sizeof label)
        label_len = sizeof label - 1;
    memcpy(label, bytes, label_len);
    const char *text = line_end ? line_end + 1 : bytes;
    len -= (size_t)(text - bytes);

    struct charset_guess guess;
    struct buffer decoded;
    int status = charset_guess(label_len ? label : NULL, text, len, &guess);
    FUZZ_CHECK("a charset is known or not",
               status == STATUS_OK || (status == STATUS_NOT_FOUND && label_len));
    FUZZ_CHECK("a label has an end", memchr(guess.label, '\0', sizeof guess.label));
    if (status)
        return;
    FUZZ_CHECK("a mark lies in the text", guess.mark_len <= len);
    buffer_init(&decoded);
    status = charset_decode(&guess, text, len, &decoded);
    FUZZ_CHECK("what was guessed can be decoded", status == STATUS_OK);
    FUZZ_CHECK("what was decoded is UTF-8", json_is_utf8(decoded.bytes, decoded.len));
    if (strcmp(guess.label, "utf-8") == 0 && json_is_utf8(text, len)) {
        text += guess.mark_len;
        len -= guess.mark_len;
        FUZZ_CHECK("UTF-8 stays as it is",
                   decoded.len == len && (!len || memcmp(decoded.bytes, text, len) == 0));
    }
    buffer_fini(&decoded);
}
