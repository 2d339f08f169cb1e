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
#include <stdint.h>
#include <string.h>

// The labels of the encoding standard, with the converters of iconv that come nearest to what
// browsers do: what is named ISO-8859-1 is Windows-1252 in truth. Left out are the labels that
// browsers replace by nothing, and x-user-defined.
static const struct charset {
    const char *iconv_name;
    const char *labels;
} charsets[] = {
    {"UTF-8", "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8"},
    {"CP1252", "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 "
               "iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii "
               "windows-1252 x-cp1252"},
    {"UTF-16LE", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le"},
    {"UTF-16BE", "unicodefffe utf-16be"},
    {"ISO-8859-2", "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 "
                   "iso_8859-2:1987 l2 latin2"},
    {"ISO-8859-3", "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 "
                   "iso_8859-3:1988 l3 latin3"},
    {"ISO-8859-4", "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 "
                   "iso_8859-4:1988 l4 latin4"},
    {"ISO-8859-5", "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 "
                   "iso_8859-5 iso_8859-5:1988"},
    {"ISO-8859-6", "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 "
                   "iso-8859-6 iso-8859-6-e iso-8859-6-i iso-ir-127 iso8859-6 iso88596 "
                   "iso_8859-6 iso_8859-6:1987"},
    {"ISO-8859-7", "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 "
                   "iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek"},
    {"ISO-8859-8", "csiso88598e csiso88598i csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e "
                   "iso-8859-8-i iso-ir-138 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 "
                   "logical visual"},
    {"ISO-8859-10", "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6"},
    {"ISO-8859-13", "iso-8859-13 iso8859-13 iso885913"},
    {"ISO-8859-14", "iso-8859-14 iso8859-14 iso885914"},
    {"ISO-8859-15", "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9"},
    {"ISO-8859-16", "iso-8859-16"},
    {"CP866", "866 cp866 csibm866 ibm866"},
    {"CP874", "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874"},
    {"CP1250", "cp1250 windows-1250 x-cp1250"},
    {"CP1251", "cp1251 windows-1251 x-cp1251"},
    {"CP1253", "cp1253 windows-1253 x-cp1253"},
    {"CP1254", "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 "
               "iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254"},
    {"CP1255", "cp1255 windows-1255 x-cp1255"},
    {"CP1256", "cp1256 windows-1256 x-cp1256"},
    {"CP1257", "cp1257 windows-1257 x-cp1257"},
    {"CP1258", "cp1258 windows-1258 x-cp1258"},
    {"KOI8-R", "cskoi8r koi koi8 koi8-r koi8_r"},
    {"KOI8-U", "koi8-ru koi8-u"},
    {"MACINTOSH", "csmacintosh mac macintosh x-mac-roman"},
    {"MAC-UK", "x-mac-cyrillic x-mac-ukrainian"},
    {"GB18030", "chinese csgb2312 csiso58gb231280 gb18030 gb2312 gb_2312 gb_2312-80 gbk "
                "iso-ir-58 x-gbk"},
    {"BIG5-HKSCS", "big5 big5-hkscs cn-big5 csbig5 x-x-big5"},
    {"EUC-JP-MS", "cseucpkdfmtjapanese euc-jp x-euc-jp"},
    {"ISO-2022-JP", "csiso2022jp iso-2022-jp"},
    {"CP932", "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis"},
    {"CP949", "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 "
              "ks_c_5601-1989 ksc5601 ksc_5601 windows-949"},
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

static bool has_label(const struct charset *charset, const char *label) {
    size_t len = strlen(label);
    const char *word = charset->labels;
    while (word) {
        if (strncmp(word, label, len) == 0 && (word[len] == ' ' || word[len] == '\0'))
            return len > 0;
        const char *space = strchr(word, ' ');
        word = space ? space + 1 : NULL;
    }
    return false;
}

static const struct charset *find(const char *label) {
    bool is_one_word = !strchr(label, ' ');
    for (size_t i = 0; is_one_word && i < sizeof charsets / sizeof *charsets; i++)
        if (has_label(&charsets[i], label))
            return &charsets[i];
    return NULL;
}

static void set_label(struct charset_guess *guess, const char *label) {
    static const char spaces[] = " \t\n\f\r";
    size_t i = 0;
    label += strspn(label, spaces);
    for (; label[i] && i + 1 < sizeof guess->label; i++)
        guess->label[i] = (char)tolower((unsigned char)label[i]);
    while (i > 0 && strchr(spaces, guess->label[i - 1]))
        i--;
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
    bytes += guess->mark_len;
    len -= guess->mark_len;
    // Not iconv's, which lets through what lies beyond U+10FFFF, and takes many times as long.
    if (charset == charsets) {
        json_clean_utf8(text, bytes, len, SIZE_MAX);
        return text->is_broken ? STATUS_NO_MEMORY : STATUS_OK;
    }
    iconv_t converter = iconv_open("UTF-8", charset->iconv_name);
    if (converter == (iconv_t)-1)
        return errno == ENOMEM ? STATUS_NO_MEMORY : STATUS_NOT_FOUND;
    convert(converter, charset, bytes, len, text);
    flush(converter, text);
    iconv_close(converter);
    return text->is_broken ? STATUS_NO_MEMORY : STATUS_OK;
}
