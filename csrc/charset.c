// SPDX-License-Identifier: MIT
//
// A list of known charsets in front of iconv. The list is there because labels come from strangers:
// iconv knows far more converters than the web uses, and loads code for each.

#include "charset.h"

#include "json.h"
#include "status.h"

#include <ctype.h>
#include <errno.h>
#include <iconv.h>
#include <stdbool.h>
#include <string.h>

// After the encoding standard: what is named ISO-8859-1 is Windows-1252 in truth.
static const struct charset {
    const char *label;
    const char *iconv_name;
} charsets[] = {
    {"utf-8", "UTF-8"},
    {"utf8", "UTF-8"},
    {"us-ascii", "CP1252"},
    {"ascii", "CP1252"},
    {"iso-8859-1", "CP1252"},
    {"latin1", "CP1252"},
    {"windows-1252", "CP1252"},
    {"cp1252", "CP1252"},
    {"utf-16", "UTF-16LE"},
    {"utf-16le", "UTF-16LE"},
    {"utf-16be", "UTF-16BE"},
    {"iso-8859-2", "ISO-8859-2"},
    {"iso-8859-3", "ISO-8859-3"},
    {"iso-8859-4", "ISO-8859-4"},
    {"iso-8859-5", "ISO-8859-5"},
    {"iso-8859-6", "ISO-8859-6"},
    {"iso-8859-7", "ISO-8859-7"},
    {"iso-8859-8", "ISO-8859-8"},
    {"iso-8859-9", "CP1254"},
    {"iso-8859-10", "ISO-8859-10"},
    {"iso-8859-13", "ISO-8859-13"},
    {"iso-8859-14", "ISO-8859-14"},
    {"iso-8859-15", "ISO-8859-15"},
    {"iso-8859-16", "ISO-8859-16"},
    {"windows-874", "CP874"},
    {"windows-1250", "CP1250"},
    {"windows-1251", "CP1251"},
    {"windows-1253", "CP1253"},
    {"windows-1254", "CP1254"},
    {"windows-1255", "CP1255"},
    {"windows-1256", "CP1256"},
    {"windows-1257", "CP1257"},
    {"windows-1258", "CP1258"},
    {"koi8-r", "KOI8-R"},
    {"koi8-u", "KOI8-U"},
    {"ibm866", "CP866"},
    {"macintosh", "MACINTOSH"},
    {"gbk", "GB18030"},
    {"gb2312", "GB18030"},
    {"gb18030", "GB18030"},
    {"big5", "BIG5-HKSCS"},
    {"euc-jp", "EUC-JP"},
    {"iso-2022-jp", "ISO-2022-JP"},
    {"shift_jis", "CP932"},
    {"shift-jis", "CP932"},
    {"euc-kr", "CP949"},
};

static const struct {
    const char *mark;
    size_t len;
    const char *label;
} marks[] = {
    {"\xef\xbb\xbf", 3, "utf-8"},
    {"\xff\xfe", 2, "utf-16le"},
    {"\xfe\xff", 2, "utf-16be"},
};

static const struct charset *find(const char *label) {
    for (size_t i = 0; i < sizeof charsets / sizeof *charsets; i++)
        if (strcmp(charsets[i].label, label) == 0)
            return &charsets[i];
    return NULL;
}

static void set_label(struct charset_guess *guess, const char *label) {
    size_t i = 0;
    for (; label[i] && i + 1 < sizeof guess->label; i++)
        guess->label[i] = (char)tolower((unsigned char)label[i]);
    guess->label[i] = '\0';
}

static bool find_mark(const char *bytes, size_t len, struct charset_guess *out_guess) {
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (len < marks[i].len || memcmp(bytes, marks[i].mark, marks[i].len) != 0)
            continue;
        set_label(out_guess, marks[i].label);
        out_guess->mark_len = marks[i].len;
        return true;
    }
    return false;
}

// Steps over what iconv stopped at. A unit of UTF-16 is two bytes, also a wrong one.
static void replace(const struct charset *charset, char **place, size_t *left,
                    struct buffer *text) {
    size_t unit = strncmp(charset->iconv_name, "UTF-16", 6) == 0 ? 2 : 1;
    size_t step = *left < unit ? *left : unit;
    buffer_add(text, "\xef\xbf\xbd", 3);
    *place += step;
    *left -= step;
}

static void convert(iconv_t converter, const struct charset *charset, const char *bytes, size_t len,
                    struct buffer *text) {
    char *place = (char *)bytes;  // iconv's type lacks a const, it does not write
    while (len > 0 && !text->is_broken) {
        char *end = buffer_reserve(text, len + 16);
        if (!end)
            break;
        size_t room = text->capacity - text->len;
        size_t code = iconv(converter, &place, &len, &end, &room);
        int error = errno;
        text->len = text->capacity - room;
        if (code == (size_t)-1 && error != E2BIG)
            replace(charset, &place, &len, text);
    }
}

// Some converters hold the last character back, waiting for an accent that may follow it.
static void flush(iconv_t converter, struct buffer *text) {
    char *end = buffer_reserve(text, 16);
    if (!end)
        return;
    size_t room = text->capacity - text->len;
    iconv(converter, NULL, NULL, &end, &room);
    text->len = text->capacity - room;
}

int charset_guess(const char *label, const char *bytes, size_t len,
                  struct charset_guess *out_guess) {
    memset(out_guess, 0, sizeof *out_guess);
    if (find_mark(bytes, len, out_guess))
        return STATUS_OK;
    if (!label)
        label = json_is_utf8(bytes, len) ? "utf-8" : "windows-1252";
    set_label(out_guess, label);
    return find(out_guess->label) ? STATUS_OK : STATUS_NOT_FOUND;
}

int charset_decode(const struct charset_guess *guess, const char *bytes, size_t len,
                   struct buffer *text) {
    const struct charset *charset = find(guess->label);
    if (!charset)
        return STATUS_NOT_FOUND;
    iconv_t converter = iconv_open("UTF-8", charset->iconv_name);
    if (converter == (iconv_t)-1)
        return errno == ENOMEM ? STATUS_NO_MEMORY : STATUS_NOT_FOUND;
    convert(converter, charset, bytes + guess->mark_len, len - guess->mark_len, text);
    flush(converter, text);
    iconv_close(converter);
    return text->is_broken ? STATUS_NO_MEMORY : STATUS_OK;
}
