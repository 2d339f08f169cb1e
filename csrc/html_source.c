// SPDX-License-Identifier: MIT
//
// Reads from one "<" to the next. Copies begin with the first cut: many pages have none.

#include "html_source.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_ATTRIBUTES = 512 };  // of one tag

struct cutter {
    const char *text;
    const char *stop;
    const char *copied_to;  // in the text
    char *copy;             // NULL: nothing was cut
    char *end;
    bool is_broken;  // memory ran out
};

static void take_over(struct cutter *cutter, const char *to) {
    size_t len = (size_t)(to - cutter->copied_to);
    memcpy(cutter->end, cutter->copied_to, len);
    cutter->end += len;
    cutter->copied_to = to;
}

static void cut(struct cutter *cutter, const char *from, const char *to) {
    if (from >= to || cutter->is_broken)
        return;
    if (!cutter->copy)
        cutter->copy = cutter->end = malloc((size_t)(cutter->stop - cutter->text));
    if (!cutter->copy) {
        cutter->is_broken = true;
        return;
    }
    take_over(cutter, from);
    cutter->copied_to = to;
}

// Returns the place of the tag's end, and where its attributes become too many, or NULL. An
// attribute is what follows white space outside of quotes.
static const char *skip_tag(const char *at, const char *stop, const char **out_excess) {
    unsigned n_attributes = 0;
    char quote = 0;
    *out_excess = NULL;
    for (; at < stop; at++) {
        if (quote)
            quote = *at == quote ? 0 : quote;
        else if (*at == '>')
            return at;
        else if ((*at == '"' || *at == '\'') && at[-1] == '=')
            quote = *at;
        else if ((*at == ' ' || *at == '\n' || *at == '\t' || *at == '/') &&
                 ++n_attributes == MAX_ATTRIBUTES)
            *out_excess = at;
    }
    return at;
}

static bool begins_with(const char *at, const char *stop, const char *word) {
    size_t len = strlen(word);
    return (size_t)(stop - at) >= len && strncasecmp(at, word, len) == 0;
}

static bool is_tag(const char *at, const char *stop, const char *word) {
    const char *end = at + strlen(word);
    return begins_with(at, stop, word) && end < stop && strchr("> \t\n\f\r/", *end) && *end;
}

// Whether the text would end a comment that it is in.
static bool ends_comment(const char *text, size_t len) {
    return memmem(text, len, "-->", 3) || memmem(text, len, "--!>", 4);
}

// Returns the place of a script's end tag, or NULL when there is none or when the inside may not be
// what it seems: comments and further scripts in it change where it ends.
static const char *end_of_script(const char *start, const char *stop) {
    for (const char *at = start; (at = memchr(at, '<', (size_t)(stop - at))); at++) {
        if (is_tag(at, stop, "</script"))
            return ends_comment(start, (size_t)(at - start)) ? NULL : at;
        if (begins_with(at, stop, "<!--") || begins_with(at, stop, "<script"))
            return NULL;
    }
    return NULL;
}

static const char *end_of_style(const char *at, const char *stop) {
    at = memchr(at, '<', (size_t)(stop - at));
    return at && is_tag(at, stop, "</style") ? at : NULL;
}

// Where everything is text that looks like tags.
static bool begins_verbatim(const char *tag, const char *stop) {
    return begins_with(tag, stop, "<xmp") || begins_with(tag, stop, "<plaintext");
}

// The end tag of what begins with this tag, if the inside may go; NULL: it may not.
static const char *end_of_unseen(const char *tag, const char *inside, const char *stop) {
    if (inside >= stop)
        return NULL;
    if (is_tag(tag, stop, "<script"))
        return end_of_script(inside, stop);
    return is_tag(tag, stop, "<style") ? end_of_style(inside, stop) : NULL;
}

static void lighten(struct cutter *cutter) {
    const char *stop = cutter->stop, *at = cutter->text, *tag, *excess;
    bool is_verbatim = false;
    while (at < stop && (tag = memchr(at, '<', (size_t)(stop - at)))) {
        at = skip_tag(tag + 1, stop, &excess);
        if (excess)
            cut(cutter, excess, at);
        is_verbatim = is_verbatim || begins_verbatim(tag, stop);
        const char *end = is_verbatim ? NULL : end_of_unseen(tag, at + 1, stop);
        if (end) {
            cut(cutter, at + 1, end);
            at = end;
        }
    }
}

int html_source_lighten(const char *text, size_t len, char **out_copy, size_t *out_len) {
    struct cutter cutter = {.text = text, .stop = text + len, .copied_to = text};
    *out_copy = NULL;
    *out_len = 0;
    lighten(&cutter);
    if (cutter.is_broken)
        return STATUS_NO_MEMORY;
    if (!cutter.copy)
        return STATUS_OK;
    take_over(&cutter, cutter.stop);
    *out_copy = cutter.copy;
    *out_len = (size_t)(cutter.end - cutter.copy);
    return STATUS_OK;
}
